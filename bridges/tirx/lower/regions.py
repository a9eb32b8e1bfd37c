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
from tvm_tile.bridges.tirx.lower.divisions import settle_divisions
from tvm_tile.bridges.tirx.lower.fusion import Fusion, fuse
from tvm_tile.bridges.tirx.lower.loops import store_into
from tvm_tile.bridges.tirx.lower.operations import Environment, emit_op, materialize, note_integer
from tvm_tile.bridges.tirx.lower.scalars import int64, register_dtype
from tvm_tile.bridges.tirx.lower.uses import all_uses, nested_uses, prune
from tvm_tile.bridges.tirx.lower.values import Scalar, Source, Stored
from tvm_tile.ir.index import IndexConst, interval
from tvm_tile.ir.ops import ArgReduce, Mma, Op, ReduceTile
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Parallel, Reduce, Statement
from tvm_tile.ir.values import Value

__all__ = ["emit_block"]


def emit_block(
    builder: Builder, block: Block, yields: Sequence[Value], outputs: Sequence[Any], env: Environment
) -> None:
    """Lower the statements of a block, and put the yielded values into the output temporaries."""
    env = dict(env)
    fusion = fuse(block, tuple(yields), builder.noalias)
    later: set[Value] = set()
    after: list[set[Value]] = []
    for statement in reversed(block.statements):
        after.append(set(later))
        later |= all_uses(statement)
    for statement, rest in zip(block.statements, reversed(after), strict=True):
        statement = settle_divisions(builder, statement)
        destinations = {
            result: output
            for result in statement.results
            for value, output in zip(yields, outputs, strict=True)
            if value == result and _may_overwrite(statement, result, output, rest, yields, env, fusion)
        }
        match statement:
            case If():
                _if(builder, statement, env, destinations)
            case Loop():
                _loop(builder, statement, env, destinations)
            case _:
                emit_op(builder, statement, env, fusion, destinations)
    _assign(builder, [(env[value], output) for value, output in zip(yields, outputs, strict=True)])


def _may_overwrite(
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
    if list(yields).count(result) != 1 or result in fusion.inlined:
        return False
    if any(value != result and value in env and name in env[value].reads for value in (*rest, *yields)):
        return False
    match statement:
        case If():
            return True
        case Parallel():
            return False
        case Loop():
            if isinstance(statement, Reduce) and _merges(statement):
                return False
            return not any(name in env[v].reads for v in nested_uses(statement) if v in env)
        case Mma(a=a, b=b, acc=acc):
            return name not in env[a].reads and name not in env[b].reads and env[acc].reads.get(name, True)
        case ReduceTile(operand=operand, where=where) | ArgReduce(operand=operand, where=where):
            return name not in env[operand].reads and (where is None or name not in env[where].reads)
        case Op():
            return all(env[v].reads.get(name, True) for v in all_uses(statement) if v in env)
    return False


def _assign(builder: Builder, pairs: Sequence[tuple[Source, Any]]) -> None:
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


def _outputs(
    builder: Builder, results: Sequence[Value], destinations: Mapping[Value, Any], hints: Sequence[str]
) -> list[Any]:
    return [
        destinations[value]
        if value in destinations
        else builder.allocate(value.name or hint or "state", value.type.size, register_dtype(value.dtype))
        for value, hint in zip(results, hints, strict=True)
    ]


def _define(builder: Builder, env: Environment, value: Value, source: Source) -> None:
    env[value] = source
    note_integer(builder, value, source)


def _if(builder: Builder, node: If, env: Environment, destinations: Mapping[Value, Any]) -> None:
    outputs = _outputs(builder, node.results, destinations, [v.name for v in node.then_yields])
    condition = tirx.NE(env[node.condition].element((), Body(builder)), IntImm("uint8", 0))
    with builder.block() as then:
        emit_block(builder, node.then, node.then_yields, outputs, env)
    with builder.block() as orelse:
        emit_block(builder, node.orelse, node.else_yields, outputs, env)
    if then or orelse:
        builder.emit(IfThenElse(condition, sequence(then), sequence(orelse) if orelse else None))
    for value, buffer in zip(node.results, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, buffer))


def _merges(loop: Reduce) -> bool:
    """Whether contributions are combined by a user's merge instead of the body as written."""
    return (
        loop.policy in ("ordered_tree", "unordered_tree")
        and loop.merge is not None
        and loop.merge.builtin is None
    )


def _loop(builder: Builder, loop: Loop, env: Environment, destinations: Mapping[Value, Any]) -> None:
    match loop:
        case Parallel():
            _parallel(builder, loop, env)
        case Reduce() if _merges(loop):
            assert loop.merge is not None
            _merged_reduction(builder, loop, loop.merge, env)
        case _:
            reverse = isinstance(loop, Reduce) and loop.policy == "fold_right"
            _recurrence(builder, loop, env, destinations, reverse)


def _recurrence(
    builder: Builder, loop: Loop, env: Environment, destinations: Mapping[Value, Any], reverse: bool
) -> None:
    """A total order: state temporaries, updated once an iteration."""
    states = _outputs(builder, loop.results, destinations, [v.name for v in loop.args])
    _assign(builder, [(env[init], state) for init, state in zip(loop.inits, states, strict=True)])

    def iteration() -> None:
        inner = _with_indices(builder, loop, env)
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


def _with_indices(builder: Builder, loop: Loop, env: Environment) -> Environment:
    return {**env, **{index: Scalar(index.type, builder.integers[index]) for index in loop.indices}}


def _extents(builder: Builder, loop: Loop) -> list[Any]:
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
    extents = _extents(builder, loop)
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


def _parallel(builder: Builder, loop: Parallel, env: Environment) -> None:
    """Instances on worker threads, unless inside one already; anchored updates are computed once."""
    inner = dict(env)
    for arg, init in zip(loop.args, loop.inits, strict=True):
        _define(builder, inner, arg, env[init])
    if loop.results:
        _anchored(builder, loop, env, inner)
    body = prune(loop.body, ())
    if not body.statements:
        return

    def instance() -> None:
        emit_block(builder, body, (), (), _with_indices(builder, loop, inner))

    extents = _extents(builder, loop)
    instances = 1
    for extent in extents:
        instances = instances * extent if isinstance(extent, int) else extent * _as_expression(instances)
    if builder.in_instance or (isinstance(instances, int) and instances <= 1):
        _iterate(builder, loop, instance)
        return
    fused = builder.variable("instance")
    with builder.frame() as statements:
        rest = fused
        for index, extent in reversed(list(zip(loop.indices, extents, strict=True))):
            divisor = int64(extent) if isinstance(extent, int) else tirx.max(extent, int64(1))
            first = index is loop.indices[0]
            position = builder.variable(index.name or "i")
            builder.emit(tirx.Bind(position, rest if first else tirx.floormod(rest, divisor)))
            builder.integers[index] = position
            rest = tirx.floordiv(rest, divisor)
        _if_active(builder, loop, instance)
    builder.emit(builder.loop(fused, instances, statements, ForKind.PARALLEL))


def _as_expression(value: Any) -> Any:
    return int64(value) if isinstance(value, int) else value


def _anchored(builder: Builder, loop: Parallel, env: Environment, inner: Environment) -> None:
    """Results of a parallel region: the yielded values, computed once if some instance is active."""
    outputs = _outputs(builder, loop.results, {}, [v.name for v in loop.args])
    _assign(builder, [(env[init], output) for init, output in zip(loop.inits, outputs, strict=True)])
    pure = prune(loop.body, loop.yields, effects=False)

    def update() -> None:
        emit_block(builder, pure, loop.yields, outputs, inner)

    _once_if_any(builder, loop, update)
    for value, output in zip(loop.results, outputs, strict=True):
        _define(builder, env, value, Stored(value.type, output))


def _once_if_any(builder: Builder, loop: Loop, work: Callable[[], None]) -> None:
    """Run the work once if the domain has an active point."""
    extents = _extents(builder, loop)
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
    totals, parts, neutral, outputs = (_outputs(builder, loop.results, {}, hints) for _ in range(4))

    def stored(buffers: Sequence[Any]) -> list[Source]:
        return [Stored(value.type, buffer) for value, buffer in zip(loop.results, buffers, strict=True)]

    _call(builder, merge.identity, (), neutral, env)
    _assign(builder, list(zip(stored(neutral), totals, strict=True)))
    _assign(builder, list(zip(seeds, outputs, strict=True)))
    seen = builder.hold("active", IntImm("uint8", 0), "uint8")

    def contribution() -> None:
        inner = _with_indices(builder, loop, env)
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
