"""Which values of a block are computed inside the loop of their consumer instead of being stored.

An elementwise op, a cast or a load moves into the loop nest of the one statement that needs it (its
*root*) if that evaluates every element once, and, for a load, if no store can come in between. Views
(broadcast, transpose, reshape, extract) and literals are never stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tvm_tile.bridges.tirx.lower.uses import direct_uses, nested_uses
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.ops import (
    ArgReduce,
    Atomic,
    Broadcast,
    Cast,
    Concat,
    Elementwise,
    Extract,
    Gather,
    Insert,
    Load,
    Mma,
    ReduceTile,
    Reshape,
    Store,
    Transpose,
)
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Statement
from tvm_tile.ir.values import Memory, Value

__all__ = ["Fusion", "fuse"]

#: Stands for the loop nest of an operand that is read at other positions, and so from storage.
_STORED = -1

#: Stands for the operand of a gather: read at other positions, in the loop nest of the result.
_GATHERED = -2


#: Longest chain of values that are evaluated within one another. A longer one is cut by a temporary: each
#: level is a level of the generated expression, and of every recursion over it.
_DEEPEST = 64


@dataclass(frozen=True)
class _Root:
    """Where a value is evaluated: the position of the statement, and which loop nest of it."""

    position: int
    part: int
    store: Store | None = None


@dataclass(frozen=True)
class _Use:
    statement: Statement | None
    position: int
    part: int


@dataclass(frozen=True)
class Fusion:
    """``inlined`` values get no storage; ``shared`` ones are read more than once in their root."""

    inlined: frozenset[Value]
    shared: frozenset[Value]


def fuse(block: Block, yields: tuple[Value, ...], noalias: bool) -> Fusion:
    """Decide for every value that a block defines at its top level."""
    statements = block.statements
    uses: defaultdict[Value, list[_Use]] = defaultdict(list)
    nested: set[Value] = set()
    for position, statement in enumerate(statements):
        for part, value in _parts(statement):
            use = _Use(statement, position, part)
            if use not in uses[value]:
                uses[value].append(use)
        nested |= nested_uses(statement)
    for part, value in enumerate(yields):
        uses[value].append(_Use(None, len(statements), part))

    roots: dict[Value, _Root] = {}
    pointwise: dict[Value, bool] = {}
    depths: dict[Value, int] = {}
    inlined: set[Value] = set()
    for position in range(len(statements) - 1, -1, -1):
        statement = statements[position]
        match statement:
            case (
                Elementwise(result=result) | Cast(result=result) | Load(result=result) | Gather(result=result)
            ):
                pass
            case (
                Broadcast(result=result)
                | Transpose(result=result)
                | Reshape(result=result)
                | Extract(result=result)
            ):
                if (
                    result not in nested
                    and len(uses[result]) == 1
                    and (found := _root(uses[result][0], roots, pointwise))
                ):
                    roots[result], pointwise[result] = found[0], False
                    depths[result] = _depth(uses[result], depths)
                continue
            case _:
                continue
        if result in nested or not result.shape or _depth(uses[result], depths) > _DEEPEST:
            continue
        found_all = [_root(use, roots, pointwise) for use in uses[result]]
        targets = {found[0] if found else None for found in found_all}
        if len(targets) != 1 or None in targets:
            continue
        root = next(iter(targets))
        direct = all(found is not None and found[1] for found in found_all)
        if root is None or not (direct or len(found_all) == 1):
            continue
        if isinstance(statement, Load) and not _may_delay(
            statement, position, root, direct, statements, noalias
        ):
            continue
        roots[result], pointwise[result] = root, direct
        depths[result] = _depth(uses[result], depths)
        inlined.add(result)
    shared = {v for v in inlined if len(uses[v]) > 1 or _repeated(v, uses[v][0].statement)}
    return Fusion(frozenset(inlined), frozenset(shared))


def _parts(statement: Statement) -> Iterator[tuple[int, Value]]:
    """Operands with the number of the loop nest that reads them, for statements of several nests."""
    match statement:
        case Mma(a=a, b=b, acc=acc):
            yield from enumerate((a, b, acc))
        case Concat(operands=operands):
            yield from enumerate(operands)
        case Gather(operand=operand, index=index):
            yield from ((_GATHERED, operand), (0, index))
        case Insert(operand=operand, value=value):
            yield from ((0, operand), (1, value))
            yield from ((_STORED, v) for v in direct_uses(statement) if v not in (operand, value))
        case Loop(inits=inits):
            yield from enumerate(inits)
            rest = direct_uses(statement)[len(inits) :]
            yield from ((_STORED, value) for value in rest)
        case _:
            yield from ((0, value) for value in direct_uses(statement))


def _depth(uses: list[_Use], depths: dict[Value, int]) -> int:
    """How deep below its root a value with these uses is evaluated."""
    users = (value for use in uses if use.statement is not None for value in use.statement.results)
    return 1 + max((depths.get(user, 0) for user in users), default=0)


def _repeated(value: Value, statement: Statement | None) -> bool:
    return statement is not None and direct_uses(statement).count(value) > 1


def _root(use: _Use, roots: dict[Value, _Root], pointwise: dict[Value, bool]) -> tuple[_Root, bool] | None:
    """Where a use is evaluated, and whether at the element's own position; ``None`` if more than once."""
    here = _Root(use.position, use.part)
    if use.part == _STORED:
        return None
    match use.statement:
        case None | ReduceTile() | ArgReduce() | Mma() | Concat() | Insert() | Atomic():
            return here, True
        case Store():
            return _Root(use.position, use.part, use.statement), True
        case Gather(result=result, operand=operand) if use.part == _GATHERED:
            if result.type.size > operand.type.size:
                return None
            return (roots[result], False) if result in roots else (_Root(use.position, 0), False)
        case Elementwise(result=result) | Cast(result=result) | Load(result=result) | Gather(result=result):
            return (roots[result], pointwise[result]) if result in roots else (here, True)
        case (
            Transpose(result=result)
            | Reshape(result=result)
            | Extract(result=result)
            | Broadcast(result=result)
        ):
            source = use.statement.operand
            if result not in roots or result.type.size > source.type.size:
                return None
            return roots[result], False
        case Parallel() | If():
            return None
        case Loop():
            return here, True
    return None


def _may_delay(
    load: Load, position: int, root: _Root, pointwise: bool, statements: tuple[Statement, ...], noalias: bool
) -> bool:
    """Whether reading at the root gives what is in memory at the load's position."""
    memory = load.view.memory
    for statement in statements[position + 1 : root.position]:
        if _conflict(memory, effects_of(statement).writes, noalias):
            return False
    if root.position < len(statements) and isinstance(statements[root.position], Atomic):
        return not _conflict(memory, effects_of(statements[root.position]).writes, noalias)
    if root.store is None or not _conflict(memory, frozenset((root.store.view.memory,)), noalias):
        return True
    target = root.store.view
    same_place = (
        load.view.subscripts == target.subscripts
        and memory.shape == target.memory.shape
        and memory.element_strides == target.memory.element_strides
        and bits(memory.dtype) == bits(target.memory.dtype)
        and _injective(memory)
    )
    return pointwise and same_place


def _conflict(memory: Memory, writes: frozenset[Memory], noalias: bool) -> bool:
    return memory in writes or (bool(writes) and not noalias)


def _injective(memory: Memory) -> bool:
    """Whether different indices are different addresses, by the usual sufficient condition."""
    reach = 0
    for stride, extent in sorted(
        (abs(s), n) for s, n in zip(memory.element_strides, memory.shape, strict=True) if n > 1
    ):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True
