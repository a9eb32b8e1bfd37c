"""Which values a statement reads, and what of a block is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.index import IndexBinary, IndexVar, free_values
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Alloc, Extern, Op, Point, Slice, View
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Reduce, Statement
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, Value

__all__ = ["all_uses", "direct_uses", "free_values_of", "nested_uses", "prune"]


def direct_uses(statement: Statement) -> tuple[Value, ...]:
    """Values read by the statement itself, before any nested block runs; repeated if read repeatedly."""
    match statement:
        case If(condition=condition):
            return (condition,)
        case Loop(domain=domain, inits=inits):
            extents = {v for e in domain.extents for v in free_values(e)}
            return (*inits, *sorted(extents, key=lambda v: v.id))
    return tuple(_operands(statement))


def _operands(op: Op) -> Iterable[Value]:
    for f in dataclasses.fields(op):
        if f.name not in ("span", "result", "outputs"):
            yield from _values_in(getattr(op, f.name))


def _values_in(item: Any) -> Iterable[Value]:
    match item:
        case Value():
            yield item
        case tuple():
            for part in item:
                yield from _values_in(part)
        case View(subscripts=subscripts):
            yield from _values_in(subscripts)
        case Point(index=index) | Slice(start=index):
            yield from sorted(free_values(index), key=lambda v: v.id)
        case IndexVar() | IndexBinary():
            yield from sorted(free_values(item), key=lambda v: v.id)


def nested_uses(statement: Statement) -> frozenset[Value]:
    """Values from outside that the blocks of a statement read, their yields and predicates included."""
    match statement:
        case If(then=then, orelse=orelse, then_yields=a, else_yields=b):
            return free_values_of(then, a) | free_values_of(orelse, b)
        case Loop(domain=domain, indices=indices, body=body, args=args, yields=yields):
            free = free_values_of(body, yields)
            if domain.where is not None:
                free |= free_values(domain.where)
            if isinstance(statement, Reduce) and statement.merge is not None:
                free |= _free_in_merge(statement.merge)
            return free - {*indices, *args}
        case MergeReduce(merge=merge) | Scan(merge=merge):
            return _free_in_merge(merge)
    return frozenset()


def _free_in_merge(merge: Merge) -> frozenset[Value]:
    parts = [part for part in (merge.combine, merge.identity, merge.lift) if part is not None]
    return frozenset().union(*(_free_in_lambda(part) for part in parts))


def _free_in_lambda(function: Lambda) -> frozenset[Value]:
    return free_values_of(function.body, function.yields) - frozenset(function.params)


def free_values_of(block: Block, yields: tuple[Value, ...] = ()) -> frozenset[Value]:
    """Values from outside that a block reads, or that it yields."""
    used = set(yields)
    defined: set[Value] = set()
    for statement in block.statements:
        used |= all_uses(statement)
        defined |= {*statement.results}
    return frozenset(used - defined)


def all_uses(statement: Statement) -> frozenset[Value]:
    """Every value from outside that a statement reads."""
    return frozenset(direct_uses(statement)) | nested_uses(statement)


def prune(block: Block, needed: Iterable[Value], effects: bool = True) -> Block:
    """The statements that stores (with ``effects``) or the needed values depend on.

    Without ``effects`` stores go too: what is left is the pure computation of the needed values.
    """
    live = set(needed)
    memories: set[Memory] = set()
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if isinstance(statement, Alloc):
            if statement.memory in memories:
                kept.append(statement)
            continue
        wanted = any(result in live for result in statement.results)
        if not wanted and not (effects and _acts(statement)):
            continue
        slimmed = _prune_inside(statement, effects)
        kept.append(slimmed)
        live |= all_uses(slimmed)
        memories |= _memories(slimmed)
    return Block(tuple(reversed(kept)))


def _acts(statement: Statement) -> bool:
    """Whether running it shows: it writes memory, or calls a function that may do anything."""
    return bool(effects_of(statement).writes) or any(isinstance(s, Extern) for s in walk(statement))


def _memories(statement: Statement) -> frozenset[Memory]:
    """Memories that a statement touches or passes on."""
    effects = effects_of(statement)
    passed = (
        v.memory for s in walk(statement) if isinstance(s, Extern) for v in s.operands if isinstance(v, View)
    )
    return effects.reads | effects.writes | frozenset(passed)


def _prune_inside(statement: Statement, effects: bool) -> Statement:
    match statement:
        case If(then=then, orelse=orelse, then_yields=a, else_yields=b):
            return dataclasses.replace(
                statement, then=prune(then, a, effects), orelse=prune(orelse, b, effects)
            )
        case Loop(body=body, yields=yields):
            return dataclasses.replace(statement, body=prune(body, yields, effects))
    return statement
