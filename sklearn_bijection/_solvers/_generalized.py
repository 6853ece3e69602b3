"""Generalized Procrustes: rotations of many spaces into one in which they lie nearest together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._linalg import polar_factor
from .._moments import SpaceMoments
from ._cca import Array
from ._spanned import completed, spanned

Rotations = list[Array]

#: Loadings that differ by less than this, relatively, are taken for equal.
_TIED = 1e-8


@dataclass(frozen=True, eq=False)
class GeneralizedSolution:
    """What `solve_generalized` finds.

    Parameters
    ----------
    rotations : list of ndarray, each of shape (width_k, template_width)
    scales : ndarray of shape (n_spaces,)
    disparity : ndarray of shape (n_spaces,)
    losses : ndarray of shape (n_sweeps + 1,)
    converged : bool
    """

    rotations: Rotations
    scales: Array
    disparity: Array
    losses: Array
    converged: bool


def solve_generalized(
    moments: SpaceMoments,
    *,
    scale: bool = True,
    allow_reflection: bool = True,
    max_iter: int = 100,
    tol: float = 1e-10,
) -> GeneralizedSolution:
    """The (semi-)orthogonal matrices and scales that carry the spaces nearest to their mean.

    With the mapped rows ``Z_k = v_k X_k R_k`` and their mean M the loss is
    ``sum_k ||Z_k - M||² / sum_k ||Z_k||²``. In turn each rotation becomes the polar factor of
    ``X_k' sum_(l != k) Z_l``, which is the best one while the others stand still. A sweep starts a
    little ahead, in the direction of the last one (momentum); one that ends at a greater loss is undone.

    Parameters
    ----------
    moments : SpaceMoments
    scale : bool, default=True
        Bring all spaces to one size; if False the scales are 1.
    allow_reflection : bool, default=True
    max_iter : int, default=100
        Sweeps.
    tol : float, default=1e-10
        Converged is a sweep without momentum that lowers the loss by no more than this.

    Returns
    -------
    solution : GeneralizedSolution

    References
    ----------
    ten Berge, "Orthogonal Procrustes rotation for two or more matrices", Psychometrika 42 (1977).
    """
    width = max(moments.widths)
    inner = [moments.products[k, k].shape[0] for k in range(moments.n_spaces)]
    weights = np.ones(moments.n_spaces) if scale else moments.sizes / moments.sizes.max()
    problem = _Sweeps(moments, inner, weights, allow_reflection)
    rotations, losses, converged = _climb(problem, max_iter, tol)
    # Where a space does not vary, nothing has said how to turn it.
    spans = [spanned(moments, k) for k in range(moments.n_spaces)]
    rotations = [span @ (span.T @ R) for span, R in zip(spans, rotations, strict=True)]
    lengths = _lengths(moments, rotations, width) if scale else moments.sizes
    frame, disparity = _principal_axes(moments, rotations, lengths)
    rotations = [R @ frame for R in rotations]
    # A space that is spanned whole has no direction left in which a reflection could be undone.
    bound = [R for R, span in zip(rotations, spans, strict=True) if span.shape == (width, width)]
    signs = _signs(moments, rotations)
    if not allow_reflection and bound and np.linalg.det(bound[0] * signs) < 0:
        signs[-1] *= -1
    whole = [
        completed(R * signs, span, axes, width, allow_reflection=allow_reflection)
        for R, span, axes in zip(rotations, spans, moments.axes, strict=True)
    ]
    scales = lengths / moments.sizes if scale else np.ones(moments.n_spaces)
    return GeneralizedSolution(whole, scales, disparity, np.array(losses), converged)


@dataclass(frozen=True, eq=False)
class _Sweeps:
    """One better rotation after the other.

    Parameters
    ----------
    moments : SpaceMoments
    inner : sequence of int
        Width of the products of each space.
    weights : ndarray of shape (n_spaces,)
        Size that each space has in the sum of the others.
    allow_reflection : bool
    """

    moments: SpaceMoments
    inner: Sequence[int]
    weights: Array
    allow_reflection: bool

    def order(self) -> list[int]:
        """Whose turn it is: the widest first, and of these the one nearest to the rest.

        The first is where the others start from, so that neither depends on how the spaces are listed.
        """
        nearness = self.moments.cka().sum(axis=0)
        return [int(k) for k in np.lexsort((-nearness, -np.array(self.inner)))]

    def nowhere(self) -> Rotations:
        """Rotations that a first sweep starts from: every space turns to those before it alone."""
        return [np.zeros((rows, max(self.inner))) for rows in self.inner]

    def sweep(self, ahead: Rotations, order: Sequence[int]) -> tuple[Rotations, float]:
        """Turn each space to all the others, which stand at `ahead`; and the loss after it."""
        rotations, shared = list(ahead), 0.0
        for turn, k in enumerate(order):
            before = self._pull(k, rotations, order[:turn])
            after = self._pull(k, rotations, order[turn + 1 :])
            rotations[k] = polar_factor(before + after, allow_reflection=self.allow_reflection)
            # Every pair counts once, when the second of its spaces has come to where it stays.
            shared += 2.0 * float(np.vdot(rotations[k], before))
        total = float(self.weights @ self.weights)
        return rotations, 1.0 - (total + shared) / (total * len(order))

    def _pull(self, k: int, rotations: Rotations, others: Sequence[int]) -> Array:
        """``X_k' sum_l Z_l`` over the others."""
        pull = np.zeros_like(rotations[k])
        for other in others:
            product = self.moments.between(k, other) @ rotations[other]
            product *= self.weights[k] * self.weights[other]
            pull += product
        return pull


def _climb(problem: _Sweeps, max_iter: int, tol: float) -> tuple[Rotations, list[float], bool]:
    """Rotations after the last sweep, the loss after each, and whether there was nothing more to gain."""
    order = problem.order()
    rotations, loss = problem.sweep(problem.nowhere(), order)
    before, run, losses = rotations, 0, [loss]
    for _ in range(max_iter):
        momentum = run / (run + 3)
        ahead = [now + momentum * (now - old) for now, old in zip(rotations, before, strict=True)]
        turned, loss = problem.sweep(ahead, order)
        gain, before, run = losses[-1] - loss, rotations, run + 1
        losses.append(min(loss, losses[-1]))
        if gain > 0:
            rotations = turned
        if gain <= tol:
            if not momentum:
                return rotations, losses, True
            run = 0
    return rotations, losses, False


def _lengths(moments: SpaceMoments, rotations: Rotations, width: int) -> Array:
    """Size of each mapped space, such that the template has a variance of about 1 per coordinate.

    All are equal where the widths are. Otherwise what two spaces have in each other's image is to be
    equal, which a scale of each can meet for all pairs only in the least squares of their logarithms.
    """
    seen = _seen(moments, rotations)
    known = (seen > 0) & (seen.T > 0)
    ratio = np.log(np.where(known, seen.T, 1.0) / np.where(known, seen, 1.0))
    lengths: Array = np.exp(ratio.mean(axis=1) / 2)
    lengths *= np.sqrt(width * moments.weight / np.square(lengths).mean())
    return lengths


def _seen(moments: SpaceMoments, rotations: Rotations) -> Array:
    """Share of the variance of space k that lies in the image of space l."""
    n_spaces, width = len(rotations), rotations[0].shape[1]
    seen = np.ones((n_spaces, n_spaces))
    narrow = [k for k in range(n_spaces) if rotations[k].shape[0] < width]
    for k in range(n_spaces) if narrow else ():
        mapped = rotations[k].T @ moments.between(k, k) @ rotations[k]
        for other in narrow:
            if other != k:
                seen[k, other] = np.vdot(rotations[other] @ mapped, rotations[other])
    return seen


def _principal_axes(
    moments: SpaceMoments, rotations: Rotations, lengths: Array
) -> tuple[Array, Array]:
    """Principal axes of the template, the largest variance first; and the disparity of each space."""
    n_spaces = moments.n_spaces
    # Squares of very small or very large units would leave the range of floats.
    lengths = lengths / lengths.max()
    pulls = [
        sum(
            (lengths[other] * (moments.between(k, other) @ rotations[other]))
            for other in range(n_spaces)
        )
        / n_spaces
        for k in range(n_spaces)
    ]
    pairs = list(zip(lengths, rotations, pulls, strict=True))
    template = sum(length * rotation.T @ pull for length, rotation, pull in pairs) / n_spaces
    with np.errstate(over="ignore", divide="ignore"):
        disparity = [
            1
            - 2 * np.vdot(rotation, pull) / length
            + np.vdot(rotation @ template, rotation) / length / length
            for length, rotation, pull in pairs
        ]
    frame: Array = np.linalg.eigh((template + template.T) / 2)[1][:, ::-1]
    return frame, np.array(disparity)


def _signs(moments: SpaceMoments, rotations: Rotations) -> Array:
    """Signs that make the largest loading of any column of any space positive, on every axis.

    Of several that are equal, most are positive: which of them comes first plays no part.
    """
    loadings = np.vstack(
        [
            rotation if axes is None else axes @ rotation
            for rotation, axes in zip(rotations, moments.axes, strict=True)
        ]
    )
    sizes = np.abs(loadings)
    votes = np.where(sizes >= (1 - _TIED) * sizes.max(axis=0), np.sign(loadings), 0.0).sum(axis=0)
    first = loadings[sizes.argmax(axis=0), np.arange(loadings.shape[1])]
    return np.where(np.where(votes, votes, first) < 0, -1.0, 1.0)
