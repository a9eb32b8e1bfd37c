"""Explicit memory: its shape, its scope, and where its elements lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_tile.errors import CaptureError, IllegalError, UnsupportedError
from tvm_tile.frontend.constructs import assigned_name
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, index_expression
from tvm_tile.frontend.operands import dtype_argument
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import shape_argument
from tvm_tile.frontend.tensor import Tensor
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Trace, require_trace
from tvm_tile.ir.index import (
    AddressMap,
    IndexBinary,
    IndexConst,
    IndexExpr,
    IndexVar,
    add,
    as_linear,
    free_values,
    interval,
    mul,
)
from tvm_tile.ir.ops import Alloc
from tvm_tile.ir.values import Memory, Value

__all__ = ["alloc"]

#: Memory that is not larger is checked element by element.
_ENUMERATED = 1 << 22


def alloc(shape: Any, dtype: Any, memory: str | None = None, layout: Any = None) -> Tensor:
    """Explicit memory, fresh and not initialized each time that this statement runs.

    Parameters
    ----------
    shape : int or sequence of int
        Static extents.
    dtype
        Element type.
    memory : str, optional
        Memory space: ``"local"`` (the default: of one instance), ``"shared"``, ``"global"``, or one of the
        target.
    layout : sequence of int, or function of the indices, optional
        Where each element lies, counted in elements from the start: strides, one an axis, or a function such
        as ``lambda i, j: i * 33 + j``. Different elements have different addresses. By default row-major.

    Returns
    -------
    Tensor
        With the same ``[]`` and ``.at`` as a parameter. It lives to the end of the block that allocates it.

    Raises
    ------
    CaptureError
        An extent is not static or negative, there is no such dtype, or the layout is no index arithmetic.
    IllegalError
        Two elements share an address, or one is negative.
    UnsupportedError
        The memory is too large for its layout to be checked, and the layout is not linear.
    """
    trace = require_trace("tt.alloc")
    span = current_span()
    extents, element = shape_argument(shape), dtype_argument(dtype)
    if memory is not None and (not isinstance(memory, str) or not memory.isidentifier() or memory == "param"):
        raise CaptureError(
            f"memory={described(memory)} is no memory space",
            span=span,
            suggestion='"local", "shared" or "global"; `tvm-tile doctor` lists those of each target',
        )
    name = trace.unique_memory(assigned_name(span) or "memory")
    strides, addresses = None, None
    if layout is not None:
        address, axes = _address(trace, layout, extents, name)
        size = _checked_size(address, axes, extents, name)
        if callable(layout):
            addresses = AddressMap(axes, address, size)
        else:
            strides = Memory.dense_or_strides(extents, tuple(int(step) for step in layout))
    made = Memory(name, extents, element, strides, memory or "local", addresses, span=span)
    trace.append(Alloc(made, span=span))
    return Tensor(trace, made, trace.scope)


def _address(
    trace: Trace, layout: Any, extents: tuple[int, ...], name: str
) -> tuple[IndexExpr, tuple[Value, ...]]:
    axes = tuple(AddressMap.axis(position) for position in range(len(extents)))
    if callable(layout):
        return _traced_address(trace, layout, axes, name), axes
    span = current_span()
    is_sequence = hasattr(layout, "__iter__") and not isinstance(layout, Operators)
    steps = tuple(layout) if is_sequence else (layout,)
    if len(steps) != len(extents) or not all(
        isinstance(step, (int, np.integer)) and not isinstance(step, bool) for step in steps
    ):
        raise CaptureError(
            f"layout={described(layout)} of memory {name!r} of shape {extents} is neither one stride an axis "
            "nor a function",
            span=span,
            suggestion="give as many ints as there are axes, or a function of the indices",
        )
    address: IndexExpr = IndexConst(0)
    for axis, step in zip(axes, steps, strict=True):
        address = add(address, mul(IndexVar(axis), IndexConst(int(step))))
    return address, axes


def _traced_address(
    trace: Trace, layout: Callable[..., Any], axes: tuple[Value, ...], name: str
) -> IndexExpr:
    from tvm_tile.frontend.runtime import prepared

    span = current_span()
    with trace.open_scope("layout") as scope:
        for axis in axes:
            trace.define(axis, scope)
        result = prepared(layout)(*(Index(trace, IndexVar(axis)) for axis in axes))
    expression = None if isinstance(result, Tile) else index_expression(result)
    if expression is None or not free_values(expression) <= set(axes):
        outside = "" if expression is None else ", which reads values that change while the program runs"
        raise CaptureError(
            f"the layout of memory {name!r} gives {described(result)}{outside}",
            span=span,
            suggestion="compute the address from the layout's own indices and ints, with "
            "+ - * // %, tt.minimum and tt.maximum",
        )
    return expression


def _checked_size(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...], name: str) -> int:
    """How many addresses the memory takes, once it is shown that its elements do not share any."""
    count = math.prod(extents)
    if count == 0:
        return 0
    size = _shown_size(address, axes, extents, name)
    if size >= 2**63:
        raise IllegalError(
            f"the layout of memory {name!r} has the address {size - 1}, which does not fit 64 bits",
            span=current_span(),
            obligation="addresses of 64 bits",
            suggestion="use smaller strides",
        )
    return size


def _shown_size(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...], name: str) -> int:
    count = math.prod(extents)
    low, high = interval(address, {axis: (0, n - 1) for axis, n in zip(axes, extents, strict=True)})
    if low is not None and high is not None and _is_nested(address, axes, extents):
        # A linear map takes its extremes at corners, so the interval is exact.
        if low < 0:
            raise _negative(name, low)
        return high + 1
    if count > _ENUMERATED:
        raise UnsupportedError(
            f"the layout of memory {name!r} of {count} elements cannot be checked for shared addresses",
            span=current_span(),
            obligation="injective layout",
            suggestion="use strides that nest, or a smaller memory",
        )
    return _enumerated_size(address, axes, extents, name)


def _negative(name: str, address: int, element: str | None = None) -> IllegalError:
    return IllegalError(
        f"the layout of memory {name!r} has the negative address {address}",
        span=current_span(),
        obligation="layout from address 0",
        counterexample=element,
        suggestion="add an offset, so that the least address is 0",
    )


def _is_nested(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> bool:
    """Whether the map is linear with strides that each step over all that the smaller ones reach."""
    terms, _ = as_linear(address)
    if any(not isinstance(atom, IndexVar) for atom in terms):
        return False
    reach = 0
    steps = sorted(
        (abs(terms.get(IndexVar(axis), 0)), n) for axis, n in zip(axes, extents, strict=True) if n > 1
    )
    for step, extent in steps:
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _enumerated_size(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...], name: str) -> int:
    span, count = current_span(), math.prod(extents)
    grid = np.indices(extents, sparse=True, dtype=np.int64)
    if _is_huge(address, axes, extents):
        grid = tuple(part.astype(object) for part in grid)
    places = np.broadcast_to(_evaluated(address, dict(zip(axes, grid, strict=True))), extents).reshape(-1)
    order = np.argsort(places, kind="stable")
    ordered = places[order]

    def element(flat: Any) -> str:
        return str(tuple(int(i) for i in np.unravel_index(int(flat), extents)))

    if ordered[0] < 0:
        raise _negative(name, int(ordered[0]), f"element {element(order[0])}")
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if equal.size:
        first, second, place = order[equal[0]], order[equal[0] + 1], int(ordered[equal[0]])
        distinct = count - equal.size
        raise IllegalError(
            f"the layout of memory {name!r} maps {count} elements onto {distinct} addresses",
            span=span,
            obligation="injective layout",
            counterexample=f"elements {element(first)} and {element(second)} share address {place}",
            suggestion="give each element an address of its own",
        )
    return int(ordered[-1]) + 1


def _is_huge(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> bool:
    """Whether some part of the address may not fit in 64 bits."""
    bounds = {axis: (0, n - 1) for axis, n in zip(axes, extents, strict=True)}

    def fits(e: IndexExpr) -> bool:
        low, high = interval(e, bounds)
        inside = low is not None and high is not None and -(2**62) < low <= high < 2**62
        return inside and (not isinstance(e, IndexBinary) or (fits(e.a) and fits(e.b)))

    return not fits(address)


def _evaluated(e: IndexExpr, values: dict[Value, Any]) -> Any:
    match e:
        case IndexConst(value):
            return np.asarray(value, dtype=object if abs(value) >= 2**62 else np.int64)
        case IndexVar(value):
            return values[value]
        case IndexBinary(op, a, b):
            left, right = _evaluated(a, values), _evaluated(b, values)
            match op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "min":
                    return np.minimum(left, right)
                case "max":
                    return np.maximum(left, right)
            # Division by zero gives 0, as everywhere in the language.
            divisor = np.where(right == 0, 1, right)
            quotient = left // divisor if op == "//" else left % divisor
            return np.where(right == 0, 0, quotient)
    raise AssertionError(e)
