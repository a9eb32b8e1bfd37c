"""Loop nests over the elements of a tile: vectors inside, single elements at the edges.

The innermost axis runs in vectors as long as every memory access on the way is in bounds; what is left
over (the tail, and lanes out of bounds) runs element by element with tests. One nest therefore has two
bodies, whatever it reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, ForKind, Select

from tvm_tile.bridges.tirx.lower.bounds import Check, inside_of, unproved
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.scalars import int64, linear
from tvm_tile.bridges.tirx.lower.values import Index, Source, Stored, flat_index
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar, as_linear, free_values
from tvm_tile.ir.values import Value

__all__ = ["element_loops", "store_into"]


@dataclass(frozen=True)
class _Lanes:
    """Part ``[low, low + count * lanes)`` of the innermost axis that runs in vectors."""

    low: Any
    count: Any

    @property
    def static(self) -> bool:
        return isinstance(self.count, int)


def element_loops(
    builder: Builder,
    shape: tuple[int, ...],
    sink: Callable[[Index, Body], None],
    *,
    width: int,
    checks: Callable[[Index], tuple[Check, ...]] = lambda _: (),
    vectorize: bool = True,
    hint: str = "i",
) -> None:
    """Emit loops that run ``sink`` for every index of a shape, in row-major order but for the edges.

    Parameters
    ----------
    builder
        Receives the loops.
    shape
        Extents; nothing is emitted if one is zero.
    sink
        Emits the work for one index into a body.
    width
        Bytes of the widest element, by which lanes are chosen.
    checks
        Bounds that the work at an index relies on.
    vectorize
        Whether lanes may be computed together.
    """
    if 0 in shape:
        return
    axes = [builder.axis(hint, n) if n > 1 else None for n in shape]
    index: Index = tuple(IndexConst(0) if axis is None else IndexVar(axis) for axis in axes)
    running = [(axis, n) for axis, n in zip(axes, shape, strict=True) if axis is not None]
    if not running:
        sink(index, Body(builder))
        return
    *outer, (inner, extent) = running
    lanes = min(builder.machine.lanes(width), 1 << (extent.bit_length() - 1)) if vectorize else 1
    open_checks = unproved(checks(index), builder) if lanes > 1 else ()
    rows, lane_checks, regular = _split(open_checks, inner)
    if not regular:
        lanes = 1

    nest = _Nest(builder, index, sink, inner, extent, lanes)
    outer_axes = frozenset(axis for axis, _ in outer)
    hoisted: _Lanes | None = None
    if lanes > 1 and not any(free_values(base) & outer_axes for base, _, _ in lane_checks):
        hoisted = nest.vector_part(lane_checks)

    def rows_from(depth: int) -> None:
        if depth < len(outer):
            axis, count = outer[depth]
            variable = builder.variable(hint)
            builder.integers[axis] = variable
            with builder.block() as statements:
                rows_from(depth + 1)
            builder.emit(builder.loop(variable, count, statements))
            return
        if lanes == 1:
            nest.elements(_Lanes(0, 0))
            return
        part = hoisted if hoisted is not None else nest.vector_part(lane_checks)
        nest.row(nest.only_if(part, rows))

    rows_from(0)


def _split(
    checks: tuple[Check, ...], inner: Value
) -> tuple[tuple[Check, ...], list[tuple[IndexExpr, int, int]], bool]:
    """Checks of whole rows; checks ``base + step * lane`` of lanes; and whether there are no others."""
    rows: list[Check] = []
    lanes: list[tuple[IndexExpr, int, int]] = []
    for check in checks:
        terms, constant = as_linear(check.position)
        terms = dict(terms)
        step = terms.pop(IndexVar(inner), 0)
        base = linear(terms, constant)
        if inner in free_values(base):
            return (), [], False
        if step:
            lanes.append((base, step, check.extent))
        else:
            rows.append(check)
    return tuple(rows), lanes, True


@dataclass
class _Nest:
    builder: Builder
    index: Index
    sink: Callable[[Index, Body], None]
    inner: Value
    extent: int
    lanes: int

    def vector_part(self, checks: list[tuple[IndexExpr, int, int]]) -> _Lanes:
        """The lanes for which all checks hold, as a whole number of vectors."""
        low: Any = 0
        high: Any = self.extent
        for base, step, extent in checks:
            start = base.value if isinstance(base, IndexConst) else self.builder.index(base)
            first, end = _range(start, step, extent, self.extent)
            low, high = _larger(low, first), _smaller(high, end)
        low = _smaller(low, self.extent)
        if isinstance(low, int) and isinstance(high, int):
            return _Lanes(low, max(high - low, 0) // self.lanes)
        count = tirx.floordiv(_larger(high - low, 0), int64(self.lanes))
        held = low if isinstance(low, int) else self.builder.hold("first", low, "int64")
        return _Lanes(held, self.builder.hold("vectors", count, "int64"))

    def only_if(self, part: _Lanes, rows: tuple[Check, ...]) -> _Lanes:
        """No lanes in a row that is out of bounds."""
        test = inside_of(rows, self.builder)
        if test is None or (part.count == 0 and part.static):
            return part
        count = int64(part.count) if part.static else part.count
        return _Lanes(part.low, self.builder.hold("vectors", Select(test, count, int64(0)), "int64"))

    def row(self, part: _Lanes) -> None:
        """One pass over the innermost axis."""
        if not (part.static and part.count == 0):
            self._vectors(part)
        self.elements(part)

    def _vectors(self, part: _Lanes) -> None:
        builder = self.builder
        lane = builder.variable("lane")
        single = part.static and part.count == 1
        chunk = int64(0) if single else builder.variable("chunk")
        builder.integers[self.inner] = chunk * int64(self.lanes) + lane + _expression(part.low)
        with builder.block() as statements:
            self.sink(self.index, Body(builder, lane, self.lanes, guarded=False))
        vector = builder.loop(lane, self.lanes, statements, ForKind.VECTORIZED)
        builder.emit(vector if single else builder.loop(chunk, part.count, [vector]))

    def elements(self, part: _Lanes) -> None:
        """The positions before and after the vectors."""
        builder = self.builder
        done = part.count * self.lanes if part.static else part.count * int64(self.lanes)
        left = self.extent - done if part.static else int64(self.extent) - done
        if part.static and left == 0:
            return
        variable = (
            int64(0)
            if part.static and left == 1
            else builder.variable("i" if part.static and part.count == 0 else "rest")
        )
        position = variable
        if not (part.static and part.count == 0):
            after = _expression(done)
            if not (isinstance(part.low, int) and part.low == 0):
                after = Select(tirx.LT(variable, _expression(part.low)), int64(0), after)
            position = variable + after
        with builder.block() as statements:
            held = position if part.static else builder.hold("at", position, "int64")
            builder.integers[self.inner] = held
            self.sink(self.index, Body(builder))
        if part.static and left == 1:
            for statement in statements:
                builder.emit(statement)
        else:
            builder.emit(builder.loop(variable, left, statements))


def _range(start: Any, step: int, extent: int, size: int) -> tuple[Any, Any]:
    """The lanes ``[first, end)`` of ``range(size)`` with ``0 <= start + step * lane < extent``.

    The start is clamped first: it may be a number read from memory, and arithmetic on it could wrap.
    """
    if step > 0:
        start = _smaller(_larger(start, -step * size), extent)
        first = (_larger(0 - start, 0) + (step - 1)) // step
        end = _smaller((extent - 1 - start) // step + 1, size)
        return first, end
    stride = -step
    start = _smaller(_larger(start, -1), extent + stride * size)
    first = _larger((start - extent) // stride + 1, 0)
    end = _smaller(start // stride + 1, size)
    return first, end


def _expression(value: Any) -> Any:
    return int64(value) if isinstance(value, int) else value


def _larger(a: Any, b: Any) -> Any:
    return (
        max(a, b) if isinstance(a, int) and isinstance(b, int) else tirx.max(_expression(a), _expression(b))
    )


def _smaller(a: Any, b: Any) -> Any:
    return (
        min(a, b) if isinstance(a, int) and isinstance(b, int) else tirx.min(_expression(a), _expression(b))
    )


def store_into(builder: Builder, source: Source, buffer: Any, hint: str = "i") -> None:
    """Evaluate a source into a dense temporary."""
    source = source.flattened() or source
    shape = source.type.shape

    def sink(index: Index, body: Body) -> None:
        value = source.element(index, body)
        builder.emit(BufferStore(buffer, value, [builder.index(flat_index(index, shape))]))

    if isinstance(source, Stored) and source.buffer.name == buffer.name:
        return
    element_loops(
        builder, shape, sink, width=source.width, checks=source.checks, vectorize=source.vectorizes, hint=hint
    )
