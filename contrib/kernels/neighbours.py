"""Nearest neighbours by brute force: a matrix product with a carried running minimum."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype

__all__ = ["knn"]


@tt.kernel
def knn(queries: Any, points: Any, distances: Any, indices: Any, *, bq: int = 32, bp: int = 128) -> None:
    """The ``k`` nearest points of each query, nearest first, by squared Euclidean distance.

    Distances of a block come from ``|q|² - 2 q·p + |p|²``, one matrix product. The ``k`` best of a query
    so far are carried over the blocks of points; the candidates of a block enter one at a time, each at
    its place in the sorted list.

    Parameters
    ----------
    queries
        Shape ``(Q, D)``, a float dtype.
    points
        Shape ``(P, D)``, same dtype.
    distances
        Output, shape ``(Q, k)``, or ``(Q,)`` for the nearest only; squared distances, not below 0.
    indices
        Output, same shape, a signed integer dtype; equal distances go by the smaller index.
    bq, bp
        Queries and points handled at a time.

    Notes
    -----
    With fewer than ``k`` points at a finite distance the rest of a row is ``inf`` with index -1; a point
    whose distance is NaN is nobody's neighbour.
    """
    Q, D = queries.shape
    P = points.shape[0]
    assert points.shape == (P, D), f"points have shape {points.shape}, queries {queries.shape}"
    assert distances.shape == indices.shape, f"distances {distances.shape} and indices {indices.shape} differ"
    assert distances.ndim in (1, 2), f"distances have shape {distances.shape}, not (Q,) or (Q, k)"
    assert distances.shape[0] == Q, f"distances have {distances.shape[0]} rows for {Q} queries"
    k = distances.shape[1] if distances.ndim == 2 else 1
    dtype = accumulator_dtype(queries.dtype)
    infinity = float("inf")
    slot = tt.iota(k, "int32")
    before = slot[None, :] == slot[:, None] - 1
    for i in tt.parallel(tt.cdiv(Q, bq)):
        q = queries[tt.ds(i * bq, bq), :].astype(dtype)
        q_norm = tt.sum(q * q, axis=1)
        best = tt.full((bq, k), infinity, dtype)
        chosen = tt.full((bq, k), -1, "int64")
        for j in tt.serial(tt.cdiv(P, bp)):
            p = points[tt.ds(j * bp, bp), :].astype(dtype)
            p_norm = tt.sum(p * p, axis=1)
            d = tt.maximum(q_norm[:, None] - 2.0 * tt.matmul(q, p.T) + p_norm[None, :], 0.0)
            column = tt.iota(bp, "int64")
            outside = tt.isnan(d) | (j * bp + column >= P)[None, :]
            d = tt.where(outside, infinity, d)
            for _ in range(k):
                nearest = tt.min(d, axis=1)
                where = tt.argmin(d, axis=1).astype("int64")
                place = tt.sum((best <= nearest[:, None]).astype("int32"), axis=1)[:, None]
                moved = tt.min(tt.where(before, best[:, None, :], infinity), axis=2)
                moved_index = tt.max(tt.where(before, chosen[:, None, :], -1), axis=2)
                entering = tt.where(slot == place, nearest[:, None], moved)
                entering_index = tt.where(slot == place, (j * bp + where)[:, None], moved_index)
                best = tt.where(slot < place, best, entering)
                chosen = tt.where(slot < place, chosen, entering_index)
                d = tt.where(column == where[:, None], infinity, d)
        if distances.ndim == 1:
            distances[tt.ds(i * bq, bq)] = best[:, 0].astype(distances.dtype)
            indices[tt.ds(i * bq, bq)] = chosen[:, 0].astype(indices.dtype)
        else:
            distances[tt.ds(i * bq, bq), :] = best.astype(distances.dtype)
            indices[tt.ds(i * bq, bq), :] = chosen.astype(indices.dtype)
