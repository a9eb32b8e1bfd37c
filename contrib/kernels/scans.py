"""Running sums and maxima along the last axis."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import sum_dtype
from tvm_tile.contrib.kernels.order import lowest
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents

__all__ = ["cummax", "cumsum"]


@tt.kernel
def cumsum(X: Any, Y: Any, *, block: int = 64) -> None:
    """Running sums of each row: ``Y[..., i] = X[..., 0] + ... + X[..., i]``.

    Parameters
    ----------
    X
        Shape ``(..., D)``; floats or integers.
    Y
        Output, same shape; may be the same array. The sums are kept in the wider of the two dtypes, 32 bits
        at least (integers wrap), and every one is cast to ``Y``'s dtype once.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    A NaN, or infinities of both signs, make the rest of the row NaN.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    dtype = sum_dtype(X.dtype, Y.dtype)
    rows, width = row_extents(X), block_width(X, block)
    for row in tt.parallel(*rows):
        total = tt.zeros((), dtype)
        for j in tt.serial(tt.cdiv(X.shape[-1], width)):
            at = row_block(X, row, j, width)
            sums = total + tt.cumsum(X[at].astype(dtype))
            Y[at] = sums.astype(Y.dtype)
            total = sums[width - 1]


@tt.kernel
def cummax(X: Any, Y: Any, *, block: int = 64) -> None:
    """Running maxima of each row: ``Y[..., i]`` is the largest of ``X[..., 0]`` to ``X[..., i]``.

    Parameters
    ----------
    X
        Shape ``(..., D)``; floats or integers.
    Y
        Output, same shape and dtype; may be the same array.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    A NaN makes the rest of the row NaN, as in ``numpy.maximum.accumulate``.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    assert X.dtype == Y.dtype, f"X is {X.dtype}, Y is {Y.dtype}"
    rows, width = row_extents(X), block_width(X, block)
    for row in tt.parallel(*rows):
        top = tt.full((), lowest(X.dtype), X.dtype)
        for j in tt.serial(tt.cdiv(X.shape[-1], width)):
            at = row_block(X, row, j, width)
            tops = tt.maximum(top, tt.cummax(X[at]))
            Y[at] = tops
            top = tops[width - 1]
