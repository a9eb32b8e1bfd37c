"""Transposition of matrices."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt

__all__ = ["transpose"]


@tt.kernel
def transpose(X: Any, Y: Any, *, bm: int = 32, bn: int = 32) -> None:
    """Exchange the last two axes: ``Y[..., j, i] = X[..., i, j]``.

    A tile at a time, so that a cache holds the lines that are read and those that are written.

    Parameters
    ----------
    X
        Shape ``(..., M, N)``, any dtype.
    Y
        Output, shape ``(..., N, M)``, same dtype, other memory than ``X``. Elements are copied bit for bit.
    bm, bn
        Rows and columns that are handled at a time.
    """
    assert X.ndim >= 2, f"X has shape {X.shape}, not (..., M, N)"
    *batch, M, N = X.shape
    assert Y.shape == (*batch, N, M), f"Y has shape {Y.shape}, not {(*batch, N, M)}"
    assert X.dtype == Y.dtype, f"X is {X.dtype}, Y is {Y.dtype}"
    for *matrix, i, j in tt.parallel(*batch, tt.cdiv(M, bm), tt.cdiv(N, bn)):
        rows, columns = tt.ds(i * bm, bm), tt.ds(j * bn, bn)
        Y[(*matrix, columns, rows)] = X[(*matrix, rows, columns)].T
