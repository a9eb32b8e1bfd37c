"""Reductions of tiles over axes."""

from __future__ import annotations

import math
from typing import Any

from tvm_tile.errors import CaptureError, IllegalError, OperandError
from tvm_tile.frontend.arithmetic import apply
from tvm_tile.frontend.described import described
from tvm_tile.frontend.operands import (
    broadcast,
    converted,
    dtype_argument,
    is_weak,
    tile_of,
    value_of,
    weakened,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import normalized_axis, reshaped
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.dtypes import accumulation_dtype, is_bool, is_float, is_integer
from tvm_tile.ir.ops import POLICIES, ArgReduce, ReduceTile
from tvm_tile.ir.typing import reduced_shape
from tvm_tile.ir.values import TileType, Value

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "check_policy_name",
    "contribution_mask",
    "max",
    "mean",
    "min",
    "prod",
    "reduced_axes",
    "sum",
]


def check_policy_name(policy: Any) -> str:
    """The name of a reduction policy.

    Raises
    ------
    CaptureError
        There is no such policy.
    """
    if not isinstance(policy, str) or policy not in POLICIES:
        raise CaptureError(
            f"policy={described(policy)} is not one of {', '.join(POLICIES)}",
            span=current_span(),
            suggestion="leave it out for the default, unordered_tree",
        )
    return str(policy)


def sum(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Sum over axes.

    Parameters
    ----------
    x : tile
        Contributions.
    axis : int or sequence of int, optional
        Axes to reduce; by default all.
    keepdims : bool
        Keep reduced axes with extent 1.
    where : bool tile, optional
        Broadcasts to ``x``; contributions where it is false are omitted.
    dtype : optional
        Dtype of the result. By default ``x``'s; ``int32`` for int8 and int16, ``int64`` for bool. float16 and
        bfloat16 accumulate in float32 and round once.
    policy : {"unordered_tree", "ordered_tree", "fold_left", "fold_right"}
        Which groupings and orders are admitted.

    Returns
    -------
    Tile
        An empty fibre gives 0. NaN propagates.

    Raises
    ------
    OperandError
        An axis does not exist, or the dtype would narrow.
    """
    return _reduced(x, "add", axis, keepdims, where, dtype, policy)


def prod(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Product over axes; an empty fibre gives 1. Parameters and dtypes are those of :func:`sum`."""
    return _reduced(x, "multiply", axis, keepdims, where, dtype, policy)


def max(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Largest element over axes; NaN if any is.

    An empty fibre gives the least value of the dtype (``-inf`` for floats). Parameters are those of
    :func:`sum`; the dtype stays ``x``'s.
    """
    return _reduced(x, "maximum", axis, keepdims, where, dtype, policy)


def min(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Smallest element over axes; NaN if any is.

    An empty fibre gives the greatest value of the dtype (``inf`` for floats). Parameters are those of
    :func:`sum`; the dtype stays ``x``'s.
    """
    return _reduced(x, "minimum", axis, keepdims, where, dtype, policy)


def any(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Whether any element is true (not 0); an empty fibre gives false.

    Parameters are those of :func:`sum`.
    """
    return _reduced(_truth(x), "or", axis, keepdims, where, dtype, policy)


def all(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Whether all elements are true (not 0); an empty fibre gives true.

    Parameters are those of :func:`sum`.
    """
    return _reduced(_truth(x), "and", axis, keepdims, where, dtype, policy)


def mean(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Arithmetic mean over axes.

    The sum of the contributions over their number, both in float: float16 and bfloat16 compute in float32
    and round once, integers and bool in float64. An empty fibre gives NaN. Parameters are those of
    :func:`sum`.
    """
    tile = tile_of(x)
    result = dtype_argument(dtype) if dtype is not None else tile.dtype if is_float(tile.dtype) else "float64"
    working = accumulation_dtype(result)
    total = _reduced(tile, "add", axis, keepdims, where, working, policy)
    if where is None:
        axes = reduced_axes(tile, axis)
        count: Any = float(math.prod(tile.shape[a] for a in axes))
    else:
        # Counted in int64, since a float32 stops counting at 2**24.
        count = _reduced(
            converted(contribution_mask(tile, where), "int64"), "add", axis, keepdims, None, None, policy
        )
        count = converted(count, working)
    return converted(apply("divide", total, count), result)


def argmax(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Position of the first largest element; the first NaN wins.

    Parameters
    ----------
    x : tile
        Elements to compare.
    axis : int, optional
        Axis to search; by default the flattened tile.
    keepdims : bool
        Keep the searched axes with extent 1.
    where : bool tile, optional
        Broadcasts to ``x``; elements where it is false are left out, and if none is left the position is 0.
    dtype : optional
        Dtype of the result, by default ``int32``.
    policy
        Any policy; the result is the same under all of them.

    Raises
    ------
    IllegalError
        The axis is empty.
    OperandError
        The axis does not exist.
    """
    return _position(x, "argmax", axis, keepdims, where, dtype, policy)


def argmin(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = None,
    dtype: Any = None,
    policy: str = "unordered_tree",
) -> Tile:
    """Position of the first smallest element; the first NaN wins. Parameters are those of :func:`argmax`."""
    return _position(x, "argmin", axis, keepdims, where, dtype, policy)


def _truth(x: Any) -> Tile:
    tile = tile_of(x)
    return tile if is_bool(tile.dtype) else apply("not_equal", tile, 0)


def reduced_axes(tile: Tile, axis: Any) -> tuple[int, ...]:
    """The axes of an ``axis`` argument, in order; ``None`` is all of them."""
    if axis is None:
        return tuple(range(tile.ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(normalized_axis(a, tile.ndim, tile._describe()) for a in given))
    if len(set(axes)) != len(axes):
        raise OperandError(
            f"axis={described(axis)} names an axis twice",
            span=current_span(),
            suggestion="name each axis once",
        )
    return axes


def contribution_mask(tile: Tile, where: Any) -> Tile:
    """A ``where`` argument as a bool tile of the shape of what it masks."""
    mask = tile_of(where)
    return broadcast(mask if is_bool(mask.dtype) else _truth(mask), tile.shape)


def _reduced(x: Any, combiner: str, axis: Any, keepdims: bool, where: Any, dtype: Any, policy: Any) -> Tile:
    policy = check_policy_name(policy)
    tile = tile_of(x)
    weak = is_weak(tile)
    mask = None if where is None else contribution_mask(tile, where)
    wanted = None if dtype is None else dtype_argument(dtype)
    arithmetic = combiner in ("add", "multiply")
    if arithmetic and is_bool(tile.dtype):
        tile = converted(tile, "int64" if wanted is None or is_bool(wanted) else wanted)
    if wanted is not None and arithmetic and is_float(wanted) != is_float(tile.dtype):
        # As in NumPy, contributions are converted first; between float and int that is a dtype of its own.
        tile = converted(tile, wanted)
    result = tile.dtype
    if arithmetic:
        own = accumulation_dtype(tile.dtype) if is_integer(tile.dtype) else tile.dtype
        result = own if wanted is None else wanted
    axes = reduced_axes(tile, axis)
    final = reduced_shape(tile.shape, axes, keepdims)
    if not axes:
        # Each element is a fibre of its own.
        tile = reshaped(tile, (*tile.shape, 1))
        mask = None if mask is None else reshaped(mask, tile.shape)
        axes, keepdims = (tile.ndim - 1,), False
    reduced = tile.trace.emit(
        ReduceTile,
        TileType(reduced_shape(tile.shape, axes, keepdims), result),
        operand=value_of(tile),
        axes=axes,
        combiner=combiner,
        keepdims=bool(keepdims),
        policy=policy,
        where=_optional(mask),
    )
    total = converted(reshaped(reduced, final), result if wanted is None else wanted)
    if weak and wanted is None and is_float(total.dtype):
        return weakened(lambda other: converted(total, other), total.dtype)
    return total


def _optional(mask: Tile | None) -> Value | None:
    return None if mask is None else value_of(mask)


def _position(x: Any, kind: str, axis: Any, keepdims: bool, where: Any, dtype: Any, policy: Any) -> Tile:
    check_policy_name(policy)
    tile = tile_of(x)
    mask = None if where is None else contribution_mask(tile, where)
    if axis is None:
        final = (1,) * tile.ndim if keepdims else ()
        tile = reshaped(tile, (tile.size,))
        mask = None if mask is None else reshaped(mask, tile.shape)
        along, keepdims = 0, False
    else:
        along = normalized_axis(axis, tile.ndim, tile._describe())
        final = reduced_shape(tile.shape, (along,), keepdims)
    if tile.shape[along] == 0:
        raise IllegalError(
            f"{kind} of the empty axis {along} of {tile._describe()} has no position",
            span=current_span(),
            obligation="a seed or a nonempty fibre",
            suggestion="search only axes of positive extent",
        )
    found = tile.trace.emit(
        ArgReduce,
        TileType(reduced_shape(tile.shape, (along,), keepdims), "int32"),
        operand=value_of(tile),
        axis=along,
        kind=kind,
        keepdims=bool(keepdims),
        where=_optional(mask),
    )
    found = reshaped(found, final)
    return found if dtype is None else converted(found, dtype_argument(dtype))
