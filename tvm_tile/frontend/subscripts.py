"""Subscripts of tensors and tiles: ints, indices, ``ds``, slices of static length, ``...`` and new axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import counted, described
from tvm_tile.frontend.index import Index, index_expression
from tvm_tile.frontend.operands import like_weak, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped, shape_argument
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.index import IndexConst, IndexExpr, constant_of, sub
from tvm_tile.ir.ops import Extract, Point, Slice, Subscript, subscript_shape
from tvm_tile.ir.values import TileType

__all__ = ["ds", "extract", "resolve_subscripts"]


class ds:  # noqa: N801 named as in JAX Pallas
    """A subscript: ``size`` elements from ``start`` on.

    Parameters
    ----------
    start : int, index or integer scalar tile
        First element. It is a position, never wrapped: elements before 0 or past the end are out of
        bounds.
    size : int
        Static number of elements.

    Raises
    ------
    CaptureError
        The size is not a static int, or is negative.
    """

    __slots__ = ("size", "start")

    def __init__(self, start: Any, size: Any) -> None:
        if index_expression(start) is None:
            shown = described(start)
            raise CaptureError(
                f"the start of tt.ds is an integer, not {shown}",
                span=current_span(),
                suggestion=_integer_remedy(start),
            )
        (self.size,) = shape_argument((size,))
        self.start = start

    def __repr__(self) -> str:
        return f"ds({self.start}, {self.size})"


def resolve_subscripts(
    given: Any, shape: tuple[int, ...], what: str, *, new_axes: bool = True
) -> tuple[tuple[Subscript, ...], tuple[int, ...]]:
    """Subscripts of the language as one IR subscript an axis, and the shape with new axes put in.

    Parameters
    ----------
    given
        What stands between the brackets.
    shape
        Extents of the subscripted thing.
    what
        Its name, for errors.
    new_axes
        Whether ``None`` may stand for a new axis.

    Raises
    ------
    OperandError
        Too many subscripts, or one of a kind that there is not.
    CaptureError
        A slice whose length is not static.
    """
    items = given if isinstance(given, tuple) else (given,)
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        name = what.split("'")[1] if "'" in what else "x"
        tuples = require_trace(what).index_tuples
        of_tuple = next((remedy for indices, remedy in tuples if indices is given), None)
        dims = ", ".join(["0"] * len(shape))
        raise OperandError(
            f"{counted(used, 'subscript', 'subscripts')} for {what} "
            f"with {counted(len(shape), 'axis', 'axes')} of shape {shape}",
            span=current_span(),
            suggestion=of_tuple
            if of_tuple is not None
            else f"give one subscript an axis: {name}[{dims}]"
            if shape
            else f"it is a scalar: write {name}[()]",
        )
    if len(dots) > 1:
        raise OperandError(
            "a subscript has one `...` at most", span=current_span(), suggestion="write `:` for single axes"
        )
    rest = (slice(None),) * (len(shape) - used)
    at = dots[0] if dots else len(items)
    items = (*items[:at], *rest, *items[at + 1 :])
    subscripts: list[Subscript] = []
    result: list[int] = []
    for item in items:
        if item is None:
            if not new_axes:
                raise OperandError(
                    f"None makes no new axis in {what}",
                    span=current_span(),
                    suggestion="give the loaded tile the axis: x[:, None]",
                )
            result.append(1)
            continue
        subscript = _subscript(item, shape[len(subscripts)], what)
        subscripts.append(subscript)
        if isinstance(subscript, Slice):
            result.append(subscript.size)
    return tuple(subscripts), tuple(result)


def _subscript(item: Any, extent: int, what: str) -> Subscript:
    match item:
        case slice():
            return _slice(item, extent, what)
        case ds():
            return Slice(_checked(item.start), item.size)
        case bool() | np.bool_():
            pass
        case int() | np.integer():
            # A literal counts from the end if negative, as in NumPy; past the ends it is out of bounds.
            return Point(IndexConst(int(item) + extent) if -extent <= item < 0 else _checked(item))
        case _ if index_expression(item) is not None:
            return Point(_checked(item))
    description = described(item, 80)
    hint = _subscript_remedy(item)
    raise OperandError(f"{description} cannot be a subscript of {what}", span=current_span(), suggestion=hint)


def _subscript_remedy(item: Any) -> str:
    if isinstance(item, Tile) and item.shape:
        if item.dtype == "bool":
            return "select with tt.where, or store with a mask: A.at[:].store(value, mask=m)"
        return "select one element an instance of a region loop: for i in tt.serial(n): ... A[t[i]]"
    if isinstance(item, (list, np.ndarray)):
        return "loop over the positions with a Python `for`, or write tt.ds(start, size) for a range"
    return _integer_remedy(item)


def _integer_remedy(item: Any) -> str:
    """What to write where an integer is asked for and something else was given."""
    if isinstance(item, (float, Tile)) and (not isinstance(item, Tile) or item.dtype.startswith("float")):
        return 'divide with // to get an integer (/ gives a float), or convert with .astype("int32")'
    if isinstance(item, Operators) and not isinstance(item, Tile) and getattr(item, "shape", ()) != ():
        return "load one element of it first, such as A[0]"
    return "use an int, an index, an integer scalar tile, `:` or tt.ds(start, size)"


def _checked(x: Any) -> IndexExpr:
    if isinstance(x, Tile):
        value_of(x)
    elif isinstance(x, Index):
        trace = require_trace(x._describe())
        if x.trace is not trace:
            raise CaptureError(
                f"{x._describe()} was made in the capture of kernel {x.trace.name!r}",
                span=current_span(),
                suggestion="keep indices in local names of one kernel",
            )
        trace.check_index(x.expression)
    expression = index_expression(x)
    if expression is None:
        shown = described(x)
        raise OperandError(f"{shown} is no index", span=current_span(), suggestion=_integer_remedy(x))
    return expression


def _slice(item: slice, extent: int, what: str) -> Slice:
    parts = (item.start, item.stop, item.step)
    if all(p is None or isinstance(p, (int, np.integer)) for p in parts):
        try:
            first, last, by = item.indices(extent)
        except ValueError as error:
            raise OperandError(
                str(error), span=current_span(), suggestion="use a step other than 0"
            ) from None
        return Slice(IndexConst(first), len(range(first, last, by)), by)
    step = 1 if item.step is None else item.step
    start = IndexConst(0) if item.start is None else _checked(item.start)
    stop = IndexConst(extent) if item.stop is None else _checked(item.stop)
    length = constant_of(sub(stop, start))
    if length is None or not isinstance(step, (int, np.integer)) or step <= 0:
        raise CaptureError(
            f"the length of slice {_shown(item)} of {what} is not static",
            span=current_span(),
            suggestion="write tt.ds(start, size) with a static size",
        )
    return Slice(start, max(0, -(-length // int(step))), int(step))


def _shown(item: slice) -> str:
    text = f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
    return text if item.step is None else f"{text}:{item.step}"


def extract(tile: Tile, given: Any) -> Tile:
    """A rectangular part of a tile, with new axes put in; elements outside of it are 0."""
    value = value_of(tile)
    subscripts, shape = resolve_subscripts(given, value.shape, tile._describe())
    whole = all(
        isinstance(s, Slice) and s == Slice(IndexConst(0), n)
        for s, n in zip(subscripts, value.shape, strict=True)
    )
    if not whole:
        taken = subscript_shape(subscripts)
        tile = like_weak(
            tile,
            lambda t: t.trace.emit(
                Extract, TileType(taken, t.dtype), operand=value_of(t), subscripts=subscripts
            ),
        )
    return reshaped(tile, shape)
