"""Rows addressed by integers that are data: look-up, summation by segment, counting."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import sum_dtype
from tvm_tile.contrib.kernels.rows import row_extents, row_index

__all__ = ["embedding", "histogram", "segment_sum"]


@tt.kernel
def embedding(ids: Any, table: Any, Y: Any, *, block: int = 1024) -> None:
    """Look up rows of a table: ``Y[..., :] = table[ids[...], :]``.

    Parameters
    ----------
    ids
        Shape ``(...)``, an integer dtype.
    table
        Shape ``(V, D)``, any dtype.
    Y
        Output, shape ``(..., D)``, same dtype as ``table``.
    block
        Elements of a row that are copied at a time.

    Notes
    -----
    An id outside of ``[0, V)``, a negative one included, gives a row of zeros: that is what a load out of
    bounds holds.
    """
    assert "int" in ids.dtype, f"ids are {ids.dtype}, not integers"
    assert table.ndim == 2, f"table has shape {table.shape}, not (V, D)"
    D = table.shape[1]
    assert Y.shape == (*ids.shape, D), f"Y has shape {Y.shape}, not {(*ids.shape, D)}"
    assert Y.dtype == table.dtype, f"table is {table.dtype}, Y is {Y.dtype}"
    width = max(1, min(block, D))
    for *at, j in tt.parallel(*(ids.shape or (1,)), tt.cdiv(D, width)):
        which, columns = tuple(at[: ids.ndim]), tt.ds(j * width, width)
        Y[(*which, columns)] = table[ids[which], columns]


@tt.kernel
def segment_sum(X: Any, segments: Any, Y: Any, *, block: int = 32) -> None:
    """Sum of the rows of each segment: ``Y[s, :] = Σ_{i: segments[i] == s} X[i, :]``.

    Each instance keeps the sums of some columns and goes through the rows in order, so the result does not
    depend on how instances are run.

    Parameters
    ----------
    X
        Shape ``(n, d)``; floats or integers.
    segments
        Shape ``(n,)``, an integer dtype; need not be sorted.
    Y
        Output, shape ``(s, d)``. The sums are kept in the wider of the two dtypes, 32 bits at least (integers
        wrap), and are cast to ``Y``'s dtype once.
    block
        Columns that an instance handles.

    Notes
    -----
    Rows whose segment is outside of ``[0, s)`` count nowhere; a segment without rows is 0.
    """
    assert "int" in segments.dtype, f"segments are {segments.dtype}, not integers"
    assert X.ndim == Y.ndim == 2, f"X {X.shape} and Y {Y.shape} must be (n, d) and (s, d)"
    n, d = X.shape
    assert segments.shape == (n,), f"segments have shape {segments.shape}, not ({n},)"
    assert Y.shape[1] == d, f"Y has rows of {Y.shape[1]} elements, X of {d}"
    width = max(1, min(block, d))
    dtype = sum_dtype(X.dtype, Y.dtype)
    for j in tt.parallel(tt.cdiv(d, width)):
        columns = tt.ds(j * width, width)
        sums = tt.alloc((Y.shape[0], width), dtype)
        sums[:, :] = 0
        for i in tt.serial(n):
            segment = segments[i]
            sums[segment, :] = sums[segment, :] + X[i, columns].astype(dtype)
        Y[:, columns] = sums[:, :].astype(Y.dtype)


@tt.kernel
def histogram(X: Any, Y: Any, *, block: int = 16384) -> None:
    """Count how often each integer occurs: ``Y[b]`` is the number of elements of ``X`` that equal ``b``.

    Each instance counts a part of a row on its own, and adds its counts to the common ones at once.

    Parameters
    ----------
    X
        Shape ``(..., D)``, an integer dtype.
    Y
        Output, shape ``(bins,)``, an integer dtype of 32 or 64 bits; counts wrap.
    block
        Elements of a row that an instance counts, or as many as there are bins if that is more.

    Notes
    -----
    Elements outside of ``[0, bins)`` are not counted.
    """
    assert "int" in X.dtype, f"X is {X.dtype}, not integers"
    assert Y.ndim == 1 and Y.dtype.endswith(("int32", "int64")), f"Y {Y.shape} {Y.dtype} is no row of counts"
    (bins,) = Y.shape
    rows = row_extents(X)
    D = X.shape[-1]
    width = max(1, min(max(block, bins), D))
    Y[:] = 0
    for *row, j in tt.parallel(*rows, tt.cdiv(D, width)):
        counts = tt.alloc((bins,), Y.dtype)
        counts[:] = 0
        for i in tt.serial(tt.minimum(width, D - j * width)):
            x = X[(*row_index(X, tuple(row)), j * width + i)]
            counts[x] = counts[x] + 1
        tt.atomic_add(Y.at[:], counts[:])
