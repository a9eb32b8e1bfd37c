"""Oracles of matrix products, kernels on rows, attention and losses: float64 NumPy, by the kernels' names.

They return new arrays and are written for plainness, in another way than the kernels: whole arrays, no
blocks, no running state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "attention",
    "batched_gemm",
    "bias_gelu_residual",
    "col_sum",
    "cross_entropy",
    "decode_attention",
    "gemm",
    "gemm_bias_act",
    "gemm_int8",
    "gemv",
    "knn",
    "layernorm",
    "log_softmax",
    "masked_attention",
    "residual_layernorm",
    "rmsnorm",
    "rope",
    "row_sum",
    "softmax",
    "swiglu",
    "transpose",
]

Array = np.ndarray[Any, Any]


def _exact(x: Array) -> Array:
    """Integers stay integers (64 bits), floats become float64."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


def gemm(A: Array, B: Array) -> Array:
    """``A @ B``, batch axes included."""
    product: Array = _exact(A) @ _exact(B)
    return product


batched_gemm = gemv = gemm


def gemm_bias_act(A: Array, B: Array, bias: Array, *, act: str = "none") -> Array:
    """``act(A @ B + bias)``."""
    return _activation(act, gemm(A, B) + _exact(bias))


def gemm_int8(A: Array, B: Array, scale_a: Array, scale_b: Array) -> Array:
    """Integer product times the scales of its row and column."""
    scaled: Array = gemm(A, B) * np.outer(scale_a.astype(np.float64), scale_b.astype(np.float64))
    return scaled


def _activation(name: str, x: Array) -> Array:
    match name:
        case "relu":
            return np.maximum(x, 0.0)
        case "gelu":
            erf: Array = np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2.0))
            return x * 0.5 * (1.0 + erf)
        case "gelu_tanh":
            return x * 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
        case "silu":
            with np.errstate(over="ignore"):
                return x / (1.0 + np.exp(-x))
        case _:
            return x


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


def log_softmax(X: Array) -> Array:
    """``x - log Σ exp(x)`` over the last axis; a row of only ``-inf`` stays as it is."""
    x = X.astype(np.float64)
    total = np.logaddexp.reduce(x, axis=-1, keepdims=True)
    logarithms: Array = x - np.where(np.isneginf(total), 0.0, total)
    return logarithms


def layernorm(X: Array, gamma: Array, beta: Array, *, eps: float = 1e-5) -> Array:
    """Layer normalization over the last axis with the biased variance."""
    x = X.astype(np.float64)
    if x.shape[-1] == 0:
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    normalized: Array = centred * scale * gamma.astype(np.float64) + beta.astype(np.float64)
    return normalized


def residual_layernorm(X: Array, R: Array, gamma: Array, beta: Array, *, eps: float = 1e-5) -> Array:
    """Layer normalization of ``X + R``."""
    return layernorm(X.astype(np.float64) + R.astype(np.float64), gamma, beta, eps=eps)


def rmsnorm(X: Array, gamma: Array, *, eps: float = 1e-6) -> Array:
    """Rows over the root of their mean square."""
    x = X.astype(np.float64)
    if x.shape[-1] == 0:
        return x
    scaled: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * gamma.astype(np.float64)
    return scaled


def bias_gelu_residual(X: Array, bias: Array, R: Array) -> Array:
    """``gelu(X + bias) + R`` with the exact gelu."""
    return _activation("gelu", _exact(X) + _exact(bias)) + _exact(R)


def swiglu(X: Array, G: Array) -> Array:
    """``X`` times the silu of the gate ``G``."""
    return _exact(X) * _activation("silu", _exact(G))


def rope(X: Array, cos: Array, sin: Array) -> Array:
    """Pairs ``(x[i], x[i + dim/2])`` as complex numbers, turned."""
    a, b = np.split(X.astype(np.float64), 2, axis=-1)
    turned = (a + 1j * b) * (cos.astype(np.float64) + 1j * sin.astype(np.float64))
    return np.concatenate((turned.real, turned.imag), axis=-1)


def attention(Q: Array, K: Array, V: Array, *, causal: bool = False, scale: float | None = None) -> Array:
    """Softmax attention with the whole score matrix; key heads are repeated for their query heads."""
    visible = np.ones((Q.shape[2], K.shape[2]), bool)
    return masked_attention(Q, K, V, np.tril(visible) if causal else visible, scale=scale)


def masked_attention(Q: Array, K: Array, V: Array, mask: Array, *, scale: float | None = None) -> Array:
    """Attention with a bool mask, or one that is added to the scores."""
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
    scores = factor * np.einsum("bhqd,bhkd->bhqk", q, k)
    scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
    output: Array = np.einsum("bhqk,bhkd->bhqd", softmax(scores), v)
    return output


def decode_attention(Q: Array, K: Array, V: Array, lengths: Array, *, scale: float | None = None) -> Array:
    """Attention of one query a sequence on its first ``lengths`` keys, sequence by sequence."""
    queries = Q.reshape(*Q.shape[:2], 1, Q.shape[-1])
    rows: list[Array] = [
        attention(queries[[b]], K[[b], :, : max(int(n), 0)], V[[b], :, : max(int(n), 0)], scale=scale)
        for b, n in enumerate(lengths)
    ]
    shape = (*Q.shape[:-1], V.shape[-1])
    return np.concatenate(rows).reshape(shape) if rows else np.zeros(shape)


def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Loss and gradient of each row; zeros where the label is no class."""
    classes = logits.shape[-1]
    known = (labels >= 0) & (labels < classes)
    onehot = np.arange(classes) == np.where(known, labels, -1)[..., None]
    loss: Array = -np.sum(log_softmax(logits), axis=-1, where=onehot, initial=0.0)
    gradient: Array = np.where(known[..., None], softmax(logits) - onehot, 0.0)
    return loss, gradient


def row_sum(X: Array) -> Array:
    """Sum over the last axis."""
    total: Array = _exact(X).sum(axis=-1)
    return total


def col_sum(X: Array) -> Array:
    """Sum over the last axis but one."""
    total: Array = _exact(X).sum(axis=-2)
    return total


def transpose(X: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(X, -1, -2).copy()


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
