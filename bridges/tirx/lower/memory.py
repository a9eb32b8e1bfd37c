"""Tensor parameters: how they are declared, and how elements are read and written."""

from __future__ import annotations

# ruff: noqa: D102 -- the methods of a source are documented at `Source`.
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, Cast, IfThenElse, IntImm, Select, Var
from tvm.tirx.buffer import buffer_data, decl_buffer
from tvm.tirx.layout import S, TileLayout

from tvm_tile.bridges.tirx.lower.bounds import Check, inside_of
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.scalars import int64, literal
from tvm_tile.bridges.tirx.lower.values import Index, Source
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.index import IndexConst, add, mul
from tvm_tile.ir.ops import Number, Point, Slice, View
from tvm_tile.ir.values import Memory

__all__ = ["Loaded", "declare", "view_index", "viewed_at", "write_element"]


def declare(memory: Memory, name: str) -> tuple[Any, Any | None]:
    """The buffer of a tensor parameter, and a statement that declares a view to access it by.

    Elements are assumed to be aligned to their own size only. Strides of axes with one element or of
    an empty array may be anything, as in NumPy. TVM's pipelines read strides (the default one) or the
    layout (``"tirx"``), so both are given.
    """
    shape = [int64(n) for n in memory.shape]
    alignment = max(bits(memory.dtype) // 8, 1)
    arguments: dict[str, Any] = {}
    if memory.strides is not None or 0 in memory.shape:
        strides = memory.element_strides
        free = 0 in memory.shape
        arguments["strides"] = [
            Var(f"{name}_stride_{axis}", "int64") if free or n == 1 else int64(s)
            for axis, (n, s) in enumerate(zip(memory.shape, strides, strict=True))
        ]
        if not free:
            arguments["layout"] = TileLayout(S[tuple(memory.shape) : tuple(strides)])
    buffer = decl_buffer(shape, memory.dtype, name, data_alignment=alignment, **arguments)
    if memory.shape:
        return buffer, None
    # The pipeline "tirx" cannot address a buffer without axes.
    view = decl_buffer([int64(1)], memory.dtype, f"{name}_0", data_alignment=alignment)
    return buffer, tirx.DeclBuffer(view, data=buffer_data(buffer))


def view_index(view: View, builder: Builder) -> Callable[[Index], Index]:
    """From an index into a view to the index into its memory."""
    subscripts = [
        (
            Point(builder.resolve(s.index))
            if isinstance(s, Point)
            else Slice(builder.resolve(s.start), s.size, s.step)
        )
        for s in view.subscripts
    ]

    def place(index: Index) -> Index:
        rest = iter(index)
        return tuple(
            s.index if isinstance(s, Point) else add(s.start, mul(next(rest), IndexConst(s.step)))
            for s in subscripts
        )

    return place


def viewed_at(view: View, place: Callable[[Index], Index]) -> Callable[[Index], tuple[Check, ...]]:
    """From an index into a view to the bounds of its memory."""
    shape = view.memory.shape

    def checks(index: Index) -> tuple[Check, ...]:
        return tuple(Check(position, extent) for position, extent in zip(place(index), shape, strict=True))

    return checks


@dataclass(frozen=True, eq=False)
class Loaded(Source):
    """A view of a memory, read where it is used."""

    memory: Memory
    place: Callable[[Index], Index]
    limits: Callable[[Index], tuple[Check, ...]]
    fill: Number
    assume: bool
    mask: Source | None = None

    def element(self, index: Index, body: Body) -> Any:
        fill = literal(self.fill.value, self.memory.dtype)
        if 0 in self.memory.shape:
            return fill
        value = _read(body.builder.buffers[self.memory], self.place(index), self.memory.dtype, body.builder)
        inside = inside_of(self.limits(index), body.builder) if body.guarded and not self.assume else None
        if self.mask is not None:
            wanted = tirx.NE(self.mask.element(index, body), IntImm("uint8", 0))
            if self.assume:
                inside = wanted
            else:
                value = (
                    Select(wanted, value, fill) if inside is None else tirx.if_then_else(wanted, value, fill)
                )
        return value if inside is None else tirx.if_then_else(inside, value, fill)

    def checks(self, index: Index) -> tuple[Check, ...]:
        mask = () if self.mask is None else self.mask.checks(index)
        return mask if self.assume or 0 in self.memory.shape else (*self.limits(index), *mask)

    @property
    def vectorizes(self) -> bool:
        # With a mask, "assume" promises nothing about the lanes that are masked off.
        return self.mask is None or (not self.assume and self.mask.vectorizes)

    @property
    def reads(self) -> dict[str, bool]:
        return {} if self.mask is None else dict(self.mask.reads)


def _address(buffer: Any, index: Index, builder: Builder) -> list[Any]:
    return [builder.index(position) for position in index] if index else [int64(0)]


def _read(buffer: Any, index: Index, dtype: str, builder: Builder) -> Any:
    value = tirx.BufferLoad(buffer, _address(buffer, index, builder))
    match dtype:
        case "bool":
            return Cast("uint8", value)
        case "float16":
            return Cast("float32", value)
        case "bfloat16":
            word = Cast("uint32", tirx.reinterpret("uint16", value))
            return tirx.reinterpret("float32", tirx.shift_left(word, IntImm("uint32", 16)))
    return value


def _written(value: Any, dtype: str) -> Any:
    match dtype:
        case "bool":
            return tirx.NE(value, IntImm("uint8", 0))
        case "float16":
            return Cast("float16", value)
        case "bfloat16":
            word = tirx.shift_right(tirx.reinterpret("uint32", value), IntImm("uint32", 16))
            return tirx.reinterpret("bfloat16", Cast("uint16", word))
    return value


def write_element(
    memory: Memory, index: Index, value: Any, body: Body, checks: tuple[Check, ...], mask: Any | None
) -> None:
    """Store an element of a memory, if it is in bounds and not masked off.

    Parameters
    ----------
    memory, index
        Where.
    value
        Register expression.
    checks
        Bounds to test in a guarded body.
    mask
        Truth value, or ``None``.
    """
    builder = body.builder
    buffer = builder.buffers[memory]
    store = BufferStore(buffer, _written(value, memory.dtype), _address(buffer, index, builder))
    condition = inside_of(checks, builder) if body.guarded else None
    if mask is not None:
        wanted = tirx.NE(mask, IntImm("uint8", 0))
        condition = wanted if condition is None else tirx.And(condition, wanted)
    builder.emit(store if condition is None else IfThenElse(condition, store, None))
