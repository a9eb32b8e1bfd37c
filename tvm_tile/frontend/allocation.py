"""Explicit memory: its shape, its scope, and where its elements lie."""

from __future__ import annotations

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
from tvm_tile.ir.index import AddressMap, IndexExpr, IndexVar, free_values
from tvm_tile.ir.ops import Alloc
from tvm_tile.ir.placement import PlacementFault, address_count, strided_address
from tvm_tile.ir.values import Memory, Value

__all__ = ["alloc"]


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
        size = _checked_count(address, axes, extents, name)
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
    return strided_address(axes, tuple(int(step) for step in steps)), axes


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


def _checked_count(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...], name: str) -> int:
    """How many addresses the memory takes, once it is shown that its elements do not share any."""
    try:
        return address_count(address, axes, extents)
    except PlacementFault as fault:
        kind = UnsupportedError if fault.undecided else IllegalError
        raise kind(
            f"the layout of memory {name!r} {fault}",
            span=current_span(),
            obligation="injective layout",
            counterexample=fault.counterexample,
            suggestion=fault.suggestion,
        ) from None
