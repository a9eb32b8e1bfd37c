"""Reductions and scans of tiles with a merge, written as loops over other statements.

A state holds all fibres side by side, and so each step is tile arithmetic on it that runs in vectors. Known
merges without a lift have loops of their own: reductions become the built-in ones, scans keep the running
total of each fibre in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tirx import BufferStore

from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.elements.elementwise import apply
from tvm_tile.bridges.tirx.lower.inlining import Fresh, inlined
from tvm_tile.bridges.tirx.lower.loops import element_loops
from tvm_tile.bridges.tirx.lower.scalars import literal, register_dtype
from tvm_tile.bridges.tirx.lower.tiles.merge_lanes import lane_statements
from tvm_tile.bridges.tirx.lower.values import Index, Source, flat_index
from tvm_tile.ir.dtypes import accumulation_dtype, is_float
from tvm_tile.ir.functions import identity_of
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    Broadcast,
    Elementwise,
    Extract,
    Point,
    ReduceTile,
    Slice,
    Store,
    View,
)
from tvm_tile.ir.regions import Block, Domain, Reduce, Serial, Statement
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["known_scan", "reduction_statements", "scan_by_register", "scan_statements"]


def reduction_statements(op: MergeReduce, lanes: int, fresh: Fresh) -> list[Statement]:
    """Statements that define the outputs of a reduction; ``lanes`` is how many elements fill a vector."""
    if _is_tile_reduction(op):
        return _tile_reductions(op, fresh)
    side_by_side = lane_statements(op, lanes, fresh)
    if side_by_side is not None:
        return side_by_side
    statements: list[Statement] = []
    shape = op.operands[0].shape
    axes = tuple(sorted(op.axes))
    indices = tuple(fresh("r", TileType((), "int64")) for _ in axes)
    domain = Domain(tuple(IndexConst(shape[axis]) for axis in axes))
    places: dict[int, IndexExpr] = {axis: IndexVar(index) for axis, index in zip(axes, indices, strict=True)}
    inits = _start(op, statements, fresh)
    body: list[Statement] = []
    args = tuple(fresh(v.name, v.type) for v in op.outputs)
    parts = _contribution(op, places, body, fresh)
    joined = inlined(op.merge.combine, (*args, *parts), body, fresh)
    if op.where is not None:
        mask = _fibre_elements(op.where, places, body, fresh)
        joined = [_chosen(mask, new, old, body, fresh) for new, old in zip(joined, args, strict=True)]
    statements.append(_fold(op, domain, indices, body, inits, args, joined, op.outputs))
    return statements


def _fold(
    op: MergeReduce,
    domain: Domain,
    indices: tuple[Value, ...],
    body: list[Statement],
    inits: tuple[Value, ...],
    args: tuple[Value, ...],
    yields: Sequence[Value],
    results: tuple[Value, ...],
) -> Statement:
    parts = (domain, indices, Block(tuple(body)), inits, args, tuple(yields), results)
    if op.policy == "fold_right":
        # Not a merge of the region's: the body is applied as written, from the last position on.
        return Reduce(*parts, policy="fold_right", span=op.span)
    return Serial(*parts, span=op.span)


def scan_statements(op: Scan, outputs: Sequence[Memory], fresh: Fresh) -> list[Statement]:
    """Statements that store the outputs of a scan into memories."""
    statements: list[Statement] = []
    extent = op.operands[0].shape[op.axis]
    if extent == 0:
        return statements
    start = _start(op, statements, fresh)
    index = fresh("r", TileType((), "int64"))
    place = IndexVar(index)
    args = tuple(fresh(v.name, v.type) for v in start)
    body: list[Statement] = []
    parts = _contribution(op, {op.axis: place}, body, fresh)
    joined = inlined(op.merge.combine, (*args, *parts), body, fresh)
    _store_at(op, place, args if op.exclusive else joined, outputs, body)
    results = tuple(fresh(v.name, v.type) for v in start)
    domain = Domain((IndexConst(extent),))
    loop = Serial(domain, (index,), Block(tuple(body)), start, args, tuple(joined), results, span=op.span)
    return [*statements, loop]


def _store_at(
    op: Scan, at: IndexExpr, values: Sequence[Value], outputs: Sequence[Memory], body: list[Statement]
) -> None:
    for memory, value in zip(outputs, values, strict=True):
        place = tuple(
            Point(at) if axis == op.axis else Slice(IndexConst(0), n) for axis, n in enumerate(memory.shape)
        )
        body.append(Store(View(memory, place), value))


def _start(op: MergeReduce | Scan, statements: list[Statement], fresh: Fresh) -> tuple[Value, ...]:
    """The states before the first contribution: the seeds, or else the identity."""
    return op.seeds or tuple(inlined(op.merge.identity, (), statements, fresh))


def _contribution(
    op: MergeReduce | Scan, places: dict[int, IndexExpr], body: list[Statement], fresh: Fresh
) -> list[Value]:
    """The contribution of all fibres at a position in the fibre."""
    parts = [_fibre_elements(operand, places, body, fresh) for operand in op.operands]
    return parts if op.merge.lift is None else inlined(op.merge.lift, parts, body, fresh)


def _fibre_elements(
    operand: Value, places: dict[int, IndexExpr], body: list[Statement], fresh: Fresh
) -> Value:
    subscripts = tuple(
        Point(places[axis]) if axis in places else Slice(IndexConst(0), n)
        for axis, n in enumerate(operand.shape)
    )
    kept = tuple(n for axis, n in enumerate(operand.shape) if axis not in places)
    result = fresh(operand.name, TileType(kept, operand.dtype))
    body.append(Extract(result, operand, subscripts))
    return result


def _as_wide(mask: Value, like: Value, body: list[Statement], fresh: Fresh) -> Value:
    if mask.shape == like.shape:
        return mask
    wide = fresh("mask", TileType(like.shape, "bool"))
    body.append(Broadcast(wide, mask))
    return wide


def _chosen(mask: Value, new: Value, old: Value, body: list[Statement], fresh: Fresh) -> Value:
    result = fresh(old.name, old.type)
    body.append(Elementwise(result, "where", (_as_wide(mask, new, body, fresh), new, old)))
    return result


def _is_tile_reduction(op: MergeReduce) -> bool:
    """Whether the built-in reduction has the same meaning, rounding and order included."""
    merge = op.merge
    if merge.builtin is None or merge.lift is not None:
        return False
    for fn, output in zip(merge.builtin, op.outputs, strict=True):
        dtype = output.dtype
        rounds = is_float(dtype) and fn in ("add", "multiply")
        if rounds and (accumulation_dtype(dtype) != dtype or (op.seeds and op.policy.startswith("fold"))):
            return False
    return True


def _tile_reductions(op: MergeReduce, fresh: Fresh) -> list[Statement]:
    statements: list[Statement] = []
    functions = op.merge.builtin
    assert functions is not None
    for k, (fn, output, operand) in enumerate(zip(functions, op.outputs, op.operands, strict=True)):
        total = fresh(output.name, output.type) if op.seeds else output
        statements.append(ReduceTile(total, operand, op.axes, fn, False, op.policy, op.where, span=op.span))
        if op.seeds:
            statements.append(Elementwise(output, fn, (op.seeds[k], total), span=op.span))
    return statements


def known_scan(op: Scan) -> bool:
    """Whether :func:`scan_by_register` takes it."""
    return op.merge.builtin is not None and op.merge.lift is None


def scan_by_register(
    builder: Builder, op: Scan, operands: Sequence[Source], seeds: Sequence[Source], outputs: Sequence[Any]
) -> None:
    """Emit a scan of a known merge, fibre by fibre or fibres side by side; sources need no bounds tests."""
    assert op.merge.builtin is not None
    for k, (fn, operand, out) in enumerate(zip(op.merge.builtin, operands, outputs, strict=True)):
        _scan_one(builder, op, fn, operand, seeds[k] if seeds else None, out)


def _scan_one(builder: Builder, op: Scan, fn: str, operand: Source, seed: Source | None, out: Any) -> None:
    shape, dtype = operand.type.shape, operand.type.dtype
    kept_shape = (*shape[: op.axis], *shape[op.axis + 1 :])
    extent = shape[op.axis]
    if extent == 0:
        return
    register = register_dtype(dtype)

    def sink(kept: Index, body: Body) -> None:
        start = literal(identity_of(fn, dtype), dtype) if seed is None else seed.element(kept, body)
        total = body.copy(start, register, "total")
        position, variable = builder.axis("r", extent), builder.variable("r")
        builder.integers[position] = variable
        index = (*kept[: op.axis], IndexVar(position), *kept[op.axis :])
        at = builder.index(flat_index(index, shape))
        with body.scope() as statements:
            joined = apply(fn, dtype, [total, operand.element(index, body)], body, builder.fma)
            if op.exclusive:
                joined = body.name(joined, register)
                builder.emit(BufferStore(out, total, [at]))
                body.assign(total, joined)
            else:
                body.assign(total, joined)
                builder.emit(BufferStore(out, total, [at]))
        builder.emit(builder.loop(variable, extent, statements))

    side_by_side = op.axis != len(shape) - 1 and operand.vectorizes and (seed is None or seed.vectorizes)
    width = max(operand.width, 1 if seed is None else seed.width)
    element_loops(builder, kept_shape, sink, width=width, vectorize=side_by_side)
