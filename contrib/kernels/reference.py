"""Float64 NumPy oracles of the kernel library, one of the same name for each kernel.

They return new arrays and are written for plainness, in another way than the kernels: whole arrays, no
blocks, no running state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["attention", "gemm", "knn", "layernorm", "softmax"]

Array = np.ndarray[Any, Any]


def _exact(x: Array) -> Array:
    """Integers stay integers (64 bits), floats become float64."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


def gemm(A: Array, B: Array) -> Array:
    """``A @ B``."""
    return _exact(A) @ _exact(B)


def softmax(X: Array) -> Array:
    """Softmax over the last axis; a row of only ``-inf`` gives zeros."""
    x = X.astype(np.float64)
    if x.shape[-1] == 0:
        return x
    with np.errstate(invalid="ignore"):
        top = x.max(axis=-1, keepdims=True)
        e = np.exp(x - np.where(np.isneginf(top), 0.0, top))
        total = e.sum(axis=-1, keepdims=True)
        return np.where(total == 0.0, 0.0, e / np.where(total == 0.0, 1.0, total))


def layernorm(X: Array, gamma: Array, beta: Array, *, eps: float = 1e-5) -> Array:
    """Layer normalization over the last axis with the biased variance."""
    x = X.astype(np.float64)
    if x.shape[-1] == 0:
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    normalized: Array = centred * scale * gamma.astype(np.float64) + beta.astype(np.float64)
    return normalized


def attention(Q: Array, K: Array, V: Array, *, causal: bool = False, scale: float | None = None) -> Array:
    """Softmax attention with the whole score matrix; key heads are repeated for their query heads."""
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
    scores = factor * np.einsum("bhqd,bhkd->bhqk", q, k)
    if causal:
        rows, columns = np.indices(scores.shape[2:])
        scores = np.where(columns <= rows, scores, -np.inf)
    output: Array = np.einsum("bhqk,bhkd->bhqd", softmax(scores), v)
    return output


def knn(queries: Array, points: Array, k: int = 1) -> tuple[Array, Array]:
    """Squared distances and indices of the ``k`` nearest points, nearest first, ties by index."""
    q, p = queries.astype(np.float64), points.astype(np.float64)
    squared = ((q[:, None, :] - p[None, :, :]) ** 2).sum(axis=2)
    squared = np.where(np.isnan(squared), np.inf, squared)
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(squared, order, axis=1)
    order = np.where(np.isinf(best), -1, order)
    missing = k - order.shape[1]
    return (
        np.pad(best, ((0, 0), (0, missing)), constant_values=np.inf),
        np.pad(order, ((0, 0), (0, missing)), constant_values=-1),
    )
