"""Softmax over the last axis, and its logarithm."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.checks import require_floats
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents

__all__ = ["exponential_sum", "log_of_sum", "log_softmax", "reciprocal_of_sum", "softmax"]

LOWEST = float("-inf")


def exponential_sum(X: Any, row: Any, width: int) -> tuple[Any, Any]:
    """A row's maximum, and the sum of the exponentials of its elements less that maximum.

    One pass keeps both: when the maximum grows, the sum is rescaled (Milakov and Gimelshein, Online
    normalizer calculation for softmax, 2018).

    Returns
    -------
    base, total
        Scalars in the accumulator's dtype. ``(0, 0)`` for a row without elements above ``-inf``.
    """
    dtype = accumulator_dtype(X.dtype)
    top = tt.full((), LOWEST, dtype)
    total = tt.zeros((), dtype)
    for k in tt.serial(tt.cdiv(X.shape[-1], width)):
        x = X.at[row_block(X, row, k, width)].load(fill=LOWEST).astype(dtype)
        new_top = tt.maximum(top, tt.max(x))
        shift = tt.where(new_top == LOWEST, 0.0, new_top)
        total = total * tt.exp(top - shift) + tt.sum(tt.exp(x - shift))
        top = new_top
    return tt.where(top == LOWEST, 0.0, top), total


def reciprocal_of_sum(total: Any) -> Any:
    """``1 / total``; 0 for the sum of a row without elements above ``-inf``, so that its softmax is zeros."""
    return tt.where(total == 0.0, 0.0, 1.0 / total)


def log_of_sum(total: Any) -> Any:
    """``log(total)``; 0 for the sum of a row without elements above ``-inf``, so that ``-inf`` stays."""
    return tt.where(total == 0.0, 0.0, tt.log(total))


@tt.kernel
def softmax(X: Any, Y: Any, *, block: int = 1024) -> None:
    """Softmax of each row: ``Y[..., i] = exp(X[..., i]) / Σ_j exp(X[..., j])``.

    Parameters
    ----------
    X
        Shape ``(..., D)``, a float dtype.
    Y
        Output, same shape, a float dtype; may be the same array as ``X``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    A row of only ``-inf`` (fully masked) gives zeros. A NaN or ``+inf`` in a row makes the row NaN.
    16-bit floats are computed in float32 and rounded once.
    """
    rows = row_extents(X)
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    require_floats(X=X, Y=Y)
    width = block_width(X, block)
    for row in tt.parallel(*rows):
        base, total = exponential_sum(X, row, width)
        scale = reciprocal_of_sum(total)
        for k in tt.serial(tt.cdiv(X.shape[-1], width)):
            at = row_block(X, row, k, width)
            Y[at] = (tt.exp(X[at].astype(base.dtype) - base) * scale).astype(Y.dtype)


@tt.kernel
def log_softmax(X: Any, Y: Any, *, block: int = 1024) -> None:
    """Logarithm of the softmax of each row: ``Y[..., i] = X[..., i] - log Σ_j exp(X[..., j])``.

    Parameters
    ----------
    X
        Shape ``(..., D)``, a float dtype.
    Y
        Output, same shape, a float dtype; may be the same array as ``X``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    A row of only ``-inf`` (fully masked) gives ``-inf``, the logarithm of the zeros of :func:`softmax`. A NaN
    or ``+inf`` in a row makes the row NaN. 16-bit floats are computed in float32 and rounded once.
    """
    rows = row_extents(X)
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    require_floats(X=X, Y=Y)
    width = block_width(X, block)
    for row in tt.parallel(*rows):
        base, total = exponential_sum(X, row, width)
        log_total = log_of_sum(total)
        for k in tt.serial(tt.cdiv(X.shape[-1], width)):
            at = row_block(X, row, k, width)
            # In this order: the difference is small, and loses nothing where the row is far from zero.
            Y[at] = ((X[at].astype(base.dtype) - base) - log_total).astype(Y.dtype)
