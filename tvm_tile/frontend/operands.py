"""Operands of tile operations: weak Python numbers, NumPy promotion, casts and broadcasting.

Operations of the IR take equal shapes and dtypes, so everything implicit becomes explicit here.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Trace, require_trace
from tvm_tile.ir.dtypes import (
    DTYPES,
    STORAGE_ONLY,
    canonical_dtype,
    is_bool,
    is_float,
    numpy_dtype,
    promote,
)
from tvm_tile.ir.index import And, BoolConst, Comparison, IndexConst, IndexVar, Not, Or, Predicate
from tvm_tile.ir.ops import Broadcast, Cast, Elementwise, FromIndex, Full, Number
from tvm_tile.ir.typing import TypeFault, broadcast_shapes
from tvm_tile.ir.values import TileType, Value

__all__ = [
    "adapted",
    "broadcast",
    "common_dtype",
    "converted",
    "dtype_argument",
    "filled",
    "is_number",
    "is_weak",
    "like_weak",
    "literal",
    "tile_of",
    "value_of",
    "weakened",
]

_COMPARISONS = {
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
}


def dtype_argument(dtype: Any) -> str:
    """The canonical name of a dtype argument.

    Raises
    ------
    OperandError
        There is no such element type.
    """
    try:
        if dtype is None:
            # NumPy would take it for float64.
            raise TypeError(f"dtype None is not one of {', '.join(DTYPES)}")
        return canonical_dtype(dtype)
    except TypeError as error:
        near = difflib.get_close_matches(dtype if isinstance(dtype, str) else described(dtype), DTYPES, 1)
        raise OperandError(
            str(error),
            span=current_span(),
            suggestion=f'did you mean "{near[0]}"?' if near else 'name one of them, such as "float32"',
        ) from None


def is_number(x: Any) -> bool:
    """Whether it is a Python or NumPy number, or an array without axes."""
    return isinstance(x, (bool, int, float, np.generic)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def _strong_dtype(x: Any) -> str | None:
    """Dtype of an operand that has one; ``None`` for weak ints and floats."""
    match x:
        case Tile():
            return x.dtype if x.weak is None else None
        case IndexCompare():
            return "bool"
        case Index():
            return None
        case np.generic() | np.ndarray() if is_number(x):
            return dtype_argument(x.dtype)
        case bool():
            return "bool"
        case int() | float():
            return None
    _refuse_operand(x)
    return None


def is_weak(x: Any) -> bool:
    """Whether an operand takes the dtype of what it meets: a Python number, an index, or a tile of such."""
    if isinstance(x, Tile):
        return x.weak is not None
    return isinstance(x, Index) or (isinstance(x, (int, float)) and not isinstance(x, (bool, np.generic)))


def _refuse_operand(x: Any) -> None:
    from tvm_tile.frontend.tensor import Tensor

    span = current_span()
    if isinstance(x, Tensor):
        raise CaptureError(
            f"tensor {x.memory.name!r} is memory, not a value",
            span=span,
            suggestion=f"load from it first, such as {x.memory.name}[...]",
        )
    if isinstance(x, np.ndarray):
        raise CaptureError(
            f"a NumPy array of shape {x.shape} cannot be an operand",
            span=span,
            suggestion="pass it to the kernel as a tensor parameter",
        )
    if isinstance(x, tuple) and x and all(isinstance(part, Tile) for part in x):
        given = next((names for states, names in require_trace("a tuple").state_tuples if states is x), None)
        names = ", ".join(given or (f"x{k}" for k in range(len(x))))
        kind = f"the {len(x)} states {names} of a reduction" if given else f"a tuple of {len(x)} tiles"
        remedy = f"unpack it: {names} = " + ("tt.reduce_tile(...), or tt.scan" if given else "...")
        raise OperandError(
            f"{kind}, in a tuple, cannot be a tile operand" if given else f"{kind} cannot be a tile operand",
            span=span,
            suggestion=remedy,
        )
    hint = "add [...] or an index" if isinstance(x, Operators) else "use tiles, indices and Python numbers"
    raise OperandError(
        f"{type(x).__name__} {described(x)} cannot be a tile operand", span=span, suggestion=hint
    )


def common_dtype(*operands: Any) -> str:
    """The dtype that NumPy's promotion gives, Python scalars and indices being weak.

    Raises
    ------
    OperandError
        There is none.
    """
    strong = [d for d in map(_strong_dtype, operands) if d is not None]
    weak_float = any(
        is_float(x.dtype) if isinstance(x, Tile) else isinstance(x, float)
        for x in operands
        if is_weak(x) and not isinstance(x, Index)
    )
    if not strong:
        return "float64" if weak_float else "int64"
    try:
        dtype = functools.reduce(promote, strong)
    except TypeError as error:
        raise OperandError(
            str(error), span=current_span(), suggestion='convert one of them with .astype("float32")'
        ) from None
    if weak_float and not is_float(dtype):
        return "float64"
    weak_int = len(strong) < len(operands)
    return "int64" if weak_int and is_bool(dtype) else dtype


def literal(x: Any, dtype: str) -> Number:
    """A number as a literal of a dtype.

    Raises
    ------
    OperandError
        The dtype cannot hold it: an int out of range, or a fraction in an integer.
    """
    value = x.item() if isinstance(x, (np.generic, np.ndarray)) else x
    if not isinstance(value, (bool, int, float)):
        value = float(value)
    span = current_span()
    if is_float(dtype):
        try:
            return Number.of(float(value))
        except OverflowError:
            raise OperandError(
                f"{described(value)} does not fit {dtype}",
                span=span,
                suggestion="write it as a float, or as an inf",
            ) from None
    if isinstance(value, float):
        raise OperandError(
            f"{value} is no {dtype}",
            span=span,
            suggestion=f"convert it explicitly, such as int({value})"
            if math.isfinite(value)
            else "use a floating-point dtype",
        )
    if is_bool(dtype):
        if value not in (0, 1):
            raise OperandError(f"{value} is no bool", span=span, suggestion="compare it: x != 0")
        return Number.of(bool(value))
    info = np.iinfo(numpy_dtype(dtype))
    if not info.min <= value <= info.max:
        wider = "int64" if info.bits < 64 else "float64"
        raise OperandError(
            f"{described(value)} does not fit {dtype} ({info.min}..{info.max})",
            span=span,
            suggestion=f'write a number in that range, or use a wider dtype, such as .astype("{wider}")',
        )
    return Number.of(int(value))


def filled(trace: Trace, shape: tuple[int, ...], value: Any, dtype: str) -> Tile:
    """A tile with one number in every element."""
    if dtype in STORAGE_ONLY:
        return converted(filled(trace, shape, value, "float32"), dtype)
    return trace.emit(Full, TileType(shape, dtype), value=literal(value, dtype))


def value_of(tile: Tile) -> Value:
    """The value of a tile that the current scope may read.

    Raises
    ------
    CaptureError
        It belongs to another capture, or to a region that has ended.
    """
    trace = require_trace(tile._describe())
    if tile.trace is not trace:
        raise CaptureError(
            f"{tile._describe()} was made in the capture of kernel {tile.trace.name!r}",
            span=current_span(),
            suggestion="keep tiles in local names of one kernel",
        )
    trace.check_visible(tile.value)
    return tile.value


def tile_of(x: Any, dtype: str | None = None) -> Tile:
    """An operand as a tile: of a dtype, or by default of its own (ints are ``int64``, floats ``float64``)."""
    if isinstance(x, Tile):
        value_of(x)
        return x if dtype is None else converted(x, dtype)
    own = common_dtype(x)
    trace = require_trace("a tile operation")
    if isinstance(x, (Index, IndexCompare)):
        if x.trace is not trace:
            raise CaptureError(
                f"{x._describe()} was made in the capture of kernel {x.trace.name!r}",
                span=current_span(),
                suggestion="keep indices in local names of one kernel",
            )
        tile = _index_tile(x) if isinstance(x, Index) else _predicate_tile(trace, x.predicate)
        return tile if dtype is None else converted(tile, dtype)
    return filled(trace, (), x, own if dtype is None else dtype)


def _index_tile(x: Index) -> Tile:
    x.trace.check_index(x.expression)
    if isinstance(x.expression, IndexVar) and x.expression.value.dtype == "int64":
        return Tile(x.trace, x.expression.value)
    return x.trace.emit(FromIndex, TileType((), "int64"), index=x.expression)


def _predicate_tile(trace: Trace, predicate: Predicate) -> Tile:
    boolean = TileType((), "bool")
    match predicate:
        case BoolConst(value):
            return filled(trace, (), value, "bool")
        case Comparison(op, a, b):
            sides = tuple(
                filled(trace, (), e.value, "int64")
                if isinstance(e, IndexConst)
                else _index_tile(Index(trace, e))
                for e in (a, b)
            )
            return trace.emit(
                Elementwise, boolean, fn=_COMPARISONS[op], operands=tuple(s.value for s in sides)
            )
        case And(a, b) | Or(a, b):
            fn = "and" if isinstance(predicate, And) else "or"
            both = (_predicate_tile(trace, a).value, _predicate_tile(trace, b).value)
            return trace.emit(Elementwise, boolean, fn=fn, operands=both)
        case Not(a):
            return trace.emit(Elementwise, boolean, fn="invert", operands=(_predicate_tile(trace, a).value,))


def converted(tile: Tile, dtype: str) -> Tile:
    """The tile in a dtype."""
    value = value_of(tile)
    if value.dtype == dtype:
        return tile
    return tile.trace.emit(Cast, TileType(value.shape, dtype), operand=value)


def adapted(tile: Tile, dtype: str) -> Tile:
    """The tile as an operand of a dtype: converted, or if it is weak made of numbers of that dtype.

    Raises
    ------
    OperandError
        The dtype does not hold one of the numbers.
    """
    if tile.weak is None or tile.dtype == dtype or dtype in STORAGE_ONLY:
        return converted(tile, dtype)
    result = tile.weak(dtype)
    name = tile.trace.names.get(tile.value.id)
    if name is not None:
        tile.trace.names.setdefault(result.value.id, name)
    return result


def weakened(make: Callable[[str], Tile], dtype: str) -> Tile:
    """``make(dtype)`` as a weak tile; ``make`` is called again for other dtypes."""
    with require_trace("a tile operation").provisionally():
        tile = make(dtype)
    return Tile(tile.trace, tile.value, make)


def like_weak(tile: Tile, operation: Callable[[Tile], Tile]) -> Tile:
    """An operation on a tile that keeps its dtype; the result is weak if the tile is."""
    if tile.weak is None:
        return operation(tile)
    return weakened(lambda dtype: operation(adapted(tile, dtype)), tile.dtype)


def broadcast(tile: Tile, shape: tuple[int, ...]) -> Tile:
    """The tile in a shape that NumPy's broadcasting gives.

    Raises
    ------
    OperandError
        The shapes do not broadcast.
    """
    value = value_of(tile)
    if value.shape == shape:
        return tile
    try:
        fits = broadcast_shapes(value.shape, shape) == shape
    except TypeFault:
        fits = False
    if not fits:
        raise OperandError(
            f"{tile._describe()} does not broadcast to shape {shape}",
            span=current_span(),
            suggestion="insert axes with x[:, None], or reshape",
        )
    return like_weak(tile, lambda t: t.trace.emit(Broadcast, TileType(shape, t.dtype), operand=value_of(t)))
