"""What the rows of a space span, and what a rotation does with the rest of it."""

from __future__ import annotations

import numpy as np

from .._linalg import principal_axes
from .._moments import SpaceMoments
from ._cca import Array


def spanned(moments: SpaceMoments, number: int) -> Array:
    """Orthonormal directions in which the rows of a space vary, in the coordinates of its products."""
    return principal_axes(moments.between(number, number), moments.noise[number])[1]


def completed(
    rotation: Array, span: Array, axes: Array | None, width: int, *, allow_reflection: bool
) -> Array:
    """The rotation of all columns of a space into all of the template, whatever its rows span.

    What the rows leave free is turned to what their image leaves free in the template, as near as can be
    to one fixed matrix that is in no special position to any of them. So it depends on these two alone,
    neither on the other spaces nor on their order, and equal spaces are completed alike.

    Parameters
    ----------
    rotation : ndarray of shape (n_inner, n_inner_template)
        In the coordinates of the products.
    span : ndarray of shape (n_inner, rank)
        What the rows span, in these coordinates.
    axes : ndarray of shape (width_k, n_inner) or None
        The coordinates, in columns of the space; None are its columns.
    width : int
        That of the template.
    allow_reflection : bool

    Returns
    -------
    whole : ndarray of shape (width_k, width)
    """
    there = span if axes is None else axes @ span
    image = np.zeros((width, there.shape[1]))
    image[: rotation.shape[1]] = rotation.T @ span
    whole = there @ image.T
    if there.shape[0] == there.shape[1]:
        return whole
    proper = not allow_reflection and len(there) == width
    return whole + _between_the_rests(_beside(there), _beside(image), whole if proper else None)


def _between_the_rests(rest: Array, free: Array, proper_with: Array | None) -> Array:
    """What turns `rest` into `free`, proper together with what turns the others, if that is given."""
    toward = np.random.default_rng(0).normal(size=(len(rest), len(free)))
    U, _, Vt = np.linalg.svd(rest.T @ toward @ free, full_matrices=False)
    turn: Array = rest @ U @ Vt @ free.T
    if proper_with is not None and np.linalg.det(proper_with + turn) < 0:
        # The last of them is reflected at the least cost.
        turn -= 2 * np.outer(rest @ U[:, -1], free @ Vt[-1])
    return turn


def _beside(frame: Array) -> Array:
    """Orthonormal columns that complete those of `frame` to the whole space."""
    complete: Array = np.linalg.qr(frame, mode="complete").Q
    return complete[:, frame.shape[1] :]
