"""Removal of operations that weak tiles have left behind.

A weak tile is made in its own dtype at once and again in another one where an operand asks for it. Of the
operations that made it, those that nothing reads in the end are no part of the user's program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Set

from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Op
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Reduce, Statement
from tvm_tile.ir.structure import walk
from tvm_tile.ir.uses import merge_parts, uses_of
from tvm_tile.ir.values import Value

__all__ = ["without_unused"]


def without_unused(block: Block, provisional: Set[int]) -> Block:
    """The block without operations whose results are among ``provisional`` and are not read.

    Parameters
    ----------
    provisional
        Ids of values. Their operations have no effects.
    """
    while provisional:
        read = {value.id for statement in walk(block) for value in _read_by(statement)}
        unread = provisional - read
        kept = _without(block, unread)
        if kept is block:
            break
        block, provisional = kept, provisional & read
    return block


def _read_by(statement: Statement) -> Iterator[Value]:
    yield from (use.value for use in uses_of(statement))
    if isinstance(statement, (MergeReduce, Scan)):
        for _, part in merge_parts(statement.merge):
            yield from part.yields


def _without(block: Block, ids: Set[int]) -> Block:
    statements = tuple(
        _inside(s, ids)
        for s in block.statements
        if not (isinstance(s, Op) and s.results and all(value.id in ids for value in s.results))
    )
    same = len(statements) == len(block.statements) and all(
        a is b for a, b in zip(statements, block.statements, strict=True)
    )
    return block if same else Block(statements)


def _inside(statement: Statement, ids: Set[int]) -> Statement:
    changed: dict[str, Block | Merge] = {}
    match statement:
        case If(then=then, orelse=orelse):
            changed = {"then": _without(then, ids), "orelse": _without(orelse, ids)}
        case MergeReduce(merge=merge) | Scan(merge=merge):
            changed = {"merge": _in_merge(merge, ids)}
        case Loop(body=body):
            changed = {"body": _without(body, ids)}
            if isinstance(statement, Reduce) and statement.merge is not None:
                changed["merge"] = _in_merge(statement.merge, ids)
    if all(getattr(statement, name) is new for name, new in changed.items()):
        return statement
    return dataclasses.replace(statement, **changed)  # type: ignore[arg-type]


def _in_merge(merge: Merge, ids: Set[int]) -> Merge:
    parts: dict[str, Lambda] = {}
    for name in ("combine", "identity", "lift"):
        part = getattr(merge, name)
        if part is not None:
            body = _without(part.body, ids)
            if body is not part.body:
                parts[name] = dataclasses.replace(part, body=body)
    return dataclasses.replace(merge, **parts) if parts else merge  # type: ignore[arg-type]
