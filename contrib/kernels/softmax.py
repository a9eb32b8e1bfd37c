"""Softmax over the last axis."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.rows import accumulator_dtype, row_extents, row_index

__all__ = ["softmax"]


@tt.kernel
def softmax(X: Any, Y: Any, *, block: int = 1024) -> None:
    """Softmax of each row: ``Y[..., i] = exp(X[..., i]) / sum_j exp(X[..., j])``.

    One pass over a row keeps a running maximum and a running sum scaled to it, a second one writes.

    Parameters
    ----------
    X
        Shape ``(..., D)``, a float dtype.
    Y
        Output, same shape; may be the same array as ``X``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    A row of only ``-inf`` (fully masked) gives zeros. A NaN or ``+inf`` in a row makes the row NaN.
    16-bit floats are computed in float32 and rounded once.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    D = X.shape[-1] if X.ndim else 0
    width = max(1, min(block, D))
    dtype = accumulator_dtype(X.dtype)
    lowest = float("-inf")
    for row in tt.parallel(*row_extents(X)):
        top = tt.full((), lowest, dtype)
        total = tt.zeros((), dtype)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X.at[(*row_index(X, row), tt.ds(k * width, width))].load(fill=lowest).astype(dtype)
            new_top = tt.maximum(top, tt.max(x))
            shift = tt.where(new_top == lowest, 0.0, new_top)
            total = total * tt.exp(top - shift) + tt.sum(tt.exp(x - shift))
            top = new_top
        base = tt.where(top == lowest, 0.0, top)
        scale = tt.where(total == 0.0, 0.0, 1.0 / total)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X.at[(*row_index(X, row), tt.ds(k * width, width))].load(fill=lowest).astype(dtype)
            y = tt.exp(x - base) * scale
            Y[(*row_index(Y, row), tt.ds(k * width, width))] = y.astype(Y.dtype)
