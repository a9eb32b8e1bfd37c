"""Attention that never stores the score matrix."""

from __future__ import annotations

import math
from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.rows import accumulator_dtype

__all__ = ["attention"]


@tt.kernel
def attention(
    Q: Any,
    K: Any,
    V: Any,
    O: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    bq: int = 32,
    bk: int = 32,
) -> None:
    """Flash attention: ``O = softmax(scale · Q Kᵀ) V`` with an online softmax.

    For each block of queries a pass over blocks of keys carries the running row maximum, the running
    row sum and the running output, rescaled whenever the maximum grows (Dao et al., FlashAttention,
    2022; Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).

    Parameters
    ----------
    Q
        Shape ``(batch, heads, queries, dim)``, a float dtype.
    K, V
        Shapes ``(batch, key_heads, keys, dim)`` and ``(batch, key_heads, keys, dim_v)``; ``heads`` is a
        multiple of ``key_heads``, and consecutive query heads share a key head.
    O
        Output, shape ``(batch, heads, queries, dim_v)``.
    causal
        Query ``i`` sees keys ``0..i`` only: the first query aligns with the first key. Blocks of keys that
        no query of a block sees are not visited.
    scale
        Factor of the scores; ``1 / sqrt(dim)`` if not given.
    bq, bk
        Queries and keys handled at a time.

    Notes
    -----
    Scores and sums are float32 for 16-bit floats. A query that sees no key (``keys == 0``) gives zeros.
    """
    batch, heads, queries, dim = Q.shape
    key_heads, keys, dim_v = K.shape[1], K.shape[2], V.shape[3]
    assert K.shape == (batch, key_heads, keys, dim), f"K has shape {K.shape}, Q has {Q.shape}"
    assert V.shape == (batch, key_heads, keys, dim_v), f"V has shape {V.shape}, K has {K.shape}"
    assert O.shape == (batch, heads, queries, dim_v), (
        f"O has shape {O.shape}, not {(batch, heads, queries, dim_v)}"
    )
    assert key_heads and heads % key_heads == 0, (
        f"{heads} query heads do not share {key_heads} key heads evenly"
    )
    group = heads // key_heads
    factor = 1.0 / math.sqrt(max(dim, 1)) if scale is None else scale
    dtype = accumulator_dtype(Q.dtype)
    lowest = float("-inf")
    for b, h, i in tt.parallel(batch, heads, tt.cdiv(queries, bq)):
        q = Q[b, h, tt.ds(i * bq, bq), :].astype(dtype) * factor
        top = tt.full((bq,), lowest, dtype)
        total = tt.zeros((bq,), dtype)
        out = tt.zeros((bq, dim_v), dtype)
        blocks = tt.cdiv(keys, bk)
        seen = tt.minimum(blocks, tt.cdiv((i + 1) * bq, bk)) if causal else blocks
        for j in tt.pipeline(seen):
            tt.stage("scores")
            k = K[b, h // group, tt.ds(j * bk, bk), :].astype(dtype)
            s = tt.matmul(q, k.T)
            column = j * bk + tt.iota(bk, "int64")[None, :]
            row = i * bq + tt.iota(bq, "int64")[:, None]
            visible = (column < keys) & (column <= row) if causal else column < keys
            s = tt.where(visible, s, lowest)
            tt.stage("accumulate")
            v = V[b, h // group, tt.ds(j * bk, bk), :].astype(dtype)
            new_top = tt.maximum(top, tt.max(s, axis=1))
            shift = tt.where(new_top == lowest, 0.0, new_top)
            p = tt.exp(s - shift[:, None])
            decay = tt.exp(top - shift)
            total = total * decay + tt.sum(p, axis=1)
            out = tt.mma(p, v, out * decay[:, None])
            top = new_top
        inverse = tt.where(total == 0.0, 0.0, 1.0 / total)
        O[b, h, tt.ds(i * bq, bq), :] = (out * inverse[:, None]).astype(O.dtype)
