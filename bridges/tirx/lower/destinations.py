"""Where results go: into a temporary that holds an older value as soon as nothing needs that any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.fusion import Fusion
from tvm_tile.bridges.tirx.lower.loops import store_into
from tvm_tile.bridges.tirx.lower.operations import Environment
from tvm_tile.bridges.tirx.lower.scalars import register_dtype
from tvm_tile.bridges.tirx.lower.uses import all_uses, nested_uses
from tvm_tile.bridges.tirx.lower.values import Source, Stored
from tvm_tile.ir.merge_ops import Scan
from tvm_tile.ir.ops import ArgReduce, Concat, Insert, Mma, Op, ReduceTile
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Reduce, Statement
from tvm_tile.ir.values import Value

__all__ = ["assign", "combines", "may_overwrite", "outputs_for", "reused", "targets_of"]


def targets_of(block: Block, yields: Sequence[Value], outputs: Sequence[Any]) -> dict[Value, Any]:
    """Temporaries into which results should go: those that are yielded, and the inserts that lead to them."""
    targets = {
        value: output for value, output in zip(yields, outputs, strict=True) if list(yields).count(value) == 1
    }
    for statement in reversed(block.statements):
        if isinstance(statement, Insert) and statement.result in targets:
            targets.setdefault(statement.operand, targets[statement.result])
    return targets


def reused(
    insert: Insert, rest: set[Value], yields: Sequence[Value], env: Environment, outer: set[Value]
) -> dict[Value, Any]:
    """The operand's own temporary, if the block made it and nothing needs the operand any more."""
    source = env[insert.operand]
    if not isinstance(source, Stored) or insert.operand in outer:
        return {}
    name = source.buffer.name
    later = (*rest, *yields)
    if any(value in env and name in env[value].reads for value in (*later, *outer)):
        return {}
    return {insert.result: source.buffer}


def may_overwrite(
    statement: Statement,
    result: Value,
    output: Any,
    rest: set[Value],
    yields: Sequence[Value],
    env: Environment,
    fusion: Fusion,
) -> bool:
    """Whether a statement may write its result into a temporary that holds an older value."""
    name = output.name
    if result in fusion.inlined:
        return False
    if any(value != result and value in env and name in env[value].reads for value in (*rest, *yields)):
        return False
    match statement:
        case If():
            return True
        case Parallel():
            # The region sees for itself whether an instance reads what is there.
            return True
        case Loop():
            if isinstance(statement, Reduce) and combines(statement):
                return False
            return not any(name in env[v].reads for v in nested_uses(statement) if v in env)
        case Mma(a=a, b=b, acc=acc):
            return name not in env[a].reads and name not in env[b].reads and env[acc].reads.get(name, True)
        case ReduceTile(operand=operand, where=where) | ArgReduce(operand=operand, where=where):
            return name not in env[operand].reads and (where is None or name not in env[where].reads)
        case Concat() | Scan():
            return not any(name in env[v].reads for v in all_uses(statement) if v in env)
        case Insert(operand=operand):
            return env[operand].reads.get(name, True)
        case Op():
            return all(env[v].reads.get(name, True) for v in all_uses(statement) if v in env)
    return False


def combines(loop: Reduce) -> bool:
    """Whether contributions are combined by the merge, since the body as written may mean something else."""
    merge = loop.merge
    return (
        loop.policy in ("ordered_tree", "unordered_tree")
        and merge is not None
        and (merge.builtin is None or merge.provenance != "derived" or merge.lift is not None)
    )


def assign(builder: Builder, pairs: Sequence[tuple[Source, Any]]) -> None:
    """Give temporaries new values, all at once in meaning."""
    pending = [
        (source, buffer)
        for source, buffer in pairs
        if not (isinstance(source, Stored) and source.buffer.name == buffer.name)
    ]
    while pending:
        for k, (source, buffer) in enumerate(pending):
            others = any(buffer.name in s.reads for j, (s, _) in enumerate(pending) if j != k)
            if not others and source.reads.get(buffer.name, True):
                store_into(builder, source, buffer)
                del pending[k]
                break
        else:
            names = {buffer.name for _, buffer in pending}
            k = next(k for k, (source, _) in enumerate(pending) if names & set(source.reads))
            source, buffer = pending[k]
            copy = builder.allocate("saved", source.type.size, register_dtype(source.type.dtype))
            store_into(builder, source, copy)
            pending[k] = (Stored(source.type, copy), buffer)


def outputs_for(
    builder: Builder, results: Sequence[Value], destinations: Mapping[Value, Any], hints: Sequence[str]
) -> list[Any]:
    """The temporaries of results: those that were chosen for them, and new ones."""
    return [
        destinations[value]
        if value in destinations
        else builder.allocate(value.name or hint or "state", value.type.size, register_dtype(value.dtype))
        for value, hint in zip(results, hints, strict=True)
    ]
