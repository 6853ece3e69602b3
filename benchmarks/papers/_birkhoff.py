"""The stitching layer of Godfrey et al. (2022), written anew from its description.

A doubly stochastic matrix between two networks is trained for the task by gradient descent, brought back by
Sinkhorn's iteration after each step, and pushed to the corners by a reward for its norm; a diagonal of
positive scales joins it for the second half. It is judged with the matrix rounded to a permutation by the
Hungarian algorithm. Settings are the published ones: 20 epochs of batches of 32, learning rate 0.001, reward
0.1. Only the epochs are shorter, since there are fewer images and units: 300 batches, where there were 1,563.

References
----------
Godfrey, Brown, Emerson and Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS (2022).
"""

import copy

import torch
from _digits import Digits, Perceptron, stitched_accuracy
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

#: In an epoch, and epochs.
BATCHES, EPOCHS = 300, 20


class Birkhoff(nn.Module):
    """A doubly stochastic matrix, and scales.

    Parameters
    ----------
    width : int
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mixing = nn.Parameter(doubly_stochastic(torch.rand(width, width), 100))
        self.scales = nn.Parameter(torch.ones(width))
        self.scaled = False

    def forward(self, states: Tensor) -> Tensor:
        """Mix, or, when judged, permute."""
        weight = self.mixing if self.training else self.permutation()
        return states @ (weight * self.scales if self.scaled else weight).T

    @torch.no_grad()
    def permutation(self) -> Tensor:
        """The nearest corner."""
        rounded = torch.zeros_like(self.mixing)
        rounded[linear_sum_assignment(self.mixing.numpy(), maximize=True)] = 1
        return rounded

    @torch.no_grad()
    def bring_back(self) -> None:
        """Make the matrix doubly stochastic again, and the scales positive."""
        self.mixing.copy_(doubly_stochastic(self.mixing.relu(), 16))
        self.scales.relu_()


def doubly_stochastic(matrix: Tensor, n_times: int) -> Tensor:
    """Divide rows, then columns, by their sums, over and over; sums that are zero are left."""
    for _ in range(n_times):
        for axis in (1, 0):
            sums = matrix.sum(dim=axis, keepdim=True)
            matrix = matrix / torch.where(sums == 0, 1.0, sums)
    return matrix


def published_stitching(
    first: Perceptron,
    second: Perceptron,
    layer: int,
    digits: Digits,
    *,
    batches: int,
    seed: int = 0,
) -> list[float]:
    """Accuracy on the test images after each epoch.

    Parameters
    ----------
    first, second : Perceptron
        What lies below the bridge, and above.
    layer : int
    digits : Digits
    batches : int
        In each epoch.
    seed : int, default=0
        Of the start and the order of the images.
    """
    with torch.no_grad():
        states = first.upto(digits.images, layer)
    second = copy.deepcopy(second).requires_grad_(False)
    accuracies = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        bridge = Birkhoff(states.shape[1])
        optimizer = torch.optim.SGD(
            [{"params": [bridge.mixing]}, {"params": [bridge.scales], "weight_decay": 1e-4}],
            lr=1e-3,
        )
        for epoch in range(EPOCHS):
            bridge.scaled = epoch >= EPOCHS // 2
            bridge.train()
            for _ in range(batches):
                rows = torch.randint(len(states), (32,))
                logits = second.above(bridge(states[rows]), layer)
                _step(bridge, optimizer, nn.functional.cross_entropy(logits, digits.labels[rows]))
            bridge.eval()
            accuracies.append(stitched_accuracy(first, second, layer, bridge, digits))
    return accuracies


def _step(bridge: Birkhoff, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Descend, with the reward, and come back."""
    optimizer.zero_grad()
    (loss - 0.1 * bridge.mixing.norm()).backward()
    optimizer.step()
    bridge.bring_back()
