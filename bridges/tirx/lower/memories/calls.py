"""Calls of opaque C functions.

A pointer is that of the view's first element. Small integers are widened as C's calling conventions have
it, whoever of caller and callee relies on that.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx import BufferLoad, Cast, Evaluate, call_extern

from tvm_tile.bridges.tirx.lower.bounds import Check
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.memories.memory import check_promise, subscripts_of, view_index, viewed_at
from tvm_tile.bridges.tirx.lower.scalars import int64
from tvm_tile.bridges.tirx.lower.tiles.parts import position_of
from tvm_tile.bridges.tirx.lower.values import Source
from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Extern, View
from tvm_tile.ir.values import Value

__all__ = ["call_extern_function", "element_pointer"]


def call_extern_function(builder: Builder, op: Extern, env: dict[Value, Source]) -> None:
    """Emit ``symbol(...)`` of a C function that returns nothing."""
    arguments = [
        _pointer(builder, operand, op) if isinstance(operand, View) else _scalar(builder, env[operand], op)
        for operand in op.operands
    ]
    builder.emit(Evaluate(call_extern("void", op.symbol, *arguments)))


def element_pointer(builder: Builder, view: View, index: tuple[Any, ...]) -> Any:
    """The address of an element of a view's memory, given its index into the memory."""
    memory = view.memory
    buffer = builder.buffers[memory]
    if 0 in memory.shape:
        # There is no element; but the buffer of explicit memory has one, and must be seen to be used.
        return (
            tirx.buffer.buffer_data(buffer)
            if memory.scope == "param"
            else tirx.address_of(BufferLoad(buffer, [int64(0)]))
        )
    return tirx.address_of(BufferLoad(buffer, subscripts_of(memory, index, builder)))


def _pointer(builder: Builder, view: View, op: Extern) -> Any:
    place = view_index(view, builder)
    first = tuple(IndexConst(0) for _ in view.shape)
    if builder.debug and 0 not in view.shape:
        limits = viewed_at(view, place)
        last = tuple(IndexConst(n - 1) for n in view.shape)
        checks: tuple[Check, ...] = (*limits(first), *limits(last))
        check_promise(checks, None, view.memory, f"{position_of(op.span)}: argument of {op.symbol}", builder)
    return element_pointer(builder, view, place(first))


def _scalar(builder: Builder, source: Source, op: Extern) -> Any:
    dtype = source.type.dtype
    if dtype in ("float16", "bfloat16", *STORAGE_ONLY):
        raise UnsupportedError(
            f"the C function {op.symbol} takes a {dtype} scalar, which C has no common type for",
            span=op.span,
            suggestion='pass it as float32: x.astype("float32")',
        )
    element = source.element((), Body(builder))
    if dtype == "bool" or bits(dtype) < 32:
        return Cast("int32" if dtype.startswith("int") else "uint32", element)
    return element
