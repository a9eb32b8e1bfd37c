"""Matrix products of tiles: a register block of a few rows and vectors, in the order of the contraction.

Each element of the result is accumulated over ``k`` in order and in the accumulator's dtype, so the
ordered and the unordered product are the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.tirx import BufferStore, ForKind

from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.elements.casts import convert
from tvm_tile.bridges.tirx.lower.elements.elementwise import multiply_add
from tvm_tile.bridges.tirx.lower.scalars import int64, register_dtype
from tvm_tile.bridges.tirx.lower.values import Stored
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.values import row_major_strides

__all__ = ["multiply_accumulate"]


@dataclass(frozen=True)
class _Product:
    """One matrix product of a batch: offsets of the operands, and the extents."""

    a: Stored
    b: Stored
    acc: Stored
    out: Any
    dtype: str
    a_base: Any
    b_base: Any
    out_base: Any
    rows: int
    columns: int
    depth: int


def multiply_accumulate(builder: Builder, a: Stored, b: Stored, acc: Stored, out: Any) -> None:
    """Emit ``out = acc + a @ b`` on dense temporaries; ``out`` may be the accumulator's own.

    Shapes are those of :class:`tvm_tile.ir.ops.Mma`: ``(..., m, k) @ (..., k, n)`` with broadcast batch
    axes.
    """
    *batch, rows, columns = acc.type.shape
    depth = a.type.shape[-1]
    if 0 in acc.type.shape:
        return
    variables = [builder.variable("batch") if n > 1 else int64(0) for n in batch]
    with builder.block() as statements:
        product = _Product(
            a, b, acc, out, acc.type.dtype,
            _batch_offset(a.type.shape, variables),
            _batch_offset(b.type.shape, variables),
            _batch_offset(acc.type.shape, variables),
            rows, columns, depth,
        )  # fmt: skip
        _matrix(builder, product)
    for variable, n in reversed(list(zip(variables, batch, strict=True))):
        if n > 1:
            statements = [builder.loop(variable, n, statements)]
    for statement in statements:
        builder.emit(statement)


def _batch_offset(shape: tuple[int, ...], variables: list[Any]) -> Any:
    """Position of a batch entry, in elements; axes that the operand lacks or repeats do not count."""
    batch, strides = shape[:-2], row_major_strides(shape)[:-2]
    offset = int64(0)
    for variable, n, stride in zip(variables[len(variables) - len(batch) :], batch, strides, strict=True):
        if n > 1:
            offset = offset + variable * int64(stride)
    return offset


def _matrix(builder: Builder, p: _Product) -> None:
    machine = builder.machine
    full = machine.lanes(bits(register_dtype(p.dtype)) // 8)
    lanes = min(full, 1 << (p.columns.bit_length() - 1))
    vectors = p.columns // lanes if lanes > 1 else 0
    across = _vectors_across(vectors, machine.accumulators)
    if across:
        down = _rows_down(p.rows, machine.accumulators // across)
        _blocks(builder, p, 0, vectors // across, across, lanes, 0, p.rows // down, down)
        if p.rows % down:
            _blocks(builder, p, 0, vectors // across, across, lanes, p.rows // down * down, 1, p.rows % down)
    rest = p.columns - vectors * lanes
    if rest:
        down = _rows_down(p.rows, 4)
        _blocks(builder, p, vectors * lanes, rest, 1, 1, 0, p.rows // down, down)
        if p.rows % down:
            _blocks(builder, p, vectors * lanes, rest, 1, 1, p.rows // down * down, 1, p.rows % down)


def _vectors_across(vectors: int, accumulators: int) -> int:
    """Vectors of one register block: the widest that divides, so that one loop covers all columns."""
    limit = 4 if accumulators >= 16 else 2
    return max((n for n in range(1, limit + 1) if vectors % n == 0), default=0) if vectors else 0


def _rows_down(rows: int, limit: int) -> int:
    """Rows of one register block: a divisor near the limit, else the limit."""
    limit = min(max(limit, 1), 12)
    if rows <= limit:
        return rows
    return next((n for n in range(limit, limit // 2, -1) if rows % n == 0), limit)


def _blocks(
    builder: Builder,
    p: _Product,
    first_column: int,
    column_blocks: int,
    across: int,
    lanes: int,
    first_row: int,
    row_blocks: int,
    down: int,
) -> None:
    """Register blocks of ``down`` rows and ``across`` vectors, from a corner on."""
    register = register_dtype(p.dtype)
    row_block = int64(0) if row_blocks == 1 else builder.variable("row_block")
    column_block = int64(0) if column_blocks == 1 else builder.variable("column_block")
    row0 = row_block * int64(down) + int64(first_row)
    column0 = column_block * int64(across * lanes) + int64(first_column)
    sums = [builder.allocate("sum", down * lanes, register) for _ in range(across)]

    def lanes_of(vector: int, work: Any) -> Any:
        """``for row in unroll(down): for lane in vectorized(lanes)`` around the work on one element."""
        row, lane = builder.variable("row"), int64(0) if lanes == 1 else builder.variable("lane")
        with builder.block() as inner:
            body = Body(builder, None if lanes == 1 else lane, lanes, guarded=False)
            work(
                body,
                sums[vector],
                row * int64(lanes) + lane,
                row0 + row,
                column0 + int64(vector * lanes) + lane,
            )
        loop = inner if lanes == 1 else [builder.loop(lane, lanes, inner, ForKind.VECTORIZED)]
        return builder.loop(row, down, loop, ForKind.UNROLLED)

    def start(body: Body, total: Any, at: Any, row: Any, column: Any) -> None:
        value = p.acc.buffer[p.out_base + row * int64(p.columns) + column]
        builder.emit(BufferStore(total, value, [at]))

    def finish(body: Body, total: Any, at: Any, row: Any, column: Any) -> None:
        builder.emit(BufferStore(p.out, total[at], [p.out_base + row * int64(p.columns) + column]))

    def step(body: Body, total: Any, at: Any, row: Any, column: Any) -> None:
        x = convert(p.a.buffer[p.a_base + row * int64(p.depth) + k], p.a.type.dtype, p.dtype, body)
        y = convert(p.b.buffer[p.b_base + k * int64(p.columns) + column], p.b.type.dtype, p.dtype, body)
        builder.emit(BufferStore(total, multiply_add(x, y, total[at], p.dtype, body, builder.fma), [at]))

    k = builder.variable("k")
    statements = [lanes_of(v, start) for v in range(across)]
    if p.depth:
        statements.append(builder.loop(k, p.depth, [lanes_of(v, step) for v in range(across)]))
    statements += [lanes_of(v, finish) for v in range(across)]
    if column_blocks > 1:
        statements = [builder.loop(column_block, column_blocks, statements)]
    if row_blocks > 1:
        statements = [builder.loop(row_block, row_blocks, statements)]
    for statement in statements:
        builder.emit(statement)
