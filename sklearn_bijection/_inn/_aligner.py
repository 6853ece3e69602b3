"""The invertible network as an aligner."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._base import BaseAligner, all_or_nothing
from .._compat import checks_parameters, stacklevel_of_caller
from .._flow import Architecture, CouplingName, Invertible, Mixing
from .._maps import AffineMap
from .._moments import ConstantViewError, fold_moments, require_variance
from .._solvers import Direction
from .._validation import check_pair
from . import _freedom as auto
from ._constraints import CONSTRAINTS
from ._files import read_parameters, write_parameters
from ._freedom import Auto, chosen
from ._map import NetworkMap, roundtrip_error
from ._net import DivergedError, PairNet
from ._pairs import NO_ROWS, Pairs, RawPairs, as_raw, split
from ._start import (
    Recipe,
    Start,
    affine_start,
    gated_recipe,
    standard_start,
)
from ._training import (
    Trained,
    TrainingOptions,
    draws_of,
    make_net,
    resolve_device,
    resolve_optimizer,
    seeded,
    train,
)

_ROUND_TRIP_WARNING = 1e-3


class INNAligner(BaseAligner):
    """Align two spaces by an invertible neural network that starts at the best closed form.

    Parameters
    ----------
    n_blocks : int, default=2
        Pairs of couplings; the first half acts in the axes of X, the rest in those of y. With 0 only the
        gates of the start are trained.
    hidden_size : int or "auto", default="auto"
        Units in the hidden layers of a coupling's net; "auto" is four times the width, from 32 to 512.
    n_hidden : int, default=1
        Hidden layers of a coupling's net.
    coupling : {"affine", "additive"}, default="affine"
        Whether couplings scale and shift, or only shift.
    mixing : {"none", "permutation", "rotation", "orthogonal"}, default="none"
        How coordinates are mixed around each block: not at all, in a random order, by a fixed random
        rotation or by a learned one.
    activation : {"gelu", "relu", "silu", "tanh"}, default="gelu"
    clamp : float, default=1.0
        Bound on the log-scales of affine couplings.
    init : {"gated", None} or aligner, default="gated"
        The start: "gated" joins two ridge regressions, one each way, into one bijection; an unfitted
        closed-form aligner, such as ``CCAAligner()``, is fitted and taken as it is; None only centres and
        scales.
    learn_linear : bool, default=False
        Whether a linear layer is learned besides the fixed one of the start.
    direction : {"symmetric", "forward", "backward"}, default="symmetric"
        Whose error is trained for: both, that of y, or that of X.
    dropout : float or "auto", default="auto"
        Share of hidden units silenced in training, in [0, 1); "auto" goes from 0.7 with few rows for the
        width to 0 with many.
    max_epochs : int or "auto", default="auto"
        Passes over the rows at most; "auto" is about 1,500 batches, from 3 to 60 passes.
    batch_size : int or "auto", default="auto"
        Rows of a batch; "auto" is a fiftieth of the rows, from 64 to 512.
    lr : float, default=0.001
        Highest learning rate; after a short rise it falls to zero along half a cosine.
    weight_decay : float, default=0.01
    early_stopping : bool, default=True
        Whether some rows are kept apart to find the best epoch. If False every row is trained on, and the
        last epoch is the result, unless `validation_data` is given to judge by.
    validation_fraction : float, default=0.1
        Share of the rows kept apart, unless `validation_data` is given.
    refit : bool or "auto", default="auto"
        Whether the rows kept apart join in the end: the start is made again from all rows, and trained for as
        many epochs as were best. "auto" does so with fewer than 200 rows for each coordinate.
    patience : int or None, default=5
        Epochs without improvement after which training stops; None goes on to the end.
    gradient_clip : float or None, default=1.0
        Largest norm of a gradient.
    optimizer : str or type, default="AdamW"
        Name of a class of ``torch.optim``, or the class.
    cycle : float, default=0.0
        Weight of the round trips in the loss; it matters only where the widths differ.
    cosine : float, default=0.0
        Weight of the cosine distance in the loss.
    callbacks : list of skorch callbacks, default=None
        Copies of them join the training. Those that watch validation rows, such as ``EarlyStopping``, are
        left out of its repetition with all rows, see `refit`.
    device : str, default="auto"
        "cpu", "cuda", "cuda:1", "mps"; "auto" is the first of cuda, mps and cpu that is there.
    compile : bool, default=False
        Whether torch compiles the network before it is trained.
    precision : {"float32", "bf16"}, default="float32"
        "bf16" multiplies in bfloat16 in training, on CUDA.
    warm_start : bool, default=False
        Whether `fit` goes on from the map that is there, whose architecture it keeps.
    random_state : int, RandomState or None, default=None
        Decides everything that is random; torch's and numpy's own generators stay as they were.
    verbose : int, default=0
        1 shows a bar over the epochs, 2 a line for each as well.

    Attributes
    ----------
    map_ : NetworkMap
        The fitted map, with `forward` and `inverse`.
    net_ : skorch.NeuralNet
        The net as trained, with the parameters of the best epoch. A copy from a file has its parameters,
        not the state of its optimizer.
    history_ : list of dict
        Losses and times of each epoch.
    best_epoch_ : int
        The epoch that was kept; 0 is the start.
    n_iter_ : int
        Epochs that were run.
    roundtrip_error_ : float
        Error of a round trip through the map, relative to the spread of the rows, in float32 and on at most
        1,000 training rows.
    device_ : str
        Where it was trained.
    n_features_in_ : int
    n_targets_ : int
    feature_names_in_, target_names_in_ : ndarray of str
        Where the array was a frame with string names.

    See Also
    --------
    CCAAligner : The best linear map that can be walked back.

    Notes
    -----
    *The map.* Rows are centred and scaled by one number for each view; couplings act on them in the axes of
    X, a linear map leads to canonical coordinates, gates scale these, a linear map leads to the axes of y,
    and couplings act there. The nets in the couplings start at zero, so that epoch 0 is the start.

    *The start.* A ridge regression of y on X and one of X on y are diagonal in the same canonical
    coordinates. A gate scales a group of these by the gain of the one or by the inverse gain of the other,
    as the energy in the other groups says: a row of X has energy in directions that y knows nothing of, a
    row that comes from y by the inverse map has not. So the map comes near to either regression where each
    is used, which no linear bijection can. Their penalties, and the few numbers that the gates follow
    from, are cross-validated. It is a good predictor both ways, and no evidence that the spaces are
    isomorphic.

    *Never worse than the start.* An epoch replaces the start only if it is better on the validation rows, by
    more than twice the standard error of the difference. Then all rows are learned from, up to that epoch.

    *Exactness.* For equal widths both round trips are exact for every row, up to rounding; constant columns
    come back as their constant. For n_features < n_targets ``inverse_transform(transform(X)) == X``; for
    n_features > n_targets ``transform(inverse_transform(y)) == y``; the other round trip is not exact.
    float64 rows are mapped in float64.

    *Memory.* Rows are held on the device in float32 if they fit there, and streamed otherwise; a memory map
    is never read as a whole.

    References
    ----------
    Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations",
    arXiv 2305.14555 (2023).

    Dinh, Sohl-Dickstein and Bengio, "Density estimation using real NVP", ICLR (2017).

    Examples
    --------
    >>> from sklearn_bijection import CCAAligner, INNAligner
    >>> from sklearn_bijection.datasets import make_invertible_pair
    >>> pair = make_invertible_pair(n_samples=600, n_features=4, random_state=0)
    >>> aligner = INNAligner(random_state=0).fit(pair.X[:500], pair.y[:500])
    >>> aligner.score(pair.X[500:], pair.y[500:]) > 0.9
    True
    >>> round(CCAAligner().fit(pair.X[:500], pair.y[:500]).score(pair.X[500:], pair.y[500:]), 2)
    0.82
    >>> back = aligner.inverse_transform(aligner.transform(pair.X))
    >>> bool(abs(back - pair.X).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    map_: NetworkMap
    history_: list[dict[str, Any]]
    best_epoch_: int
    n_iter_: int
    roundtrip_error_: float
    device_: str

    def __init__(
        self,
        *,
        n_blocks: int = 2,
        hidden_size: int | Auto = "auto",
        n_hidden: int = 1,
        coupling: CouplingName = "affine",
        mixing: Mixing = "none",
        activation: str = "gelu",
        clamp: float = 1.0,
        init: Any = "gated",
        learn_linear: bool = False,
        direction: Direction = "symmetric",
        dropout: float | Auto = "auto",
        max_epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        lr: float = 1e-3,
        weight_decay: float = 0.01,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        refit: bool | Auto = "auto",
        patience: int | None = 5,
        gradient_clip: float | None = 1.0,
        optimizer: str | type[torch.optim.Optimizer] = "AdamW",
        cycle: float = 0.0,
        cosine: float = 0.0,
        callbacks: Sequence[Any] | None = None,
        device: str = "auto",
        compile: bool = False,
        precision: str = "float32",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_blocks = n_blocks
        self.hidden_size = hidden_size
        self.n_hidden = n_hidden
        self.coupling = coupling
        self.mixing = mixing
        self.activation = activation
        self.clamp = clamp
        self.init = init
        self.learn_linear = learn_linear
        self.direction = direction
        self.dropout = dropout
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.patience = patience
        self.gradient_clip = gradient_clip
        self.optimizer = optimizer
        self.cycle = cycle
        self.cosine = cosine
        self.callbacks = callbacks
        self.device = device
        self.compile = compile
        self.precision = precision
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @checks_parameters
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        validation_data: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Learn the map from paired rows, forgetting what was learnt before unless `warm_start`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            The rows of the second space that belong to those of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows in the loss and in the start.
        validation_data : pair of array-like, default=None
            Rows of both spaces that find the best epoch, instead of a part of `X` and `y`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the arrays are not paired finite numbers, if a whole view is constant, or if the loss stops
            being a number; the best epoch before that is kept then.
        """
        with all_or_nothing(self):
            earlier = getattr(self, "map_", None) if self.warm_start else None
            raw = as_raw(check_pair(self, X, y, sample_weight, reset=earlier is None))
            given = None if validation_data is None else self._check_given(validation_data)
            draws = draws_of(self.random_state)
            device = resolve_device(self.device, self.precision)
            learned, valid = raw, given
            if given is None and self.early_stopping and self.max_epochs != 0:
                learned, valid = split(raw, self.validation_fraction, draws)
            with seeded(draws, device):
                trained = self._learn(raw, learned, valid, earlier, device)
        return self._complain(trained)

    @checks_parameters
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on training with one pass over some rows; the first call makes the start from them.

        The learning rate is `lr`, no rows are kept apart, and nothing is stopped early. The start stays
        what the first call has made of its rows, and a column that is constant there stays so: let the first
        call see as many rows as you can.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            The rows of the second space that belong to those of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows in the loss.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the arrays are not paired finite numbers of the widths seen before, or if the loss stops being
            a number; the map is as before then.
        """
        with all_or_nothing(self):
            earlier = getattr(self, "map_", None)
            raw = as_raw(check_pair(self, X, y, sample_weight, reset=earlier is None))
            device = resolve_device(self.device, self.precision)
            before = getattr(self, "history_", []) if earlier else []
            with seeded(draws_of(self.random_state), device):
                begun = self._begin(raw, earlier, device, self._recipe(raw, earlier))
                trained = self._train(begun, raw, None, one_pass=True)
                self._keep(trained, begun, raw)
            self.history_ = [
                {**epoch, "epoch": i} for i, epoch in enumerate(before + self.history_, start=1)
            ]
            self.n_iter_ = self.best_epoch_ = len(self.history_)
        return self._complain(trained)

    def save_params(self, f_params: str | Path) -> None:
        """Write the fitted map to a safetensors file, which runs no code when it is read.

        Parameters
        ----------
        f_params : str or Path
            The file, conventionally ``*.safetensors``. It holds the map and the widths; parameters of the
            estimator, names of columns and the history are left to a pickle.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ImportError
            Without the package safetensors.
        """
        check_is_fitted(self)
        facts = {
            "best_epoch": self.best_epoch_,
            "y_is_1d": self._y_is_1d,
            "roundtrip_error": self.roundtrip_error_,
        }
        write_parameters(f_params, self.map_, facts)

    def load_params(self, f_params: str | Path) -> Self:
        """Become the aligner that `save_params` wrote.

        Parameters
        ----------
        f_params : str or Path

        Returns
        -------
        self : object
            Fitted, mapping on the CPU.

        Raises
        ------
        ValueError
            If the file was written by something else.
        ImportError
            Without the package safetensors.
        """
        self.map_, facts = read_parameters(f_params)
        self.n_features_in_, self.n_targets_ = (
            len(end.mean) for end in (self.map_.source, self.map_.target)
        )
        self._y_is_1d, self.best_epoch_ = facts["y_is_1d"], facts["best_epoch"]
        self.roundtrip_error_ = facts.get("roundtrip_error", float("nan"))
        for names in ("feature_names_in_", "target_names_in_"):
            if hasattr(self, names):
                delattr(self, names)
        self._net, self.history_, self.n_iter_ = None, [], 0
        self.device_ = self.map_.device
        return self

    @property
    def net_(self) -> PairNet:
        """The skorch net with the fitted parameters."""
        if not hasattr(self, "map_"):
            raise AttributeError("net_ is there after fit.")
        if self._net is None:
            n_source, n_target = len(self.map_.source.columns), len(self.map_.target.columns)
            net = make_net(self.map_.core(), n_source, n_target, None, self._options(1))
            self._net = net.initialize()
        return self._net

    _net: PairNet | None = None

    def _check_given(self, validation_data: Any) -> RawPairs:
        """The rows of `validation_data`, checked like those of a fit."""
        if not isinstance(validation_data, (tuple, list)) or len(validation_data) != 2:
            raise ValueError(
                f"validation_data must be a pair (X, y), but it is {type(validation_data).__name__}. "
                "Pass rows of both spaces, as to fit."
            )
        try:
            return as_raw(check_pair(self, *validation_data, reset=False, min_rows=1))
        except (ValueError, TypeError) as error:
            error.add_note("This is about the rows of validation_data.")
            raise

    def _learn(
        self,
        raw: RawPairs,
        learned: RawPairs,
        valid: RawPairs | None,
        earlier: NetworkMap | None,
        device: str,
    ) -> Trained:
        """Train on `learned`, and once more on all rows if some of them were kept apart."""
        recipe = self._recipe(raw, earlier)
        try:
            begun = self._begin(learned, earlier, device, recipe)
        except ConstantViewError:
            if learned is raw:
                raise
            # All that varies was kept apart: nothing is left to judge a training by.
            learned, valid = raw, raw.take(NO_ROWS)
            begun = self._begin(raw, earlier, device, recipe)
        trained = self._train(begun, learned, valid)
        self._keep(trained, begun, raw)
        if learned is not raw and self._joins(raw) and not trained.interrupted:
            begun = self._begin(raw, earlier, device, recipe)
            self._refit(trained, begun, raw)
        return trained

    def _recipe(self, raw: RawPairs, earlier: NetworkMap | None) -> Recipe | None:
        """How the gated start of these rows is made, if that is what is wanted."""
        gated = earlier is None and isinstance(self.init, str)
        return gated_recipe(raw, self.direction) if gated else None

    def _begin(
        self, raw: RawPairs, earlier: NetworkMap | None, device: str, recipe: Recipe | None
    ) -> NetworkMap:
        """Epoch 0: the map that is there, or the start with as much freedom as these rows can bear."""
        if earlier is not None:
            return earlier.on(device)
        start = self._start(raw, recipe)
        architecture = Architecture(
            start.width,
            n_blocks=self.n_blocks,
            coupling=self.coupling,
            clamp=float(self.clamp),
            hidden_size=chosen(self.hidden_size, auto.hidden_size(start.width)),
            n_hidden=self.n_hidden,
            activation=self.activation,
            dropout=chosen(self.dropout, auto.dropout(len(raw), start.width)),
            mixing=self.mixing,
            learn_linear=self.learn_linear,
        )
        return start.as_map(architecture, device)

    def _start(self, raw: RawPairs, recipe: Recipe | None) -> Start:
        if recipe is not None:
            return recipe.start(raw)
        weight = raw.weight_of_all()
        moments = fold_moments(raw.X, raw.y, weight)[0]
        require_variance(moments)
        if self.init is None:
            return standard_start(moments)
        found = None
        if has_fit_parameter(self.init, "sample_weight"):
            fitted = clone(self.init).fit(raw.X, raw.y, sample_weight=weight)
            found = getattr(fitted, "map_", None)
        if not isinstance(found, AffineMap):
            raise ValueError(
                f"init={self.init!r} is no closed-form aligner: it fits no affine map_. Pass "
                "CCAAligner(), ProcrustesAligner(), 'gated' or None."
            )
        return affine_start(found, moments)

    def _train(
        self,
        begun: NetworkMap,
        raw: RawPairs,
        valid: RawPairs | None,
        *,
        n_epochs: int | None = None,
        one_pass: bool = False,
    ) -> Trained:
        ends = begun.source, begun.target, begun.architecture.width, begun.device
        pairs, judges = Pairs(raw, *ends), Pairs(valid, *ends) if valid else None
        options = self._options(len(raw), begun.device)
        if valid is not None and not valid:
            # Too few rows to keep one apart: nothing could show that an epoch is better than the start.
            n_epochs = 0
        if one_pass:
            options = replace(options, max_epochs=1, anneal=False)
        return train(begun.core(), pairs, judges, options, n_epochs)

    def _options(self, n_rows: int, device: str = "cpu") -> TrainingOptions:
        batch_size = chosen(self.batch_size, auto.batch_size(n_rows))
        return TrainingOptions(
            direction=self.direction,
            max_epochs=chosen(self.max_epochs, auto.max_epochs(n_rows, batch_size)),
            batch_size=batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            patience=self.patience,
            gradient_clip=self.gradient_clip,
            optimizer=resolve_optimizer(self.optimizer, self.weight_decay),
            cycle=float(self.cycle),
            cosine=float(self.cosine),
            callbacks=tuple(self.callbacks or ()),
            device=device,
            compile=self.compile,
            precision=self.precision,
            verbose=int(self.verbose),
        )

    def _keep(self, trained: Trained, begun: NetworkMap, raw: RawPairs) -> None:
        """Set the fitted attributes."""
        self.history_, self.best_epoch_ = trained.history, trained.best_epoch
        self.n_iter_, self.device_ = len(self.history_), begun.device
        self._hold(trained, begun, raw)

    def _hold(self, trained: Trained, begun: NetworkMap, raw: RawPairs) -> None:
        self.map_, self._net = begun.with_parameters(trained.core), trained.net
        self.roundtrip_error_ = roundtrip_error(self.map_, raw)

    def _joins(self, raw: RawPairs) -> bool:
        """Whether the rows kept apart are to join in the end."""
        width = max(self.n_features_in_, self.n_targets_)
        return bool(chosen(self.refit, auto.refit(len(raw), width)))

    def _refit(self, found: Trained, begun: NetworkMap, raw: RawPairs) -> None:
        """Train once more, with the rows that were kept apart too, up to the best epoch."""
        trained = self._train(begun, raw, None, n_epochs=found.best_epoch)
        if trained.diverged_at is None and not trained.interrupted:
            self._hold(trained, begun, raw)

    def _complain(self, trained: Trained) -> Self:
        if trained.diverged_at is not None:
            kept = f"epoch {trained.best_epoch}" if trained.best_epoch else "the start"
            raise DivergedError(
                f"The loss was no finite number in epoch {trained.diverged_at}. Lower lr={self.lr} or "
                f"gradient_clip={self.gradient_clip}, or fewer n_blocks. The parameters of {kept} are kept."
            )
        if self.roundtrip_error_ > _ROUND_TRIP_WARNING:
            warnings.warn(
                f"A round trip errs by {self.roundtrip_error_:.1e} of the spread of the rows in float32. "
                f"Pass float64 rows, lower clamp={self.clamp} or use fewer than {self.n_blocks} blocks.",
                UserWarning,
                stacklevel=stacklevel_of_caller(),
            )
        return self

    def _as_module(self) -> Invertible:
        return self.map_.module()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_net"}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")
