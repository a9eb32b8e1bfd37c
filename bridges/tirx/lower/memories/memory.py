"""Memories: how parameters are declared, and how elements are read and written."""

from __future__ import annotations

# ruff: noqa: D102 -- the methods of a source are documented at `Source`.
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx
from tvm.tirx import BufferStore, Cast, IfThenElse, IntImm, Select, Var
from tvm.tirx.buffer import buffer_data, decl_buffer
from tvm.tirx.layout import S, TileLayout

from tvm_tile.bridges.tirx.lower.bounds import Check, inside_of
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.elements.float8 import decoded, encoded
from tvm_tile.bridges.tirx.lower.elements.halves import decoded_half, encoded_half
from tvm_tile.bridges.tirx.lower.machine import Machine
from tvm_tile.bridges.tirx.lower.memories.addresses import VALUE, address_of_element
from tvm_tile.bridges.tirx.lower.scalars import int64, literal
from tvm_tile.bridges.tirx.lower.values import Index, Source
from tvm_tile.bridges.tirx.prologue import debug_assertion
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits
from tvm_tile.ir.index import IndexConst, add, mul
from tvm_tile.ir.ops import Number, Point, Slice, View
from tvm_tile.ir.values import Memory
from tvm_tile.semantics.rounding import constant

__all__ = [
    "Loaded",
    "check_promise",
    "declare",
    "from_storage",
    "subscripts_of",
    "to_storage",
    "view_index",
    "viewed_at",
    "words_of",
    "write_element",
]


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


def words_of(memory: Memory, buffer: Any, name: str, machine: Machine) -> Any | None:
    """A statement that declares a view of a tensor parameter by which kernels access it, if they need one.

    Its elements are of the dtype in which the device stores them, and it has at least one axis.
    """
    dtype = machine.storage(memory.dtype)
    if dtype == memory.dtype and memory.shape:
        return None
    shape = memory.shape or (1,)
    arguments: dict[str, Any] = {}
    if memory.shape and memory.strides is not None and 0 not in shape:
        strides = memory.element_strides
        arguments = {"strides": list(map(int64, strides)), "layout": TileLayout(S[shape : tuple(strides)])}
    view = decl_buffer([int64(n) for n in shape], dtype, name, data_alignment=bits(dtype) // 8, **arguments)
    data = buffer_data(buffer)
    if dtype != memory.dtype:
        data = tirx.reinterpret(buffer_data(view).ty, data)
    return tirx.DeclBuffer(view, data=data)


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
    """A view of a memory, read where it is used.

    With ``where`` (a debug build) the promise of ``assume`` is checked; it names the place in the source.
    """

    memory: Memory
    place: Callable[[Index], Index]
    limits: Callable[[Index], tuple[Check, ...]]
    fill: Number
    assume: bool
    mask: Source | None = None
    where: str | None = None

    def element(self, index: Index, body: Body) -> Any:
        dtype = self.memory.dtype
        packed = dtype in STORAGE_ONLY and self.memory.scope != VALUE
        fill = _code(self.fill, dtype) if packed else literal(self.fill.value, dtype)
        if 0 in self.memory.shape:
            return decoded(fill, dtype, body) if packed else fill
        inside = inside_of(self.limits(index), body.builder) if body.guarded and not self.assume else None
        wanted = None
        if self.mask is not None:
            wanted = tirx.NE(self.mask.element(index, body), IntImm("uint8", 0))
        if self.where is not None:
            check_promise(self.limits(index), wanted, self.memory, self.where, body.builder)
        value = _read(self.memory, self.place(index), body.builder)
        if wanted is not None:
            if self.assume:
                inside = wanted
            else:
                value = (
                    Select(wanted, value, fill) if inside is None else tirx.if_then_else(wanted, value, fill)
                )
        if inside is not None:
            value = tirx.if_then_else(inside, value, fill)
        return decoded(body.name(value, "uint8"), dtype, body) if packed else value

    def checks(self, index: Index) -> tuple[Check, ...]:
        mask = () if self.mask is None else self.mask.checks(index)
        return mask if self.assume or 0 in self.memory.shape else (*self.limits(index), *mask)

    @property
    def vectorizes(self) -> bool:
        # With a mask, "assume" promises nothing about the lanes that are masked off.
        return self.where is None and (self.mask is None or (not self.assume and self.mask.vectorizes))

    @property
    def reads(self) -> dict[str, bool]:
        return {} if self.mask is None else dict(self.mask.reads)


def _code(fill: Number, dtype: str) -> Any:
    return IntImm("uint8", int(constant(fill, dtype).view(np.uint8)))


def check_promise(
    checks: tuple[Check, ...], wanted: Any | None, memory: Memory, where: str, builder: Builder
) -> None:
    """Assert that an access, unless it is masked off, is in bounds, as was promised."""
    inside = IntImm("bool", 0) if 0 in memory.shape else inside_of(checks, builder)
    if inside is not None:
        kept = inside if wanted is None else tirx.Or(tirx.Not(wanted), inside)
        builder.emit(debug_assertion(kept, f"{where}: access out of bounds of {memory.name}"))


def subscripts_of(memory: Memory, index: Index, builder: Builder) -> list[Any]:
    """Subscripts of an element in the memory's buffer.

    The buffer of a parameter has the parameter's axes. Explicit memory has one axis of addresses, and so
    have values that are kept as memory.
    """
    if memory.scope == "param":
        return [builder.index(position) for position in index] if index else [int64(0)]
    return [builder.index(address_of_element(memory, index, builder.debug))]


def _read(memory: Memory, index: Index, builder: Builder) -> Any:
    value = tirx.BufferLoad(builder.buffers[memory], subscripts_of(memory, index, builder))
    if memory.scope == VALUE:
        return value
    return from_storage(value, memory.dtype, not builder.machine.is_device)


def from_storage(value: Any, dtype: str, has_float16: bool = True) -> Any:
    """An element as memory holds it, or its bits as a word, as a register; 8-bit floats as their codes."""
    word = str(value.ty.dtype) != dtype
    match dtype:
        case "bool":
            return value if word else Cast("uint8", value)
        case "float16":
            if not has_float16:
                return decoded_half(value)
            return Cast("float32", tirx.reinterpret("float16", value) if word else value)
        case "bfloat16":
            bits16 = value if word else tirx.reinterpret("uint16", value)
            wide = tirx.shift_left(Cast("uint32", bits16), IntImm("uint32", 16))
            return tirx.reinterpret("float32", wide)
        case "float8_e4m3fn" | "float8_e5m2":
            return value if word else tirx.reinterpret("uint8", value)
    return value


def to_storage(value: Any, dtype: str, stored: str, body: Body) -> Any:
    """A register as memory holds the element: as ``dtype``, or its bits where that is not ``stored``."""
    word = stored != dtype
    match dtype:
        case "bool":
            return value if word else tirx.NE(value, IntImm("uint8", 0))
        case "float16":
            if not body.has_float16:
                return encoded_half(value, body)
            half = Cast("float16", value)
            return tirx.reinterpret("uint16", half) if word else half
        case "bfloat16":
            upper = tirx.shift_right(tirx.reinterpret("uint32", value), IntImm("uint32", 16))
            bits16 = Cast("uint16", upper)
            if word:
                return bits16
            # A register has a value a lane: TVM does not legalize a broadcast of one bfloat16 value.
            return tirx.reinterpret("bfloat16", body.copy(bits16, "uint16") if body.lanes > 1 else bits16)
        case "float8_e4m3fn" | "float8_e5m2":
            code = encoded(value, dtype, body)
            return code if word else tirx.reinterpret(dtype, code)
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
    stored = value if memory.scope == VALUE else to_storage(value, memory.dtype, str(buffer.dtype), body)
    store = BufferStore(buffer, stored, subscripts_of(memory, index, builder))
    condition = inside_of(checks, builder) if body.guarded else None
    if mask is not None:
        wanted = tirx.NE(mask, IntImm("uint8", 0))
        condition = wanted if condition is None else tirx.And(condition, wanted)
    builder.emit(store if condition is None else IfThenElse(condition, store, None))
