"""Reductions with a merge along the last axis, where the order is free: a vector of partial states.

Each lane combines every so many elements, and then the lanes are joined one after the other. It takes
functions that are elementwise throughout, since these mean the same on states with one more axis.
"""

from __future__ import annotations

import dataclasses

from tvm_tile.bridges.tirx.lower.inlining import Fresh, all_but, inlined
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar, add, mul
from tvm_tile.ir.merge_ops import MergeReduce
from tvm_tile.ir.ops import Broadcast, Cast, Elementwise, Extract, Full, Point, Slice
from tvm_tile.ir.regions import Block, Domain, Lambda, Merge, Serial, Statement
from tvm_tile.ir.values import TileType, Value

__all__ = ["lane_statements"]


def lane_statements(op: MergeReduce, lanes: int, fresh: Fresh) -> list[Statement] | None:
    """Statements that define the outputs of a reduction, or ``None`` where lanes do not help.

    ``where`` is left to the plain loop: lanes that are masked off entirely would have to be combined.
    """
    shape = op.operands[0].shape
    last = len(shape) - 1
    if op.policy != "unordered_tree" or op.where is not None or last not in op.axes:
        return None
    if lanes < 2 or shape[last] < 2 * lanes or 0 in (shape[axis] for axis in op.axes):
        return None
    kept = tuple(n for axis, n in enumerate(shape) if axis not in op.axes)
    merge = op.merge
    combine = _widened(merge.combine, kept, lanes, fresh)
    lift = None if merge.lift is None else _widened(merge.lift, kept, lanes, fresh)
    if combine is None or (lift is None and merge.lift is not None):
        return None
    wide = Merge(combine, merge.identity, lift)

    statements: list[Statement] = []
    whole, rest = divmod(shape[last], lanes)
    # No state is combined with the identity: lanes and their total start with a contribution.
    partial = _fold(op, wide, None, (0, whole, lanes), statements, fresh)
    totals = _join(op, partial, lanes, None if rest else op.outputs, statements, fresh)
    if rest:
        _fold(op, merge, totals, (whole * lanes, rest, 1), statements, fresh, op.outputs)
    return statements


def _fold(
    op: MergeReduce,
    merge: Merge,
    inits: tuple[Value, ...] | None,
    part: tuple[int, int, int],
    statements: list[Statement],
    fresh: Fresh,
    outputs: tuple[Value, ...] | None = None,
) -> tuple[Value, ...]:
    """A loop over the reduced axes, and over a part of the last one: where it starts, steps, step.

    Without ``inits`` it starts with the first contribution.
    """
    first, steps, step = part
    axes = sorted(op.axes)
    indices = tuple(fresh("r", TileType((), "int64")) for _ in axes)
    domain = Domain((*(IndexConst(op.operands[0].shape[axis]) for axis in axes[:-1]), IndexConst(steps)))

    def contribution(at: tuple[IndexExpr, ...], body: list[Statement]) -> list[Value]:
        places = dict(zip(axes, at, strict=True))
        place = add(mul(places.pop(axes[-1]), IndexConst(step)), IndexConst(first))
        parts = []
        for operand in op.operands:
            subscripts = (
                *(
                    Point(places[axis]) if axis in places else Slice(IndexConst(0), n)
                    for axis, n in enumerate(operand.shape[:-1])
                ),
                Point(place) if step == 1 else Slice(place, step),
            )
            taken = tuple(s.size for s in subscripts if isinstance(s, Slice))
            parts.append(fresh(operand.name, TileType(taken, operand.dtype)))
            body.append(Extract(parts[-1], operand, subscripts))
        return parts if merge.lift is None else inlined(merge.lift, parts, body, fresh)

    if inits is None:
        inits = tuple(contribution(tuple(IndexConst(0) for _ in axes), statements))
        if len(axes) == 1:
            domain, first = Domain((IndexConst(steps - 1),)), first + step
        else:
            domain = dataclasses.replace(domain, where=all_but(indices, [0] * len(axes)))
    body: list[Statement] = []
    parts = contribution(tuple(IndexVar(index) for index in indices), body)
    return _loop(domain, indices, inits, parts, merge, body, outputs, statements, fresh, op)


def _join(
    op: MergeReduce,
    partial: tuple[Value, ...],
    lanes: int,
    outputs: tuple[Value, ...] | None,
    statements: list[Statement],
    fresh: Fresh,
) -> tuple[Value, ...]:
    """A loop that combines the states of the lanes, after the seeds if there are any."""
    index = fresh("lane", TileType((), "int64"))

    def state(at: IndexExpr, body: list[Statement]) -> list[Value]:
        parts = []
        for value in partial:
            kept = value.shape[:-1]
            parts.append(fresh(value.name, TileType(kept, value.dtype)))
            slices = tuple(Slice(IndexConst(0), n) for n in kept)
            body.append(Extract(parts[-1], value, (*slices, Point(at))))
        return parts

    first = 0 if op.seeds else 1
    inits = op.seeds or tuple(state(IndexConst(0), statements))
    body: list[Statement] = []
    parts = state(add(IndexVar(index), IndexConst(first)), body)
    domain = Domain((IndexConst(lanes - first),))
    return _loop(domain, (index,), inits, parts, op.merge, body, outputs, statements, fresh, op)


def _loop(
    domain: Domain,
    indices: tuple[Value, ...],
    inits: tuple[Value, ...],
    parts: list[Value],
    merge: Merge,
    body: list[Statement],
    outputs: tuple[Value, ...] | None,
    statements: list[Statement],
    fresh: Fresh,
    op: MergeReduce,
) -> tuple[Value, ...]:
    """Append a loop that combines the running states with those that its body makes."""
    args = tuple(fresh(v.name, v.type) for v in inits)
    yields = tuple(inlined(merge.combine, (*args, *parts), body, fresh))
    results = outputs or tuple(fresh(v.name, v.type) for v in inits)
    statements.append(Serial(domain, indices, Block(tuple(body)), inits, args, yields, results, span=op.span))
    return results


def _widened(function: Lambda, kept: tuple[int, ...], lanes: int, fresh: Fresh) -> Lambda | None:
    """The function on states with a last axis of lanes; ``None`` if it is not elementwise."""
    wide: dict[Value, Value] = {}

    def widen(value: Value) -> Value:
        wide[value] = fresh(value.name, TileType((*kept, lanes), value.dtype))
        return wide[value]

    if any(value.shape != kept for value in function.params):
        return None
    params = tuple(widen(value) for value in function.params)
    statements: list[Statement] = []
    for statement in function.body.statements:
        match statement:
            case Full(result=result) if result.shape == kept:
                statements.append(dataclasses.replace(statement, result=widen(result)))
            case Elementwise(result=result, operands=operands) if all(v in wide for v in operands):
                changed = tuple(wide[v] for v in operands)
                statements.append(dataclasses.replace(statement, result=widen(result), operands=changed))
            case Cast(result=result, operand=operand) if operand in wide:
                statements.append(dataclasses.replace(statement, result=widen(result), operand=wide[operand]))
            case Broadcast(result=result, operand=operand) if operand.shape == () and operand not in wide:
                statements.append(dataclasses.replace(statement, result=widen(result)))
            case Full(result=result) if result.shape == ():
                statements.append(statement)
            case _:
                return None
    if any(value not in wide for value in function.yields):
        return None
    return Lambda(params, Block(tuple(statements)), tuple(wide[value] for value in function.yields))
