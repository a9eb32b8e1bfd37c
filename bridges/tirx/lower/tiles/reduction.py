"""Reductions of tiles over axes.

Where the order is free, the innermost reduced axis is summed in several vectors of partial results;
otherwise each element of the result takes its contributions strictly in order, and elements are
computed side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, Cast, ForKind, IntImm, Select

from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.elements.casts import compare, convert, truth
from tvm_tile.bridges.tirx.lower.elements.elementwise import apply, is_nan
from tvm_tile.bridges.tirx.lower.loops import element_loops
from tvm_tile.bridges.tirx.lower.scalars import int64, literal, register_dtype
from tvm_tile.bridges.tirx.lower.values import Index, Source, flat_index
from tvm_tile.ir.dtypes import accumulation_dtype, bits, is_float
from tvm_tile.ir.functions import identity_of
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar
from tvm_tile.ir.ops import ArgReduce, ReduceTile

__all__ = ["arg_reduce", "reduce_tile"]

_PARTIAL = 4


def reduce_tile(builder: Builder, op: ReduceTile, operand: Source, where: Source | None, out: Any) -> None:
    """Emit a :class:`~tvm_tile.ir.ops.ReduceTile` into a temporary; sources must need no bounds tests."""
    if op.result.type.size == 0:
        return
    reduction = _Reduction(builder, op, operand, where)
    free = (
        op.policy == "unordered_tree"
        or not is_float(reduction.dtype)
        or op.combiner in ("maximum", "minimum")
    )
    shape = operand.type.shape
    last = len(shape) - 1
    if free and last in op.axes and shape[last] >= 2 * reduction.lanes > 2 and _vectorizes(operand, where):
        reduction.along(last, out)
    else:
        reduction.in_order(out)


def _vectorizes(operand: Source, where: Source | None) -> bool:
    return operand.vectorizes and (where is None or where.vectorizes)


class _Reduction:
    """One reduction: what is combined, and the index bookkeeping between operand and result."""

    def __init__(self, builder: Builder, op: ReduceTile, operand: Source, where: Source | None) -> None:
        self.builder = builder
        self.op = op
        self.operand = operand
        self.where = where
        self.dtype = accumulation_dtype(op.result.dtype)
        self.register = register_dtype(self.dtype)
        self.shape = operand.type.shape
        self.axes = tuple(sorted(op.axes))
        self.kept = tuple(axis for axis in range(len(self.shape)) if axis not in op.axes)
        width = max(operand.width, bits(self.register) // 8, 1 if where is None else where.width)
        self.width = width
        self.lanes = builder.machine.lanes(width)
        self.identity = literal(identity_of(op.combiner, self.dtype), self.dtype)

    def combine(self, total: Any, index: Index, body: Body) -> Any:
        """The running total with the contribution at an operand index."""
        value = convert(self.operand.element(index, body), self.operand.type.dtype, self.dtype, body)
        joined = self.join(total, value, body)
        if self.where is None:
            return joined
        kept = tirx.NE(self.where.element(index, body), IntImm("uint8", 0))
        return Select(kept, body.name(joined, self.register), total)

    def join(self, a: Any, b: Any, body: Body) -> Any:
        return apply(self.op.combiner, self.dtype, [a, b], body, self.builder.fma)

    def finish(self, total: Any, kept: Index, body: Body, out: Any) -> None:
        value = convert(total, self.dtype, self.op.result.dtype, body)
        shape = tuple(self.shape[axis] for axis in self.kept)
        self.builder.emit(BufferStore(out, value, [self.builder.index(flat_index(kept, shape))]))

    def place(self, kept: Index, reduced: dict[int, IndexExpr]) -> Index:
        """Index into the operand from the kept positions and the reduced ones."""
        positions = dict(zip(self.kept, kept, strict=True)) | reduced
        return tuple(positions[axis] for axis in range(len(self.shape)))

    def loops(
        self,
        axes: tuple[int, ...],
        body: Body,
        work: Callable[[dict[int, IndexExpr]], None],
        reverse: bool = False,
    ) -> None:
        """Serial loops over some axes of the operand, inside a body."""
        builder = self.builder
        if any(self.shape[axis] == 0 for axis in axes):
            return
        reduced: dict[int, IndexExpr] = {}

        def enter(rest: tuple[int, ...]) -> None:
            if not rest:
                work(reduced)
                return
            axis, *inner = rest
            extent = self.shape[axis]
            if extent == 1:
                reduced[axis] = IndexConst(0)
                enter(tuple(inner))
                return
            value = builder.axis("r", extent)
            variable = builder.variable("r")
            builder.integers[value] = int64(extent - 1) - variable if reverse else variable
            reduced[axis] = IndexVar(value)
            with body.scope() as statements:
                enter(tuple(inner))
            builder.emit(builder.loop(variable, extent, statements))

        enter(axes)

    def in_order(self, out: Any) -> None:
        """Each result element folds its fibre in order; lanes are elements of the result."""
        reverse = self.op.policy == "fold_right"

        def sink(kept: Index, body: Body) -> None:
            total = body.copy(self.identity, self.register, "total")
            self.loops(
                self.axes,
                body,
                lambda reduced: body.assign(
                    total, self.combine(total, self.place(kept, dict(reduced)), body)
                ),
                reverse,
            )
            self.finish(total, kept, body, out)

        shape = tuple(self.shape[axis] for axis in self.kept)
        element_loops(
            self.builder, shape, sink, width=self.width, vectorize=_vectorizes(self.operand, self.where)
        )

    def along(self, axis: int, out: Any) -> None:
        """Each result element is computed by itself, with lanes along a reduced axis."""
        outer = tuple(a for a in self.axes if a != axis)
        extent, lanes = self.shape[axis], self.lanes
        partial = _PARTIAL if extent >= _PARTIAL * lanes else 1
        chunk = partial * lanes
        builder = self.builder

        def sink(kept: Index, body: Body) -> None:
            totals = builder.allocate("totals", chunk, self.register)
            builder.emit(self.vector(chunk, lambda b, lane: BufferStore(totals, self.identity, [lane])))
            rest = body.copy(self.identity, self.register, "total")

            def along_axis(reduced: dict[int, IndexExpr]) -> None:
                position = builder.axis("r", extent)
                at = self.place(kept, {**reduced, axis: IndexVar(position)})
                step = builder.variable("r")
                with body.scope() as statements:
                    for part in range(partial):
                        offset = step * int64(chunk) + int64(part * lanes)

                        def work(vector: Body, lane: Any, part: int = part, offset: Any = offset) -> Any:
                            builder.integers[position] = offset + lane
                            place = lane + int64(part * lanes)
                            return BufferStore(totals, self.combine(totals[place], at, vector), [place])

                        builder.emit(self.vector(lanes, work))
                builder.emit(builder.loop(step, extent // chunk, statements))
                if extent % chunk:
                    tail = builder.variable("r")
                    builder.integers[position] = tail + int64(extent // chunk * chunk)
                    with body.scope() as statements:
                        body.assign(rest, self.combine(rest, at, body))
                    builder.emit(builder.loop(tail, extent % chunk, statements))

            self.loops(outer, body, along_axis)
            half = chunk // 2
            while half:
                builder.emit(self.vector(half, self.halving(totals, half)))
                half //= 2
            self.finish(self.join(totals[int64(0)], rest, body), kept, body, out)

        shape = tuple(self.shape[axis] for axis in self.kept)
        element_loops(builder, shape, sink, width=self.width, vectorize=False)

    def halving(self, totals: Any, half: int) -> Callable[[Body, Any], Any]:
        """Joins each lane of the first half with its partner in the second."""

        def work(body: Body, lane: Any) -> Any:
            return BufferStore(totals, self.join(totals[lane], totals[lane + int64(half)], body), [lane])

        return work

    def vector(self, lanes: int, work: Callable[[Body, Any], Any]) -> Any:
        """A vectorized loop around the work on a lane."""
        builder = self.builder
        if lanes == 1:
            with builder.block() as statements:
                builder.emit(work(Body(builder), int64(0)))
            return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)
        lane = builder.variable("lane")
        with builder.block() as statements:
            builder.emit(work(Body(builder, lane, lanes, guarded=False), lane))
        return builder.loop(lane, lanes, statements, ForKind.VECTORIZED)


def arg_reduce(builder: Builder, op: ArgReduce, operand: Source, where: Source | None, out: Any) -> None:
    """Emit an :class:`~tvm_tile.ir.ops.ArgReduce`: the first NaN, else the first extremum, else 0."""
    shape = operand.type.shape
    kept_shape = tuple(n for axis, n in enumerate(shape) if axis != op.axis)
    dtype = operand.type.dtype
    register = register_dtype(dtype)
    extent = shape[op.axis]
    order = tirx.LT if op.kind == "argmax" else tirx.GT
    one, none = IntImm("uint8", 1), IntImm("uint8", 0)

    def sink(kept: Index, body: Body) -> None:
        best = body.copy(literal(0, dtype), register, "best")
        found = body.copy(none, "uint8", "found")
        first = body.copy(IntImm("int32", 0), "int32", "position")
        position = builder.axis("r", extent)
        variable = builder.variable("r")
        builder.integers[position] = variable
        index = (*kept[: op.axis], IndexVar(position), *kept[op.axis :])
        with body.scope() as statements:
            value = body.name(operand.element(index, body), register)
            better = truth(compare(order, best, value, dtype))
            new_nan = tirx.bitwise_and(is_nan(value, dtype), tirx.bitwise_xor(is_nan(best, dtype), one))
            take = tirx.bitwise_or(tirx.bitwise_or(better, new_nan), tirx.bitwise_xor(found, one))
            if where is not None:
                take = tirx.bitwise_and(take, where.element(index, body))
            taken = tirx.NE(body.name(take, "uint8"), none)
            body.assign(best, Select(taken, value, best))
            body.assign(first, Select(taken, Cast("int32", variable), first))
            body.assign(found, Select(taken, one, found))
        builder.emit(builder.loop(variable, extent, statements))
        builder.emit(BufferStore(out, first, [builder.index(flat_index(kept, kept_shape))]))

    width = max(operand.width, 4)
    element_loops(builder, kept_shape, sink, width=width, vectorize=_vectorizes(operand, where))
