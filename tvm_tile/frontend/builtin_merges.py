"""Merges of several states that the language has: moments, sums of exponentials, a maximum's position."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_tile.frontend.elementwise import maximum, where
from tvm_tile.frontend.merges import ElementMerge
from tvm_tile.frontend.operands import converted, filled
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.unary import exp, isnan
from tvm_tile.ir.dtypes import accumulation_dtype, is_float, numpy_dtype
from tvm_tile.ir.functions import identity_of

__all__ = ["argmax_pair", "logsumexp", "welford"]


def _working(x: Tile) -> Tile:
    """An element in the dtype in which it is accumulated: 16-bit floats in float32, integers in float64."""
    return converted(x, accumulation_dtype(x.dtype) if is_float(x.dtype) else "float64")


def _moments(left: Any, right: Any) -> Any:
    # Chan, Golub and LeVeque, Updating formulae for computing sample variances (1979).
    (n, mean, m2), (k, other, more) = left, right
    total = n + k
    difference = other - mean
    share = converted(k, mean.dtype) / converted(where(total == 0, 1, total), mean.dtype)
    joined_mean = mean + difference * share
    joined_m2 = m2 + more + difference * difference * converted(n, mean.dtype) * share
    # Where one side is empty the other one stands as it is, infinite means included.
    nothing, nothing_more = n == 0, k == 0
    return (
        total,
        where(nothing, other, where(nothing_more, mean, joined_mean)),
        where(nothing, more, where(nothing_more, m2, joined_m2)),
    )


def _lift_moments(x: Tile) -> Any:
    mean = _working(x)
    return _constant(mean, 1.0), mean, _constant(mean, 0.0)


def _constant(like: Tile, value: float) -> Tile:
    return filled(like.trace, like.shape, value, like.dtype)


def _exponentials(left: Any, right: Any) -> Any:
    (top, total), (other, more) = left, right
    joined = maximum(top, other)
    # Equal maxima need no factor: of two infinite ones the difference would be NaN.
    scale = where(top == joined, 1.0, exp(top - joined))
    other_scale = where(other == joined, 1.0, exp(other - joined))
    return joined, total * converted(scale, total.dtype) + more * converted(other_scale, total.dtype)


def _lift_exponential(x: Tile) -> Any:
    top = _working(x)
    return top, _constant(top, 1.0)


def _first_largest(left: Any, right: Any) -> Any:
    (value, index), (other, place) = left, right
    nan, other_nan = isnan(value), isnan(other)
    tied = (value == other) | (nan & other_nan)
    keeps = (nan & ~other_nan) | ((value > other) & ~other_nan) | (tied & (index <= place))
    return where(keeps, value, other), where(keeps, index, place)


def _no_position(dtypes: tuple[str, ...]) -> tuple[float | int, ...]:
    value, index = dtypes
    sentinel = float("inf") if is_float(index) else int(np.iinfo(numpy_dtype(index)).max)
    return identity_of("maximum", value), sentinel


#: Count, mean and sum of squared deviations from the mean.
welford = ElementMerge(
    "welford",
    _moments,
    lambda dtypes: (0, 0, 0),
    _lift_moments,
    states=("count", "mean", "m2"),
    operands=1,
    doc="""Moments: one operand; the states are ``count``, ``mean`` and ``m2``, in this order.

    ``n, mean, m2 = tt.reduce_tile(x, axis, tt.welford)``; ``m2`` is the sum of squared deviations from the
    mean, so that the variance is ``m2 / n``. An element ``x`` is lifted to ``(1, x, 0)`` in the dtype in
    which it is accumulated: float32 for 16-bit floats, float64 for integers. An empty fibre gives ``(0, 0,
    0)``.
    """,
)

#: Maximum ``m`` and sum of ``exp(x - m)``: the logarithm of the sum of exponentials is ``m + log(sum)``.
logsumexp = ElementMerge(
    "logsumexp",
    _exponentials,
    lambda dtypes: (float("-inf"), 0),
    _lift_exponential,
    states=("max", "sum"),
    operands=1,
    doc="""Sums of exponentials: one operand; the states are ``max`` and ``sum``, in this order.

    ``m, s = tt.reduce_tile(x, axis, tt.logsumexp)``; ``s`` is the sum of ``exp(x - m)``, so that the
    logarithm of the sum of exponentials is ``m + tt.log(s)``. An element ``x`` is lifted to ``(x, 1)`` in
    the dtype in which it is accumulated: float32 for 16-bit floats, float64 for integers. An empty fibre
    gives ``(-inf, 0)``.
    """,
)

#: Largest value and its index: the first NaN wins, else the smaller index of equal values.
argmax_pair = ElementMerge(
    "argmax_pair",
    _first_largest,
    _no_position,
    None,
    states=("value", "index"),
    operands=2,
    doc="""The largest value and its position: two operands; the states are ``value`` and ``index``, in order.

    ``v, i = tt.reduce_tile((x, positions), axis, tt.argmax_pair)``, with ``positions`` such as
    ``tt.broadcast_to(tt.iota(n, "int32"), x.shape)``. There is no lift: the elements are the states. The
    first NaN wins, else the smaller index of equal values. An empty fibre gives the smallest value of its
    dtype (``-inf`` of floats) and the largest index of its own.
    """,
    exact=True,
)
