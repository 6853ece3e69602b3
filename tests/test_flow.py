"""Every invertible module under the same laws: there and back, Jacobians, gradients, rows, devices."""

import math
from copy import deepcopy
from functools import partial
from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from sklearn_bijection._flow import (
    ACTIVATIONS,
    COUPLINGS,
    AdditiveCoupling,
    AffineCoupling,
    AffineModule,
    Architecture,
    Chain,
    End,
    GateCoupling,
    GateStart,
    Inverted,
    LearnedLinear,
    Linear,
    Mixing,
    Network,
    Permutation,
    Rotation,
    conditioner,
    groups_of,
    in_precision,
)
from sklearn_bijection._solvers import Standard

#: Largest error of a round trip, relative to the row.
ROUND_TRIP = {torch.float64: 1e-9, torch.float32: 1e-4}
MIXINGS = get_args(Mixing)
NET = {"hidden_size": 16}


def rows(width, n_samples=12, *, size=1.0, seed=0, dtype=torch.float64):
    """Rows of `size` standard deviations."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(n_samples, width, generator=generator, dtype=torch.float64)
    return (size * drawn).to(dtype)


def seeded(build, seed=0):
    """What `build` makes with torch's generator at `seed`, and the generator as it was found."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def spoken(module, size=0.3, seed=1):
    """The module ready for use in float64, with random numbers where it starts with zeros."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in module.parameters():
            if not value.any():
                spread = size / math.sqrt(value.shape[-1] if value.ndim else 1)
                value.copy_(spread * torch.randn(value.shape, generator=generator))
    return module.double().eval()


def linear(width=7):
    matrix = torch.eye(width, dtype=torch.float64) + 0.2 * rows(width, width)
    return Linear(matrix, torch.linalg.inv(matrix))


def affine_module(width=7):
    part, means = linear(width), rows(width, 2, seed=1)
    return AffineModule(means[0], means[1], part.matrix, part.inverse_matrix)


def core(coupling="affine", mixing="rotation", width=7, n_blocks=2, **options):
    gates = min(width, 3) if width > 1 else 0
    options = NET | {"n_gates": gates, "learn_linear": True} | options
    return Architecture(width, n_blocks, coupling, mixing=mixing, **options).build()


def end(n_live, width, n_constant=0, seed=0):
    """An end whose constant columns come first."""
    n_columns = n_live + n_constant
    mean = rows(n_columns, 1, size=3.0, seed=seed)[0]
    return End(mean, 2.5, torch.arange(n_constant, n_columns), width)


def network(n_x=7, n_y=7, constant=(0, 0)):
    width = max(n_x, n_y)
    source, target = end(n_x, width, constant[0]), end(n_y, width, constant[1], seed=1)
    return Network(source, core(width=width, mixing="orthogonal"), target)


#: Width and builder of everything that starts as the identity, and of everything there is.
START_AS_IDENTITY = {
    **{
        f"{name}, {half} of {width}": (
            width,
            partial(COUPLINGS[name], width, half == "first", **NET),
        )
        for name, width, half in product(COUPLINGS, (2, 7, 8), ("first", "second"))
    },
    **{
        activation: (7, partial(AffineCoupling, 7, True, n_hidden=2, activation=activation, **NET))
        for activation in ACTIVATIONS
    },
    "tight clamp": (7, partial(AffineCoupling, 7, False, clamp=0.1, **NET)),
    **{f"gate {i}": (7, partial(GateCoupling, groups_of(7, 3), i)) for i in range(3)},
    "learned linear": (7, partial(LearnedLinear, 7)),
    "learned rotation": (7, lambda: Rotation(torch.eye(7, dtype=torch.float64))),
    "empty chain": (7, lambda: Chain([])),
    **{
        f"core, {coupling}, {mixing}": (7, partial(core, coupling, mixing))
        for coupling, mixing in product(COUPLINGS, MIXINGS)
    },
    "core of three blocks": (8, partial(core, width=8, n_blocks=3)),
    "core without blocks": (7, partial(core, n_blocks=0)),
    "core of width 1": (1, partial(core, width=1, learn_linear=False)),
    "core of width 2": (2, partial(core, width=2)),
}
MODULES = {
    **START_AS_IDENTITY,
    "linear": (7, linear),
    "even, then odd": (7, partial(Permutation.alternating, 7)),
    "random order": (7, partial(Permutation.random, 7)),
    "fixed rotation": (7, partial(Rotation.random, 7)),
    "learned from a random rotation": (7, partial(Rotation.random, 7, learn=True)),
    "chain": (7, lambda: Chain([linear(), AffineCoupling(7, True, **NET), Permutation.random(7)])),
    "named chain": (7, lambda: Chain({"a": linear(), "b": LearnedLinear(7)})),
    "inverted": (7, lambda: Inverted(Chain([AffineCoupling(7, True, **NET), linear()]))),
    "affine module": (7, affine_module),
    "network": (7, network),
}


@pytest.fixture(params=MODULES)
def case(request):
    """A module that says something, and rows for it."""
    width, build = MODULES[request.param]
    return spoken(seeded(build)), rows(width)


def both_ways(module):
    return (module.forward, module.inverse), (module.inverse, module.forward)


@torch.no_grad()
def assert_there_and_back(module, z):
    for there, back in both_ways(module):
        error = (back(there(z)) - z).norm(dim=1) / z.norm(dim=1)
        assert error.max() < ROUND_TRIP[z.dtype]


@torch.no_grad()
def assert_same_map(found, expected, z, atol=1e-11):
    torch.testing.assert_close(found(z), expected(z), rtol=0, atol=atol)
    torch.testing.assert_close(found.inverse(z), expected.inverse(z), rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ROUND_TRIP, ids=str)
@pytest.mark.parametrize("size", [1.0, 10.0])
def test_there_and_back(case, size, dtype):
    module, z = case
    assert_there_and_back(module.to(dtype), (size * z).to(dtype))
    assert module(z.to(dtype)).dtype == dtype


@pytest.mark.parametrize("n_blocks", [2, 8, 24])
@pytest.mark.parametrize("width", [1, 2, 7, 8])
@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_there_and_back_at_any_depth(coupling, mixing, width, n_blocks):
    module = spoken(seeded(partial(core, coupling, mixing, width, n_blocks)), size=0.3 / n_blocks)
    z = torch.cat((rows(width), rows(width, size=10.0)))
    for dtype in ROUND_TRIP:
        assert_there_and_back(module.to(dtype), z.to(dtype))


@pytest.mark.parametrize("mixing", MIXINGS)
def test_there_and_back_far_out_through_couplings_that_say_much(mixing):
    module = spoken(seeded(partial(core, "affine", mixing, 8, 24)), size=0.3)
    for dtype in ROUND_TRIP:
        assert_there_and_back(module.to(dtype), rows(8, size=10.0, dtype=dtype))


def test_the_jacobian_of_the_inverse_is_the_inverse_of_the_jacobian(case):
    module, z = case
    row = z[0]
    there = jacobian(lambda r: module(r[None])[0], row)
    back = jacobian(lambda r: module.inverse(r[None])[0], module(row[None])[0])
    eye = torch.eye(len(row), dtype=row.dtype)
    torch.testing.assert_close(there @ back, eye, rtol=0, atol=1e-9)
    assert torch.linalg.slogdet(there).logabsdet.isfinite()


@pytest.mark.parametrize("way", ["forward", "inverse"])
def test_gradient_reaches_every_parameter_and_the_rows(case, way):
    module, z = case
    z = z.requires_grad_()
    image = getattr(module, way)(z)
    (image * rows(*reversed(image.shape), seed=5)).sum().backward()
    for name, value in {**dict(module.named_parameters()), "rows": z}.items():
        assert value.grad is not None, name
        assert value.grad.isfinite().all(), name
        assert value.grad.any(), name


@pytest.mark.parametrize("name", START_AS_IDENTITY)
def test_it_starts_as_the_identity_and_can_be_trained_away_from_it(name):
    width, build = START_AS_IDENTITY[name]
    module, z = seeded(build).double(), rows(width)
    for way in (module.forward, module.inverse):
        torch.testing.assert_close(way(z), z, rtol=0, atol=1e-12)
    if parameters := list(module.parameters()):
        (module(z) * rows(z.shape[1], len(z), seed=5)).sum().backward()
        assert any(value.grad.any() for value in parameters if value.grad is not None)


@torch.no_grad()
def test_rows_do_not_influence_each_other(case):
    module, z = case
    for way in (module.forward, module.inverse):
        alone = torch.cat([way(row[None]) for row in z])
        torch.testing.assert_close(way(z), alone, rtol=0, atol=1e-11)
        assert way(z[:0]).shape == (0, z.shape[1])


def test_frozen_is_the_same_map_with_nothing_left_to_solve(case):
    module, z = case
    frozen = module.float().frozen()
    assert {value.dtype for value in frozen.state_dict().values()} <= {torch.float32, torch.int64}
    assert_same_map(frozen, module, z.float(), atol=1e-4)
    module = module.double()
    assert_same_map(module.frozen(), module, z)
    if not isinstance(module, Network):
        kinds = {type(part) for part in module.frozen().modules()}
        assert not kinds & {LearnedLinear, Rotation}


def test_a_frozen_network_has_a_frozen_core():
    frozen = spoken(seeded(network)).frozen()
    assert not {type(part) for part in frozen.modules()} & {LearnedLinear, Rotation}


def test_inverted_goes_the_other_way_with_the_same_parameters(case):
    module, z = case
    inverted = module.inverted()
    assert torch.equal(inverted(z), module.inverse(z))
    assert torch.equal(inverted.inverse(z), module(z))
    assert_same_map(inverted.inverted(), module, z, atol=0)
    assert set(map(id, inverted.parameters())) == set(map(id, module.parameters()))


def test_every_part_moves_to_another_device(case):
    # The device without storage refuses to work with a tensor that has stayed behind.
    module, z = case
    moved, there = deepcopy(module).to("meta"), z.to("meta")
    for way in (moved.forward, moved.inverse):
        assert way(there).device.type == "meta"
        assert way(there).shape == z.shape


def test_the_state_is_the_whole_of_it(case, request):
    module, z = case
    _, build = MODULES[request.node.callspec.params["case"]]
    other = spoken(seeded(build, seed=8), seed=9)
    other.load_state_dict(module.state_dict())
    assert_same_map(other, module, z, atol=0)


def test_neither_the_rows_nor_the_generator_are_touched(case):
    module, z = case
    kept, state = z.clone(), torch.get_rng_state()
    module(z), module.inverse(z), module.frozen()
    assert torch.equal(z, kept)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same(case):
    module, z = case
    expected = module(z), module.inverse(z)
    moved = module.to("cuda")
    for way, image in zip((moved.forward, moved.inverse), expected, strict=True):
        torch.testing.assert_close(way(z.cuda()).cpu(), image, rtol=0, atol=1e-9)
    assert_same_map(moved.frozen(), moved, z.cuda(), atol=1e-9)


# What each of them does in particular.


@pytest.mark.parametrize("moves_first", [True, False])
@pytest.mark.parametrize("width", [2, 7, 8])
@pytest.mark.parametrize("name", COUPLINGS)
def test_a_coupling_moves_every_coordinate_of_one_half(name, width, moves_first):
    z = rows(width)
    moved = spoken(seeded(lambda: COUPLINGS[name](width, moves_first, **NET)))(z) != z
    leading = torch.arange(width) < math.ceil(width / 2)
    assert torch.equal(moved, (leading == moves_first).expand_as(z))


@pytest.mark.parametrize("clamp", [0.1, 1.0, 3.0])
def test_the_clamp_bounds_the_log_scale(clamp):
    module = spoken(seeded(lambda: AffineCoupling(8, True, clamp=clamp, **NET)), size=100.0)
    z, step = rows(8), torch.zeros(8, dtype=torch.float64)
    step[:4] = 1.0
    log_scale = (module(z + step) - module(z))[:, :4].log()
    assert log_scale.abs().max() <= clamp * (1 + 1e-9)
    assert log_scale.min() < -0.99 * clamp
    assert log_scale.max() > 0.99 * clamp


def test_additive_couplings_keep_volumes_and_rotations_lengths():
    z = rows(7)
    additive = spoken(seeded(lambda: AdditiveCoupling(7, False, **NET)))
    there = jacobian(lambda row: additive(row[None])[0], z[0])
    assert torch.linalg.slogdet(there).logabsdet.item() == pytest.approx(0.0, abs=1e-12)
    for learn in (False, True):
        turned = spoken(seeded(lambda learn=learn: Rotation.random(7, learn=learn)))(z)
        torch.testing.assert_close(turned.norm(dim=1), z.norm(dim=1))
        assert not torch.allclose(turned, z)


def test_dropout_works_in_training_alone():
    plain, dropped = (
        spoken(seeded(lambda share=share: core(dropout=share))) for share in (0.0, 0.5)
    )
    z = rows(7)
    assert_same_map(dropped, plain, z, atol=0)
    assert torch.equal(plain.train()(z), plain.eval()(z))
    with torch.random.fork_rng(devices=[]):
        assert not torch.equal(dropped.train()(z), dropped(z))


@pytest.mark.parametrize("n_hidden", [1, 2, 3])
def test_the_conditioner_is_as_deep_and_wide_as_asked(n_hidden):
    layers = conditioner(3, 4, hidden_size=9, n_hidden=n_hidden, activation="tanh")
    sizes = [part.weight.shape[::-1] for part in layers if isinstance(part, torch.nn.Linear)]
    assert sizes == [(3, 9), *[(9, 9)] * (n_hidden - 1), (9, 4)]
    assert sum(isinstance(part, torch.nn.Tanh) for part in layers) == n_hidden


@pytest.mark.parametrize("n_groups", [1, 2, 3, 7])
def test_groups_share_the_coordinates(n_groups):
    groups = groups_of(7, n_groups)
    sizes = [stop - start for start, stop in groups]
    assert [i for start, stop in groups for i in range(start, stop)] == list(range(7))
    assert sizes == sorted(sizes, reverse=True)
    assert len(groups) == n_groups
    assert max(sizes) - min(sizes) <= 1


def gate_start():
    middle, reach, log_weight, slope, offset = (
        rows(size, 1, seed=size)[0] for size in (2, 2, 5, 2, 1)
    )
    return GateStart(middle, reach, log_weight, slope, offset[0])


def test_a_gate_is_its_formula():
    start, z = gate_start(), rows(5)
    middle, reach, log_weight, slope, offset = (part.numpy() for part in start)
    energy = np.square(z.numpy()) * np.exp(log_weight)
    # Of the groups (0, 1), (2, 3) and (4,) the second is moved.
    seen = np.log(np.c_[energy[:, :2].mean(axis=1), energy[:, 4]] + 1e-8) @ slope
    expected = z.numpy().copy()
    expected[:, 2:4] *= np.exp(middle + reach * np.tanh(offset + seen)[:, np.newaxis])
    gate = GateCoupling(groups_of(5, 3), 1, start).double()
    np.testing.assert_allclose(gate(z).detach(), expected, rtol=1e-6)


def test_a_gate_stays_between_its_settings_from_nothing_to_enormous_rows():
    start = gate_start()
    gate = GateCoupling(groups_of(5, 3), 1, start).double()
    z = rows(5) * torch.tensor([0.0, 1e-12, 1.0, 1e12]).repeat(3)[:, None]
    z.requires_grad_()
    away = (gate.log_scale(z) - start.middle).abs()
    assert (away <= start.reach.abs() * (1 + 1e-9)).all()
    gate(z).sum().backward()
    assert z.grad.isfinite().all()


def test_a_gate_keeps_nothing_of_what_it_started_with():
    start = gate_start()
    kept = [part.clone() for part in start]
    with torch.no_grad():
        for value in GateCoupling(groups_of(5, 3), 1, start).parameters():
            value.add_(1.0)
    assert all(map(torch.equal, start, kept))


def test_orders_are_what_they_say():
    z = rows(5)
    order = [3, 0, 4, 1, 2]
    assert torch.equal(Permutation(torch.tensor(order))(z), z[:, order])
    assert torch.equal(Permutation.alternating(5)(z), z[:, [0, 2, 4, 1, 3]])


@pytest.mark.parametrize("n_blocks", [0, 1, 2, 5])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_an_architecture_has_two_couplings_a_block_on_both_sides_of_the_join(coupling, n_blocks):
    layers = core(coupling, "none", n_blocks=n_blocks).layers
    n_source, n_target = (
        sum(isinstance(part, COUPLINGS[coupling]) for part in layers[side].modules())
        for side in ("source_blocks", "target_blocks")
    )
    assert n_source + n_target == 2 * n_blocks
    assert n_source - n_target in (0, 2)
    assert list(layers) == "source_blocks enter gates leave learned target_blocks".split()


def test_an_architecture_is_its_fields_and_the_seed():
    plan = Architecture(6, 3, "additive", mixing="permutation", n_gates=2, **NET)
    again = Architecture(**plan.as_dict())
    assert again == plan
    first, second = (spoken(seeded(one.build)) for one in (plan, again))
    assert_same_map(first, second, rows(6), atol=0)


# The ends and the network between them.


def test_an_end_leaves_constant_columns_outside():
    mean = torch.tensor([1.0, 5.0, -1.0], dtype=torch.float64)
    end = End(mean, 2.0, torch.tensor([2, 0]), width=4)
    z = torch.tensor([[3.0, 5.0, 7.0], [-1.0, 5.0, -1.0]], dtype=torch.float64)
    assert end.enter(z).tolist() == [[4.0, 1.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0]]
    assert torch.equal(end.leave(end.enter(z)), z)
    assert (end.leave(rows(4))[:, 1] == 5.0).all()


def test_an_end_is_what_the_arrays_go_through():
    standard = Standard(np.array([3.0, -2.0, 0.5, 4.0]), 1.7, np.array([0, 1, 3]))
    mean, unit, columns = standard
    end = End(torch.from_numpy(mean), unit, torch.from_numpy(columns), width=5)
    z, w = rows(4), rows(5)
    np.testing.assert_allclose(end.enter(z), standard.arrange(z.numpy(), 5), atol=1e-12)
    np.testing.assert_allclose(end.leave(w), standard.restore(w.numpy()), atol=1e-12)


@pytest.mark.parametrize("constant", [(0, 0), (2, 1)])
@pytest.mark.parametrize("widths", [(3, 7), (7, 3), (7, 7), (1, 2), (2, 1)])
def test_a_network_is_exact_from_the_narrower_space_and_back(widths, constant):
    net = spoken(seeded(lambda: network(*widths, constant)))
    way, narrow, wide = (
        ("forward", net.source, net.target)
        if widths[0] <= widths[1]
        else ("inverse", net.target, net.source)
    )
    there, back = both_ways(net)[way == "inverse"]
    z = narrow.leave(rows(max(widths)))
    image = there(z)
    torch.testing.assert_close(back(image), z, rtol=0, atol=1e-9)
    assert image.shape == (len(z), len(wide.mean))
    n_constant = constant[widths[0] <= widths[1]]
    assert torch.equal(image[:, :n_constant], wide.mean[:n_constant].expand(len(z), -1))


def test_a_precision_that_can_hold_the_numbers_is_taken():
    found = in_precision(seeded(core).train(), torch.float32)
    assert not found.training
    assert {value.dtype for value in found.state_dict().values()} <= {torch.float32, torch.int64}


def test_a_precision_that_cannot_is_refused():
    mean = torch.tensor([1e300], dtype=torch.float64)
    module = AffineModule(mean, mean, *torch.ones(2, 1, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"dtype=torch.float32 cannot hold mean_x.*1.0e\+300.*flo"):
        in_precision(module, torch.float32)
    assert module.mean_x.dtype == torch.float64
