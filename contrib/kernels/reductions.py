"""Sums over one axis of arrays."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import sum_dtype
from tvm_tile.contrib.kernels.broadcasting import entry
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents, row_index

__all__ = ["col_sum", "row_sum"]


@tt.kernel
def row_sum(X: Any, y: Any, *, block: int = 1024) -> None:
    """Sum of each row: ``y[...] = Σ_i X[..., i]``.

    Parameters
    ----------
    X
        Shape ``(..., D)``; floats or integers.
    y
        Output, shape ``(...)``. The sum is kept in the wider of the two dtypes, 32 bits at least (integers
        wrap), and is cast to ``y``'s dtype once. ``D == 0`` gives zeros.
    block
        Elements of a row that are handled at a time.
    """
    rows = row_extents(X)
    assert y.shape == X.shape[:-1], f"y has shape {y.shape}, not {X.shape[:-1]}"
    width = block_width(X, block)
    dtype = sum_dtype(X.dtype, y.dtype)
    for row in tt.parallel(*rows):
        total = tt.zeros((), dtype)
        for k in tt.serial(tt.cdiv(X.shape[-1], width)):
            total = total + tt.sum(X[row_block(X, row, k, width)].astype(dtype))
        y[row_index(X, row)] = total.astype(y.dtype)


@tt.kernel
def col_sum(X: Any, y: Any, *, bm: int = 16, bn: int = 128) -> None:
    """Sum of each column: ``y[..., j] = Σ_i X[..., i, j]``.

    Parameters
    ----------
    X
        Shape ``(..., M, N)``; floats or integers.
    y
        Output, shape ``(..., N)``. The sum is kept in the wider of the two dtypes, 32 bits at least (integers
        wrap), and is cast to ``y``'s dtype once. ``M == 0`` gives zeros.
    bm, bn
        Rows and columns that are handled at a time.
    """
    assert X.ndim >= 2, f"X has shape {X.shape}, not (..., M, N)"
    *batch, M, N = X.shape
    assert y.shape == (*batch, N), f"y has shape {y.shape}, not {(*batch, N)}"
    width = max(1, min(bn, N))
    dtype = sum_dtype(X.dtype, y.dtype)
    for *at, j in tt.parallel(*(batch or (1,)), tt.cdiv(N, width)):
        matrix, columns = entry(batch, at), tt.ds(j * width, width)
        sums = tt.zeros((width,), dtype)
        for i in tt.serial(tt.cdiv(M, bm)):
            x = X[(*matrix, tt.ds(i * bm, bm), columns)].astype(dtype)
            sums = sums + tt.sum(x, axis=0)
        y[(*matrix, columns)] = sums.astype(y.dtype)
