"""Oracles of the kernels for images, order, scans and data-dependent indices."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "argmax",
    "conv2d",
    "cummax",
    "cumsum",
    "depthwise_conv2d",
    "embedding",
    "histogram",
    "max_pool2d",
    "median3x3",
    "segment_sum",
    "sobel",
    "sort",
    "topk",
]

Array = np.ndarray[Any, Any]
Pair = int | tuple[int, int]


def _exact(x: Array) -> Array:
    """For sums: integers in 64 bits, floats in float64."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


def _comparable(x: Array) -> Array:
    """For comparisons: integers as they are, floats in float64."""
    return x if x.dtype.kind in "iu" else x.astype(np.float64)


def _windows(x: Array, extents: Pair, stride: Pair, padding: Pair, fill: float) -> Array:
    """All windows of the last two axes, shape ``(..., OH, OW, R, S)``."""
    (R, S), (sh, sw), (ph, pw) = (np.broadcast_to(v, 2) for v in (extents, stride, padding))
    borders = ((0, 0),) * (x.ndim - 2) + ((ph, ph), (pw, pw))
    padded = np.pad(x, borders, constant_values=fill)
    height, width = padded.shape[-2:]
    rows = np.arange(0, max(0, height - R + 1), sh)[:, None] + np.arange(R)
    columns = np.arange(0, max(0, width - S + 1), sw)[:, None] + np.arange(S)
    return padded[..., rows[:, None, :, None], columns[None, :, None, :]]


def conv2d(X: Array, W: Array, *, stride: Pair = 1, padding: Pair = 0) -> Array:
    """Cross-correlation of all windows with all filters."""
    windows = _windows(_exact(X), W.shape[2:], stride, padding, 0)
    result: Array = np.einsum("ncijrs,fcrs->nfij", windows, _exact(W))
    return result


def depthwise_conv2d(X: Array, W: Array, *, stride: Pair = 1, padding: Pair = 0) -> Array:
    """:func:`conv2d` of each channel with its own filters, of shape ``(F, 1, R, S)`` or ``(F, R, S)``."""
    filters = _exact(W).reshape(W.shape[0], *W.shape[-2:])
    channels = np.repeat(_exact(X), len(filters) // max(X.shape[1], 1), axis=1)
    windows = _windows(channels, filters.shape[1:], stride, padding, 0)
    result: Array = np.einsum("nfijrs,frs->nfij", windows, filters)
    return result


def max_pool2d(X: Array, *, kernel: Pair, stride: Pair | None = None, padding: Pair = 0) -> Array:
    """Largest element of each window; padding never wins."""
    x = _comparable(X)
    fill = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    windows = _windows(x, kernel, kernel if stride is None else stride, padding, fill)
    result: Array = windows.max(axis=(-2, -1))
    return result


def _neighbourhoods(X: Array) -> Array:
    """The 3×3 window of each pixel, shape ``(..., H, W, 3, 3)``; border pixels repeat beyond the border."""
    if X.size == 0:
        return np.zeros((*X.shape, 3, 3))
    padded = np.pad(_comparable(X), ((0, 0),) * (X.ndim - 2) + ((1, 1), (1, 1)), mode="edge")
    return _windows(padded, 3, 1, 0, 0)


def sobel(X: Array) -> Array:
    """Magnitude of the Sobel gradient."""
    windows = _neighbourhoods(X).astype(np.float64)
    sides = windows[..., :, [0, 2]]
    ends = windows[..., [0, 2], :]
    smooth = np.array([1.0, 2.0, 1.0])
    gx = np.einsum("...rs,r,s->...", sides, smooth, [-1.0, 1.0])
    gy = np.einsum("...rs,r,s->...", ends, [-1.0, 1.0], smooth)
    magnitude: Array = np.hypot(gx, gy)
    return magnitude


def median3x3(X: Array) -> Array:
    """Median of each pixel's window; NaN if one is in it."""
    result: Array = np.median(_neighbourhoods(X).reshape(*X.shape, 9), axis=-1)
    return result


def sort(X: Array) -> tuple[Array, Array]:
    """Rows in ascending order and the positions of their elements; stable, NaN last."""
    order = np.argsort(_comparable(X), axis=-1, kind="stable")
    return np.take_along_axis(X, order, axis=-1), order


def topk(X: Array, *, k: int) -> tuple[Array, Array]:
    """The largest elements, largest first, NaN before them, ties by position."""
    # Ascending from the back and read from the back, so that ties end up by position.
    backwards = np.argsort(_comparable(X)[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = (X.shape[-1] - 1 - backwards)[..., :k]
    return np.take_along_axis(X, order, axis=-1), order


def argmax(X: Array) -> Array:
    """Position of the first NaN, else of the first largest element."""
    result: Array = np.argmax(_comparable(X), axis=-1)
    return result


def cumsum(X: Array) -> Array:
    """Running sums of the rows, integers in 64 bits."""
    return np.cumsum(_exact(X), axis=-1)


def cummax(X: Array) -> Array:
    """Running maxima of the rows."""
    return np.maximum.accumulate(_comparable(X), axis=-1)


def segment_sum(X: Array, segments: Array, *, count: int) -> Array:
    """Sums of the rows of ``count`` segments; rows of other segments are left out."""
    rows = _exact(X)
    inside = (segments >= 0) & (segments < count)
    sums: Array = np.zeros((count, X.shape[1]), rows.dtype)
    np.add.at(sums, segments[inside].astype(np.int64), rows[inside])
    return sums


def histogram(X: Array, *, bins: int) -> Array:
    """How often each of the integers ``0..bins-1`` occurs."""
    values = X[X >= 0].astype(np.int64)
    return np.bincount(values[values < bins], minlength=bins)[:bins]


def embedding(ids: Array, table: Array) -> Array:
    """Rows of the table by id; zeros for an id that it does not have."""
    known = (ids >= 0) & (ids < len(table))
    rows: Array = np.zeros((*ids.shape, table.shape[1]), table.dtype)
    rows[known] = table[ids[known].astype(np.int64)]
    return rows
