"""Application of elementwise functions: promotion, NumPy's special cases for bool and int, broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_tile.errors import OperandError
from tvm_tile.frontend.index import Index, index_arithmetic, index_comparison
from tvm_tile.frontend.operands import (
    adapted,
    broadcast,
    common_dtype,
    converted,
    filled,
    is_number,
    is_weak,
    tile_of,
    value_of,
    weakened,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.dtypes import SIGNED, is_bool, is_float, is_integer, numpy_dtype
from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.ops import Elementwise
from tvm_tile.ir.typing import TypeFault, broadcast_shapes
from tvm_tile.ir.values import TileType

__all__ = ["applied", "apply", "common_shape"]

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_ROUNDING = ("floor", "ceil", "round")
# NumPy's loops for truth values: the sum is `or`, the product `and`; the rest count in int8.
_BOOL_AS = {"add": "or", "multiply": "and"}
_BOOL_COUNTS = ("floor_divide", "remainder", "power", "left_shift", "right_shift")


def apply(fn: str, *operands: Any) -> Any:
    """``fn`` element by element with NumPy's promotion and broadcasting.

    Indices and ints alone stay index arithmetic where it is exact.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the function does not take the dtype.
    """
    kept = index_arithmetic(fn, operands)
    if kept is None:
        kept = index_comparison(fn, operands)
    if kept is not None:
        require_trace(fn)
        return kept
    if fn in _COMPARISONS:
        operands = _comparable(fn, operands)
        if len(operands) == 1:
            return operands[0]
        exact = _compare_signed_with_uint64(fn, *operands)
        if exact is not None:
            return exact
    if fn == "where":
        condition, *data = operands
        dtype = common_dtype(*data)
        condition = tile_of(condition)
        if not is_bool(condition.dtype):
            condition = apply("not_equal", condition, 0)
        return _elementwise(fn, dtype, (condition, *data))
    dtype = common_dtype(*operands)
    if is_bool(dtype):
        if fn in ("abs", *_ROUNDING):
            return tile_of(operands[0])
        fn = _BOOL_AS.get(fn, fn)
        dtype = "int8" if fn in _BOOL_COUNTS else dtype
    if is_integer(dtype) and fn in _ROUNDING:
        return tile_of(operands[0])
    if not is_float(dtype):
        if fn in ("isnan", "isinf"):
            return filled(require_trace(fn), tile_of(operands[0]).shape, False, "bool")
        if FUNCTIONS[fn].kinds == ("float",) and fn != "fma":
            dtype = "float64" if fn == "divide" else _float_of(dtype)
    return _elementwise(fn, dtype, operands)


def applied(fn: str, *operands: Any) -> Tile:
    """:func:`apply` where the result is no index."""
    result = apply(fn, *operands)
    assert isinstance(result, Tile)
    return result


def _float_of(dtype: str) -> str:
    """The float type in which NumPy's unary functions compute an integer type."""
    width = numpy_dtype(dtype).itemsize
    return {1: "float16", 2: "float32"}.get(width, "float64")


def common_shape(*operands: Any) -> tuple[int, ...]:
    """The shape that the operands broadcast to.

    Raises
    ------
    OperandError
        They do not.
    """
    try:
        return broadcast_shapes(*(() if is_number(x) else x.shape for x in operands))
    except TypeFault as fault:
        tiles = [x._describe() for x in operands if isinstance(x, Tile)]
        raise OperandError(
            f"{fault}: {' and '.join(tiles)}",
            span=current_span(),
            suggestion=_alike([x.shape for x in operands if not is_number(x)]),
        ) from None


def _alike(shapes: list[tuple[int, ...]]) -> str:
    ranks = {len(shape) for shape in shapes}
    if len(ranks) > 1:
        return "insert axes with x[:, None], or reshape"
    sizes = next(
        sorted(found)
        for found in ({shape[axis] for shape in shapes} - {1} for axis in range(max(ranks)))
        if len(found) > 1
    )
    return (
        f"take as many elements of each, such as x[tt.ds(start, {sizes[0]})] (sizes "
        f"{' and '.join(map(str, sizes))} differ), or insert axes with x[:, None]"
    )


def _elementwise(fn: str, dtype: str, operands: tuple[Any, ...]) -> Tile:
    """The operation; its result is weak if it comes from Python numbers and indices alone.

    Not so integers that are computed, as nothing could tell whether they fit another dtype.
    """
    data = operands[1:] if fn == "where" else operands
    if FUNCTIONS[fn].boolean or not all(map(is_weak, data)):
        return _emitted(fn, dtype, operands)
    if fn == "where":
        return weakened(lambda wanted: _emitted(fn, wanted, operands), dtype)
    if not is_float(dtype):
        return _emitted(fn, dtype, operands)
    with require_trace(fn).provisionally():
        computed = _emitted(fn, dtype, operands)
    return weakened(lambda wanted: converted(computed, wanted), dtype)


def _emitted(fn: str, dtype: str, operands: tuple[Any, ...]) -> Tile:
    shape = common_shape(*operands)
    trace = require_trace(fn)
    tiles = []
    for position, x in enumerate(operands):
        if fn == "where" and position == 0:
            tiles.append(broadcast(x, shape))
        elif is_number(x):
            tiles.append(filled(trace, shape, x, dtype))
        else:
            tiles.append(broadcast(adapted(tile_of(x), dtype), shape))
    result = "bool" if FUNCTIONS[fn].boolean else dtype
    return trace.emit(Elementwise, TileType(shape, result), fn=fn, operands=tuple(map(value_of, tiles)))


def _compare_signed_with_uint64(fn: str, a: Any, b: Any) -> Tile | None:
    """Exact comparison of signed integers with ``uint64``, which promote to a float that rounds them."""
    dtypes = [x.dtype if isinstance(x, (Tile, Index)) else None for x in (a, b)]
    signed = [dtype in SIGNED for dtype in dtypes]
    if "uint64" not in dtypes or not any(signed):
        return None
    tiles = [tile_of(x) for x in (a, b)]
    negative = applied("less", tiles[signed.index(True)], 0)
    magnitudes = applied(fn, *(converted(tile, "uint64") for tile in tiles))
    # A negative number is below all others.
    below = fn == "not_equal" or fn.startswith("less" if signed[0] else "greater")
    return applied("or", negative, magnitudes) if below else applied("and", ~negative, magnitudes)


def _comparable(fn: str, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Decide comparisons with a Python int beyond the tile's dtype, as NumPy does; else leave the operands.

    A decided comparison is returned as the one result.
    """
    a, b = operands
    swapped = isinstance(a, int) and not isinstance(a, bool)
    number, other = (a, b) if swapped else (b, a)
    if (
        not isinstance(number, int)
        or isinstance(number, bool)
        or isinstance(other, Index)
        or is_number(other)
    ):
        return operands
    dtype = common_dtype(other)
    if not is_integer(dtype):
        return operands
    info = np.iinfo(numpy_dtype(dtype))
    if info.min <= number <= info.max:
        return operands
    # Every element lies on one side of the number.
    elements_less = number > info.max
    if fn in ("equal", "not_equal"):
        truth = fn == "not_equal"
    else:
        truth = elements_less == (fn.startswith("less") != swapped)
    return (filled(require_trace(fn), tile_of(other).shape, truth, "bool"),)
