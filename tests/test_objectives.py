"""The training loss: by hand on small tensors, at its landmarks, and under what must not change it."""

from functools import partial

import pytest
import torch

from sklearn_bijection._objectives import DIRECTION_WEIGHTS, BijectionLoss, Images

TERMS = {"plain": {}, "cycle": {"cycle": 0.7}, "cosine": {"cosine": 0.3}}
TERMS["both"] = TERMS["cycle"] | TERMS["cosine"]
DIRECTIONS = list(DIRECTION_WEIGHTS)


def rows(n, width, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(n, width, generator=generator, dtype=torch.float64)
    return drawn - drawn.mean(dim=0)


def batch(n=9, width_x=3, width_y=2):
    """Centred rows of both views, of weight one, and images that are wrong in every respect."""
    x, y = rows(n, width_x, 0), rows(n, width_y, 1)
    images = Images(*(rows(n, width, 2 + i) for i, width in enumerate((width_y, width_x) * 2)))
    images = images._replace(cycle_x=images.inverse + 0.5, cycle_y=images.forward - 0.5)
    return images, (x, y, torch.ones(n, dtype=torch.float64))


def variances(pair):
    return [part.square().sum(dim=1).mean().item() for part in pair[:2]]


@pytest.fixture(params=[(d, t) for d in DIRECTIONS for t in TERMS], ids="-".join)
def objective(request):
    direction, terms = request.param
    return partial(BijectionLoss, direction=direction, **TERMS[terms])


#: Two pairs of rows with their images, small enough to be reckoned with by hand.
BY_HAND = (
    Images(
        forward=torch.tensor([[1.0, 0.0], [0.0, -2.0]]),
        inverse=torch.tensor([[1.0], [1.0]]),
        cycle_x=torch.tensor([[3.0], [-1.0]]),
        cycle_y=torch.tensor([[2.0, 0.0], [0.0, 2.0]]),
    ),
    (torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.ones(2)),
)


@pytest.mark.parametrize(
    ("options", "of_the_rows"),
    [
        ({"direction": "forward"}, [1 / 4, 16 / 4]),
        ({"direction": "backward"}, [0.0, 4.0]),
        ({}, [0.5 * 1 / 4, 0.5 * 16 / 4 + 0.5 * 4.0]),
        ({"cycle": 0.5}, [0.125 + 0.25 * 4.0, 4.0]),
        ({"cosine": 3.0}, [0.125, 4.0 + 1.5 * 2.0 + 1.5 * 2.0]),
        ({"direction": "forward", "cosine": 3.0}, [0.25, 4.0 + 3.0 * 2.0]),
        ({"direction": "backward", "cycle": 0.5, "cosine": 3.0}, [1.0, 4.0 + 3.0 * 2.0]),
    ],
    ids=str,
)
def test_by_hand(options, of_the_rows):
    images, (x, y, weight) = BY_HAND
    loss = BijectionLoss(variance_x=1.0, variance_y=4.0, **options)
    assert loss.by_row(images, x, y).tolist() == pytest.approx(of_the_rows)
    assert loss(images, (x, y, weight)).item() == pytest.approx(sum(of_the_rows) / 2)


def test_it_is_zero_for_exact_images(objective):
    _, pair = batch()
    x, y, _ = pair
    assert objective(*variances(pair))(Images(y, x, x, y), pair).item() == pytest.approx(0.0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_it_is_one_for_the_means(direction):
    _, pair = batch()
    x, y, _ = pair
    means = Images(torch.zeros_like(y), torch.zeros_like(x))
    loss = BijectionLoss(*variances(pair), direction=direction)
    assert loss(means, pair).item() == pytest.approx(1.0)


def test_a_row_of_weight_two_is_two_rows(objective):
    images, (x, y, weight) = batch()
    loss, twice = objective(2.0, 3.0), torch.tensor([0, 1, 1, *range(2, 9)])
    heavy = weight.clone()
    heavy[1] = 2.0
    repeated = Images(*(part[twice] for part in images)), (x[twice], y[twice], torch.ones(10))
    expected = loss(*repeated).item()
    assert loss(images, (x, y, heavy / heavy.mean())).item() == pytest.approx(expected)
    assert loss(images, (x, y, weight)).item() != pytest.approx(expected)


def test_a_row_of_weight_zero_is_no_row(objective):
    images, (x, y, _) = batch()
    loss, weight = objective(2.0, 3.0), torch.ones(9, dtype=torch.float64)
    weight[4:] = 0.0
    few = Images(*(part[:4] for part in images)), (x[:4], y[:4], torch.ones(4))
    assert loss(images, (x, y, weight / weight.mean())).item() == pytest.approx(loss(*few).item())


@pytest.mark.parametrize("terms", TERMS)
def test_symmetric_is_halfway_between_the_two_directions(terms):
    images, pair = batch()
    forward, backward, symmetric = (
        BijectionLoss(2.0, 3.0, direction, **TERMS[terms])(images, pair).item()
        for direction in ("forward", "backward", "symmetric")
    )
    assert symmetric == pytest.approx((forward + backward) / 2)
    assert forward != pytest.approx(backward)


def test_each_term_adds_in_proportion_to_its_weight():
    images, pair = batch()
    plain = BijectionLoss(2.0, 3.0)(images, pair).item()
    for term in ("cycle", "cosine"):
        once, thrice = (
            BijectionLoss(2.0, 3.0, **{term: weight})(images, pair).item() - plain
            for weight in (0.2, 0.6)
        )
        assert thrice == pytest.approx(3 * once)
        assert once > 0.01


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_swapping_the_spaces_swaps_the_directions(direction, terms):
    other = {"forward": "backward", "backward": "forward"}.get(direction, direction)
    images, (x, y, weight) = batch()
    swapped = Images(images.inverse, images.forward, images.cycle_y, images.cycle_x)
    expected = BijectionLoss(2.0, 3.0, direction, **TERMS[terms])(images, (x, y, weight))
    found = BijectionLoss(3.0, 2.0, other, **TERMS[terms])(swapped, (y, x, weight))
    torch.testing.assert_close(found, expected)


def test_units_and_rotations_do_not_matter(objective):
    images, (x, y, weight) = batch()
    turn = torch.linalg.qr(rows(3, 3, 7) + torch.eye(3, dtype=torch.float64)).Q
    moved = Images(
        images.forward * 1000, images.inverse @ turn, images.cycle_x @ turn, images.cycle_y * 1000
    )
    expected = objective(2.0, 3.0)(images, (x, y, weight))
    torch.testing.assert_close(objective(2.0, 3.0e6)(moved, (x @ turn, y * 1000, weight)), expected)


def test_zeros_that_fill_rows_up_are_not_predicted(objective):
    images, (x, y, weight) = batch()
    filled = [torch.nn.functional.pad(part, (0, 2)) for part in (x, y)]
    expected = objective(2.0, 3.0)(images, (x, y, weight))
    assert objective(2.0, 3.0)(images, (*filled, weight)) == expected


def test_what_nobody_asks_for_may_be_missing():
    images, pair = batch()
    for direction, unused in (("forward", "inverse"), ("backward", "forward")):
        loss = BijectionLoss(2.0, 3.0, direction)
        bare = images._replace(**{unused: None, "cycle_x": None, "cycle_y": None})
        assert loss(bare, pair) == loss(images, pair)


@pytest.mark.parametrize("missing", ["cycle_x", "cycle_y"])
def test_the_cycle_term_needs_round_trips(missing):
    images, pair = batch()
    with pytest.raises(ValueError, match="cycle term needs round trips: the network gave none"):
        BijectionLoss(cycle=0.1)(images._replace(**{missing: None}), pair)


def test_gradients_reach_every_image_that_counts_and_are_finite_at_the_means():
    _, pair = batch()
    x, y, _ = pair
    images = Images(*(torch.zeros_like(part, requires_grad=True) for part in (y, x, x, y)))
    BijectionLoss(2.0, 3.0, **TERMS["both"])(images, pair).backward()
    for image in images:
        assert image.grad.isfinite().all()
        assert image.grad.any()


def test_nothing_is_changed_and_nothing_is_learned(objective):
    images, pair = batch()
    kept = [part.clone() for part in (*images, *pair)]
    loss = objective(2.0, 3.0)
    loss(images, pair)
    assert all(map(torch.equal, (*images, *pair), kept))
    assert not list(loss.parameters())
