"""Stores of tiles into rectangular parts: of memories, and of other tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, IntImm

from tvm_tile.bridges.tirx.lower.bounds import Check
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.loops import element_loops
from tvm_tile.bridges.tirx.lower.memories.memory import check_promise, view_index, viewed_at, write_element
from tvm_tile.bridges.tirx.lower.values import Index, Source, flat_index
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.index import IndexConst, add
from tvm_tile.ir.ops import View
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import TileType

__all__ = ["join", "position_of", "store_view"]


def position_of(span: Span | None) -> str:
    """File and line, for the message of a debug build."""
    return "unknown position" if span is None else f"{span.file}:{span.line}"


def store_view(
    builder: Builder,
    view: View,
    value: Source,
    mask: Source | None = None,
    assume: bool = False,
    span: Span | None = None,
) -> None:
    """Emit a store of a tile into a view; what is out of bounds or masked off is dropped.

    Parameters
    ----------
    assume
        The program promises that the whole view is in bounds; a debug build checks it.
    span
        Where the store stands in the source.
    """
    memory = view.memory
    checked = assume and builder.debug
    if 0 in memory.shape and not checked:
        return
    place = view_index(view, builder)
    limits = viewed_at(view, place)

    def checks(index: Index) -> tuple[Check, ...]:
        own = () if assume else limits(index)
        return (*own, *value.checks(index), *(() if mask is None else mask.checks(index)))

    def sink(index: Index, body: Body) -> None:
        wanted = None if mask is None else body.name(mask.element(index, body), "uint8")
        if checked:
            kept = None if wanted is None else tirx.NE(wanted, IntImm("uint8", 0))
            check_promise(limits(index), kept, memory, position_of(span), builder)
        element = value.element(index, body)
        if 0 not in memory.shape:
            write_element(memory, place(index), element, body, () if assume else limits(index), wanted)

    element_loops(
        builder, view.shape, sink,
        width=max(value.width, bits(memory.dtype) // 8),
        checks=checks,
        vectorize=value.vectorizes and mask is None and not checked,
    )  # fmt: skip


def join(builder: Builder, operands: Sequence[Source], axis: int, type: TileType, out: Any) -> None:
    """Emit the concatenation of tiles along an axis into a dense temporary."""
    start = 0
    for operand in operands:

        def sink(index: Index, body: Body, operand: Source = operand, start: int = start) -> None:
            place = (*index[:axis], add(index[axis], IndexConst(start)), *index[axis + 1 :])
            value = operand.element(index, body)
            builder.emit(BufferStore(out, value, [builder.index(flat_index(place, type.shape))]))

        element_loops(
            builder, operand.type.shape, sink,
            width=operand.width, checks=operand.checks, vectorize=operand.vectorizes,
        )  # fmt: skip
        start += operand.type.shape[axis]
