"""Blocks and regions: statement order, carried state, branches and parallel instances.

Carried state lives in one temporary a state. The next values are written all at once in meaning; in
code each goes straight into its temporary as soon as nothing needs the old value any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, ForKind, IfThenElse, IntImm

from tvm_tile.bridges.tirx.lower.builder import Body, Builder, sequence
from tvm_tile.bridges.tirx.lower.destinations import (
    assign,
    combines,
    may_overwrite,
    outputs_for,
    reused,
    targets_of,
)
from tvm_tile.bridges.tirx.lower.elements.divisions import settle_divisions
from tvm_tile.bridges.tirx.lower.fusion import fuse
from tvm_tile.bridges.tirx.lower.memories.allocations import check_guards
from tvm_tile.bridges.tirx.lower.operations import Environment, emit_op, materialize, note_integer, unguarded
from tvm_tile.bridges.tirx.lower.scalars import int64, register_dtype
from tvm_tile.bridges.tirx.lower.tiles.joins import as_memory, patched_region
from tvm_tile.bridges.tirx.lower.tiles.merges import (
    known_scan,
    reduction_statements,
    scan_by_register,
    scan_statements,
)
from tvm_tile.bridges.tirx.lower.uses import all_uses, prune
from tvm_tile.bridges.tirx.lower.values import Scalar, Source, Stored
from tvm_tile.ir.index import IndexConst, interval
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Alloc, Insert
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Parallel, Reduce, Statement
from tvm_tile.ir.values import Value

__all__ = ["emit_block", "emit_instance", "extents_of", "with_indices"]


def emit_block(
    builder: Builder, block: Block, yields: Sequence[Value], outputs: Sequence[Any], env: Environment
) -> None:
    """Lower the statements of a block, and put the yielded values into the output temporaries."""
    env = dict(env)
    block = _expanded(builder, block)
    fusion = fuse(block, tuple(yields), builder.noalias)
    later: set[Value] = set()
    after: list[set[Value]] = []
    for statement in reversed(block.statements):
        after.append(set(later))
        later |= all_uses(statement)
    outer = set(env)
    targets = targets_of(block, yields, outputs)
    for statement, rest in zip(block.statements, reversed(after), strict=True):
        statement = settle_divisions(builder, statement)
        destinations = {
            result: targets[result]
            for result in statement.results
            if result in targets
            and may_overwrite(statement, result, targets[result], rest, yields, env, fusion)
        }
        if isinstance(statement, Insert) and statement.result not in destinations:
            destinations.update(reused(statement, rest, yields, env, outer))
        match statement:
            case If():
                _if(builder, statement, env, destinations)
            case Loop():
                _loop(builder, statement, env, destinations)
            case Scan():
                _scan(builder, statement, env, destinations)
            case _:
                emit_op(builder, statement, env, fusion, destinations)
    assign(builder, [(env[value], output) for value, output in zip(yields, outputs, strict=True)])
    if builder.debug:
        for statement in block.statements:
            if isinstance(statement, Alloc):
                check_guards(builder, statement.memory)


def _expanded(builder: Builder, block: Block) -> Block:
    """The block with reductions by a merge written as loops."""
    if not any(isinstance(statement, MergeReduce) for statement in block.statements):
        return block
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, MergeReduce):
            statements += reduction_statements(statement, builder.machine.lanes(4), builder.value)
        else:
            statements.append(statement)
    return Block(tuple(statements))


def _scan(builder: Builder, op: Scan, env: Environment, destinations: Mapping[Value, Any]) -> None:
    outputs = outputs_for(builder, op.outputs, destinations, [""] * len(op.outputs))
    if known_scan(op):
        operands = [unguarded(builder, env[v], v.name) for v in op.operands]
        seeds = [unguarded(builder, env[v], v.name) for v in op.seeds]
        scan_by_register(builder, op, operands, seeds, outputs)
    else:
        kept = [
            as_memory(builder, value.type, buffer) for value, buffer in zip(op.outputs, outputs, strict=True)
        ]
        emit_block(builder, Block(tuple(scan_statements(op, kept, builder.value))), (), (), env)
    for value, buffer in zip(op.outputs, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, buffer))


def _define(builder: Builder, env: Environment, value: Value, source: Source) -> None:
    env[value] = source
    note_integer(builder, value, source)


def _if(builder: Builder, node: If, env: Environment, destinations: Mapping[Value, Any]) -> None:
    outputs = outputs_for(builder, node.results, destinations, [v.name for v in node.then_yields])
    condition = tirx.NE(env[node.condition].element((), Body(builder)), IntImm("uint8", 0))
    with builder.block() as then:
        emit_block(builder, node.then, node.then_yields, outputs, env)
    with builder.block() as orelse:
        emit_block(builder, node.orelse, node.else_yields, outputs, env)
    if then or orelse:
        builder.emit(IfThenElse(condition, sequence(then), sequence(orelse) if orelse else None))
    for value, buffer in zip(node.results, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, buffer))


def _loop(builder: Builder, loop: Loop, env: Environment, destinations: Mapping[Value, Any]) -> None:
    match loop:
        case Parallel():
            _parallel(builder, loop, env, destinations)
        case Reduce() if combines(loop):
            assert loop.merge is not None
            _merged_reduction(builder, loop, loop.merge, env)
        case _:
            reverse = isinstance(loop, Reduce) and loop.policy == "fold_right"
            _recurrence(builder, loop, env, destinations, reverse)


def _recurrence(
    builder: Builder, loop: Loop, env: Environment, destinations: Mapping[Value, Any], reverse: bool
) -> None:
    """A total order: state temporaries, updated once an iteration."""
    states = outputs_for(builder, loop.results, destinations, [v.name for v in loop.args])
    assign(builder, [(env[init], state) for init, state in zip(loop.inits, states, strict=True)])

    def iteration() -> None:
        inner = with_indices(builder, loop, env)
        for arg, state in zip(loop.args, states, strict=True):
            _define(builder, inner, arg, _current(builder, arg, state))
        emit_block(builder, loop.body, loop.yields, states, inner)

    _iterate(builder, loop, iteration, reverse)
    for value, state in zip(loop.results, states, strict=True):
        _define(builder, env, value, Stored(value.type, state))


def _current(builder: Builder, arg: Value, state: Any) -> Source:
    """The state at the start of an iteration; a scalar is copied, since index expressions may hold it."""
    if arg.shape:
        return Stored(arg.type, state)
    return Scalar(arg.type, builder.hold(arg.name or "s", state[int64(0)], register_dtype(arg.dtype)))


def with_indices(builder: Builder, loop: Loop, env: Environment) -> Environment:
    """The environment with a loop's indices."""
    return {**env, **{index: Scalar(index.type, builder.integers[index]) for index in loop.indices}}


def extents_of(builder: Builder, loop: Loop) -> list[Any]:
    """Extents of the domain, as numbers where they are constant; also notes the ranges of the indices."""
    extents: list[Any] = []
    for index, extent in zip(loop.indices, loop.domain.extents, strict=True):
        extent = builder.resolve(extent)
        _, high = interval(extent, builder.bounds)
        builder.bounds[index] = (0, None if high is None else max(high - 1, 0))
        if isinstance(extent, IndexConst):
            extents.append(max(extent.value, 0))
        else:
            extents.append(tirx.max(builder.index(extent), int64(0)))
    return extents


def _iterate(builder: Builder, loop: Loop, work: Callable[[], None], reverse: bool = False) -> None:
    """Serial loops over the active points of a domain, in lexicographic order or its reverse."""
    extents = extents_of(builder, loop)
    if any(isinstance(extent, int) and extent == 0 for extent in extents):
        return

    def enter(axis: int) -> None:
        if axis == len(extents):
            _if_active(builder, loop, work)
            return
        index, extent = loop.indices[axis], extents[axis]
        if isinstance(extent, int) and extent == 1:
            builder.integers[index] = int64(0)
            builder.bounds[index] = (0, 0)
            enter(axis + 1)
            return
        variable = builder.variable(index.name or "i")
        builder.integers[index] = extent - int64(1) - variable if reverse else variable
        with builder.block() as statements:
            enter(axis + 1)
        if statements:
            builder.emit(builder.loop(variable, extent, statements))

    enter(0)


def _if_active(builder: Builder, loop: Loop, work: Callable[[], None]) -> None:
    if loop.domain.where is None:
        work()
        return
    active = builder.predicate(loop.domain.where)
    with builder.block() as statements:
        work()
    if statements:
        builder.emit(IfThenElse(active, sequence(statements), None))


def _parallel(builder: Builder, loop: Parallel, env: Environment, destinations: Mapping[Value, Any]) -> None:
    """Instances on worker threads, unless inside one already; anchored updates are computed once."""
    inner = dict(env)
    for arg, init in zip(loop.args, loop.inits, strict=True):
        _define(builder, inner, arg, env[init])
    loop, after, in_order = patched_region(builder, loop, env, builder.allocate, destinations)
    if loop.results:
        _anchored(builder, loop, env, inner)
    _instances(builder, loop, inner, in_order)
    for value, source in after.items():
        _define(builder, env, value, source)


def _instances(builder: Builder, loop: Parallel, inner: Environment, in_order: bool) -> None:
    body = prune(loop.body, ())
    if not body.statements:
        return

    def instance() -> None:
        emit_block(builder, body, (), (), with_indices(builder, loop, inner))

    extents = extents_of(builder, loop)
    instances = 1
    for extent in extents:
        instances = instances * extent if isinstance(extent, int) else extent * _as_expression(instances)
    # Worker threads drop the errors that debug builds raise.
    serially = builder.in_instance or in_order or builder.debug
    if serially or (isinstance(instances, int) and instances <= 1):
        _iterate(builder, loop, instance)
        return
    fused = builder.variable("instance")
    with builder.frame() as statements:
        emit_instance(builder, loop, extents, fused, instance)
    builder.emit(builder.loop(fused, instances, statements, ForKind.PARALLEL))


def emit_instance(
    builder: Builder, loop: Parallel, extents: Sequence[Any], number: Any, work: Callable[[], None]
) -> None:
    """The work of the instance that has a number in the order of the domain, if it is active."""
    rest = number
    for index, extent in reversed(list(zip(loop.indices, extents, strict=True))):
        divisor = int64(extent) if isinstance(extent, int) else tirx.max(extent, int64(1))
        first = index is loop.indices[0]
        position = builder.variable(index.name or "i")
        builder.emit(tirx.Bind(position, rest if first else tirx.floormod(rest, divisor)))
        builder.integers[index] = position
        rest = tirx.floordiv(rest, divisor)
    _if_active(builder, loop, work)


def _as_expression(value: Any) -> Any:
    return int64(value) if isinstance(value, int) else value


def _anchored(builder: Builder, loop: Parallel, env: Environment, inner: Environment) -> None:
    """Results of a parallel region: the yielded values, computed once if some instance is active."""
    outputs = outputs_for(builder, loop.results, {}, [v.name for v in loop.args])
    assign(builder, [(env[init], output) for init, output in zip(loop.inits, outputs, strict=True)])
    pure = prune(loop.body, loop.yields, effects=False)

    def update() -> None:
        emit_block(builder, pure, loop.yields, outputs, inner)

    _once_if_any(builder, loop, update)
    for value, output in zip(loop.results, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, output))


def _once_if_any(builder: Builder, loop: Loop, work: Callable[[], None]) -> None:
    """Run the work once if the domain has an active point."""
    extents = extents_of(builder, loop)
    if loop.domain.where is None and all(isinstance(extent, int) for extent in extents):
        if all(extents):
            work()
        return
    flag = builder.hold("active", IntImm("uint8", 0), "uint8")
    _iterate(builder, loop, lambda: builder.emit(BufferStore(flag.source, IntImm("uint8", 1), [int64(0)])))
    with builder.block() as statements:
        work()
    if statements:
        builder.emit(IfThenElse(tirx.NE(flag, IntImm("uint8", 0)), sequence(statements), None))


def _merged_reduction(builder: Builder, loop: Reduce, merge: Merge, env: Environment) -> None:
    """Tree policies with a user's merge: contributions joined in order, the seed last and on the left."""
    hints = [v.name for v in loop.args]
    seeds = [materialize(builder, env[init], "seed") for init in loop.inits]
    totals, parts, neutral, outputs = (outputs_for(builder, loop.results, {}, hints) for _ in range(4))

    def stored(buffers: Sequence[Any]) -> list[Source]:
        return [Stored(value.type, buffer) for value, buffer in zip(loop.results, buffers, strict=True)]

    _call(builder, merge.identity, (), neutral, env)
    assign(builder, list(zip(stored(neutral), totals, strict=True)))
    assign(builder, list(zip(seeds, outputs, strict=True)))
    seen = builder.hold("active", IntImm("uint8", 0), "uint8")

    def contribution() -> None:
        inner = with_indices(builder, loop, env)
        if merge.lift is not None:
            _call(builder, merge.lift, [inner[index] for index in loop.indices], parts, inner)
        else:
            for arg, source in zip(loop.args, stored(neutral), strict=True):
                _define(builder, inner, arg, source)
            emit_block(builder, loop.body, loop.yields, parts, inner)
        _call(builder, merge.combine, [*stored(totals), *stored(parts)], totals, env)
        builder.emit(BufferStore(seen.source, IntImm("uint8", 1), [int64(0)]))

    _iterate(builder, loop, contribution)
    with builder.block() as statements:
        _call(builder, merge.combine, [*seeds, *stored(totals)], outputs, env)
    builder.emit(IfThenElse(tirx.NE(seen, IntImm("uint8", 0)), sequence(statements), None))
    for value, output in zip(loop.results, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, output))


def _call(
    builder: Builder, function: Lambda, arguments: Sequence[Source], outputs: Sequence[Any], env: Environment
) -> None:
    """Lower a function's body with its parameters bound."""
    inner = dict(env)
    for parameter, source in zip(function.params, arguments, strict=True):
        _define(builder, inner, parameter, source)
    emit_block(builder, function.body, function.yields, outputs, inner)
