"""Attention that never stores the score matrix.

For a block of queries, a pass over blocks of keys carries the running maximum of the scores, the running sum
of exponentials and the running output, rescaled whenever a maximum grows (Dao et al., FlashAttention, 2022;
Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). The kernels differ in the keys that
a query sees.
"""

from __future__ import annotations

import math
from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.broadcasting import broadcast_extents, entry
from tvm_tile.contrib.kernels.checks import require_floats
from tvm_tile.contrib.kernels.softmax import LOWEST, reciprocal_of_sum

__all__ = ["attention", "decode_attention", "masked_attention"]


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
    """Softmax attention: ``O = softmax(scale · Q Kᵀ) V``.

    Parameters
    ----------
    Q
        Shape ``(batch, heads, queries, dim)``, a float dtype.
    K, V
        Shapes ``(batch, key_heads, keys, dim)`` and ``(batch, key_heads, keys, dim_v)``, same dtype as ``Q``;
        ``heads`` is a multiple of ``key_heads``, and consecutive query heads share a key head.
    O
        Output, shape ``(batch, heads, queries, dim_v)``, a float dtype.
    causal
        Query ``i`` sees keys ``0..i`` only: the first query aligns with the first key. Blocks of keys that
        no query of a block sees are not visited.
    scale
        Factor of the scores; ``1 / sqrt(dim)`` if not given.
    bq, bk
        Queries and keys handled at a time.

    Notes
    -----
    Scores and sums are float32 for 16-bit floats, and the output is rounded once. A query that sees no key
    (``keys == 0``) gives zeros.
    """
    group = _query_heads_per_key_head(Q, K, V, O)
    assert Q.ndim == 4, f"Q has shape {Q.shape}, not (batch, heads, queries, dim)"
    batch, heads, queries, _ = Q.shape
    keys, dim_v = V.shape[2:]
    dtype = accumulator_dtype(Q.dtype)
    for b, h, i in tt.parallel(batch, heads, tt.cdiv(queries, bq)):
        rows = tt.ds(i * bq, bq)
        q = Q[b, h, rows, :].astype(dtype) * _scale_of_scores(Q, scale)
        top, total, out = _nothing_seen(bq, dim_v, dtype)
        blocks = tt.cdiv(keys, bk)
        seen = tt.minimum(blocks, tt.cdiv((i + 1) * bq, bk)) if causal else blocks
        for j in tt.pipeline(seen):
            columns = tt.ds(j * bk, bk)
            tt.stage("scores")
            s = _scores(q, K[b, h // group, columns, :])
            key = j * bk + tt.iota(bk, "int64")
            query = i * bq + tt.iota(bq, "int64")[:, None]
            visible = (key < keys) & (key <= query) if causal else key < keys
            tt.stage("accumulate")
            s = tt.where(visible, s, LOWEST)
            top, total, out = _see(s, V[b, h // group, columns, :], top, total, out)
        O[b, h, rows, :] = _normalized(total, out).astype(O.dtype)


@tt.kernel
def masked_attention(
    Q: Any,
    K: Any,
    V: Any,
    mask: Any,
    O: Any,
    *,
    scale: float | None = None,
    bq: int = 32,
    bk: int = 32,
) -> None:
    """Softmax attention with a mask: ``O = softmax(scale · Q Kᵀ + mask) V``.

    Parameters
    ----------
    Q, K, V, O
        As in :func:`attention`.
    mask
        Broadcasts to ``(batch, heads, queries, keys)`` as in NumPy. A bool is true where the query sees the
        key; a float is added to the score.
    scale, bq, bk
        As in :func:`attention`.

    Notes
    -----
    A fully masked query (false, or ``-inf``, at every key) gives zeros. A key that is masked for some query
    still takes part with weight 0, so its value must be finite. Else as :func:`attention`.
    """
    group = _query_heads_per_key_head(Q, K, V, O)
    assert Q.ndim == 4, f"Q has shape {Q.shape}, not (batch, heads, queries, dim)"
    batch, heads, queries, _ = Q.shape
    keys, dim_v = V.shape[2:]
    scores = (*Q.shape[:3], keys)
    assert broadcast_extents(mask.shape, scores) == scores, f"mask has shape {mask.shape}, scores {scores}"
    assert "float" in mask.dtype or mask.dtype == "bool", f"mask is {mask.dtype}, neither bool nor float"
    dtype = accumulator_dtype(Q.dtype)
    for b, h, i in tt.parallel(batch, heads, tt.cdiv(queries, bq)):
        rows = tt.ds(i * bq, bq)
        q = Q[b, h, rows, :].astype(dtype) * _scale_of_scores(Q, scale)
        top, total, out = _nothing_seen(bq, dim_v, dtype)
        for j in tt.pipeline(tt.cdiv(keys, bk)):
            columns = tt.ds(j * bk, bk)
            tt.stage("scores")
            s = _scores(q, K[b, h // group, columns, :])
            whole = tt.ds(0, 1)
            m = mask[(*entry(mask.shape[:-2], (b, h)), *entry(mask.shape[-2:], (rows, columns), whole))]
            visible = j * bk + tt.iota(bk, "int64") < keys
            if mask.dtype == "bool":
                visible = visible & m
            else:
                s = s + m.astype(dtype)
            tt.stage("accumulate")
            s = tt.where(visible, s, LOWEST)
            top, total, out = _see(s, V[b, h // group, columns, :], top, total, out)
        O[b, h, rows, :] = _normalized(total, out).astype(O.dtype)


@tt.kernel
def decode_attention(
    Q: Any, K: Any, V: Any, lengths: Any, O: Any, *, scale: float | None = None, bk: int = 32
) -> None:
    """Attention of the newest query of each sequence on the keys and values kept so far.

    All query heads that share a key head are handled together, so that keys and values are read once.

    Parameters
    ----------
    Q
        Shape ``(batch, heads, dim)`` or ``(batch, heads, 1, dim)``, a float dtype.
    K, V
        As in :func:`attention`; ``keys`` is what there is room for.
    lengths
        Shape ``(batch,)``, an integer dtype: how many keys of a sequence its query sees. More than ``keys``
        is as many as ``keys``.
    O
        Output, shape of ``Q`` with ``dim_v`` for ``dim``, a float dtype.
    scale
        Factor of the scores; ``1 / sqrt(dim)`` if not given.
    bk
        Keys handled at a time.

    Notes
    -----
    A length of 0, or below, gives zeros. What ``K`` and ``V`` hold beyond the length does not matter. Else as
    :func:`attention`.
    """
    group = _query_heads_per_key_head(Q, K, V, O)
    batch, heads, *one, _ = Q.shape
    keys, dim_v = V.shape[2:]
    assert one in ([], [1]), f"Q has shape {Q.shape}: that is not one query for each sequence and head"
    assert lengths.shape == (batch,), f"lengths have shape {lengths.shape}, not {(batch,)}"
    assert "int" in lengths.dtype, f"lengths are {lengths.dtype}, not integers"
    dtype = accumulator_dtype(Q.dtype)
    for b, g in tt.parallel(batch, heads // group):
        at = (b, tt.ds(g * group, group), *(0 for _ in one))
        q = Q[(*at, slice(None))].astype(dtype) * _scale_of_scores(Q, scale)
        top, total, out = _nothing_seen(group, dim_v, dtype)
        length = tt.minimum(lengths[b].astype("int64"), keys)
        for j in tt.pipeline(tt.cdiv(length, bk)):
            columns = tt.ds(j * bk, bk)
            visible = j * bk + tt.iota(bk, "int64") < length
            tt.stage("scores")
            s = tt.where(visible, _scores(q, K[b, g, columns, :]), LOWEST)
            tt.stage("accumulate")
            # What lies beyond the length may be anything: also a NaN, which would survive a weight of 0.
            v = V.at[b, g, columns, :].load(mask=visible[:, None])
            top, total, out = _see(s, v, top, total, out)
        O[(*at, slice(None))] = _normalized(total, out).astype(O.dtype)


def _query_heads_per_key_head(Q: Any, K: Any, V: Any, O: Any) -> int:
    """How many query heads share a key head, after a check of shapes and dtypes.

    Raises
    ------
    AssertionError
        They do not fit.
    """
    for name, tensor in (("K", K), ("V", V)):
        assert tensor.ndim == 4, f"{name} has shape {tensor.shape}, not (batch, key_heads, keys, dim)"
        assert tensor.dtype == Q.dtype, f"Q is {Q.dtype}, {name} is {tensor.dtype}; cast one of them"
    assert Q.ndim >= 3, f"Q has shape {Q.shape}, not (batch, heads, ..., dim)"
    batch, heads, dim = Q.shape[0], Q.shape[1], Q.shape[-1]
    assert (K.shape[0], K.shape[3]) == (batch, dim), f"K has shape {K.shape}, Q has {Q.shape}"
    assert V.shape[:3] == K.shape[:3], f"V has shape {V.shape}, K has {K.shape}"
    expected = (*Q.shape[:-1], V.shape[3])
    assert O.shape == expected, f"O has shape {O.shape}, not {expected}"
    require_floats(Q=Q, O=O)
    key_heads = K.shape[1]
    assert key_heads and heads % key_heads == 0, (
        f"{heads} query heads do not share {key_heads} key heads evenly"
    )
    return int(heads // key_heads)


def _scale_of_scores(Q: Any, scale: float | None) -> float:
    return 1.0 / math.sqrt(max(Q.shape[-1], 1)) if scale is None else scale


def _nothing_seen(rows: int, dim_v: int, dtype: str) -> tuple[Any, Any, Any]:
    """Maxima, sums and outputs of queries before their first key."""
    return tt.full((rows,), LOWEST, dtype), tt.zeros((rows,), dtype), tt.zeros((rows, dim_v), dtype)


def _scores(q: Any, k: Any) -> Any:
    """Products of scaled queries and a block of keys, in the queries' dtype."""
    return tt.matmul(q, k.astype(q.dtype).T)


def _see(s: Any, v: Any, top: Any, total: Any, out: Any) -> tuple[Any, Any, Any]:
    """The running state after another block of keys.

    Parameters
    ----------
    s
        Scores, shape ``(rows, keys)``; ``-inf`` where a key is not seen.
    v
        Values, shape ``(keys, dim_v)``.
    top, total, out
        State before: maximum of the scores, ``Σ exp(s - top)`` and ``Σ exp(s - top) v`` of each row.
    """
    new_top = tt.maximum(top, tt.max(s, axis=1))
    shift = tt.where(new_top == LOWEST, 0.0, new_top)
    p = tt.exp(s - shift[:, None])
    decay = tt.exp(top - shift)
    total = total * decay + tt.sum(p, axis=1)
    out = tt.mma(p, v.astype(p.dtype), out * decay[:, None])
    return new_top, total, out


def _normalized(total: Any, out: Any) -> Any:
    """Output of queries that have seen all their keys: zeros where there were none."""
    return out * reciprocal_of_sum(total)[:, None]
