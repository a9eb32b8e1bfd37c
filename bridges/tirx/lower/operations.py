"""Operations: from an IR op to a source, or to loops that fill a temporary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_tile.bridges.tirx.lower.bounds import unproved
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.fusion import Fusion
from tvm_tile.bridges.tirx.lower.loops import store_into
from tvm_tile.bridges.tirx.lower.memories.addresses import VALUE
from tvm_tile.bridges.tirx.lower.memories.allocations import allocate_memory
from tvm_tile.bridges.tirx.lower.memories.atomics import update_atomically
from tvm_tile.bridges.tirx.lower.memories.calls import call_extern_function
from tvm_tile.bridges.tirx.lower.memories.memory import Loaded, view_index, viewed_at
from tvm_tile.bridges.tirx.lower.scalars import as_int64, register_dtype
from tvm_tile.bridges.tirx.lower.tiles.contraction import multiply_accumulate
from tvm_tile.bridges.tirx.lower.tiles.parts import join, position_of, store_view
from tvm_tile.bridges.tirx.lower.tiles.reduction import arg_reduce, reduce_tile
from tvm_tile.bridges.tirx.lower.tiles.views import Gathered, Viewed, broadcast, reshaped, transposed
from tvm_tile.bridges.tirx.lower.values import (
    Applied,
    Casted,
    IndexValue,
    Literal,
    Positions,
    Scalar,
    Source,
    Stored,
)
from tvm_tile.ir.dtypes import bits, is_integer, numpy_dtype
from tvm_tile.ir.index import IndexVar, interval
from tvm_tile.ir.ops import (
    Alloc,
    ArgReduce,
    Atomic,
    Broadcast,
    Cast,
    Concat,
    Elementwise,
    Extern,
    Extract,
    FromIndex,
    Full,
    Gather,
    Insert,
    Iota,
    Load,
    Mma,
    Number,
    Op,
    ReduceTile,
    Reshape,
    Stage,
    Store,
    Transpose,
    View,
)
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Environment", "emit_op", "materialize", "note_integer", "unguarded"]

Environment = dict[Value, Source]


def emit_op(
    builder: Builder, op: Op, env: Environment, fusion: Fusion, destinations: Mapping[Value, Any]
) -> None:
    """Lower one op: define its result in the environment, or emit its store.

    Parameters
    ----------
    builder
        Receives the statements.
    op
        The op.
    env
        Sources of the values in scope; gets the result.
    fusion
        Which results are evaluated in their consumer.
    destinations
        Temporaries into which some results should go if they are stored.
    """
    match op:
        case Store(view=view, value=value, mask=mask):
            given = None if mask is None else env[mask]
            store_view(builder, view, env[value], given, op.bounds == "assume", op.span)
            return
        case Stage():
            return
        case Alloc(memory=memory):
            allocate_memory(builder, memory)
            return
        case Extern():
            call_extern_function(builder, op, env)
            return
    (result,) = op.results
    match op:
        case Atomic():
            out = _destination(builder, result, destinations)
            update_atomically(builder, op, env, out)
            env[result] = Stored(result.type, out)
        case Concat(operands=operands, axis=axis):
            out = _destination(builder, result, destinations)
            join(builder, [env[v] for v in operands], axis, result.type, out)
            env[result] = Stored(result.type, out)
        case Insert(operand=operand, subscripts=subscripts, value=value):
            out = _destination(builder, result, destinations)
            part = env[value]
            if out.name in part.reads:
                part = materialize(builder, part, "part")
            store_into(builder, env[operand], out)
            kept = Memory(out.name, result.shape, result.dtype, scope=VALUE)
            builder.buffers[kept] = out
            store_view(builder, View(kept, subscripts), part)
            env[result] = Stored(result.type, out)
        case Mma(a=a, b=b, acc=acc):
            out = _destination(builder, result, destinations)
            dtype = acc.dtype
            left = _dense(builder, env[a], dtype, a.name or "a")
            right = _dense(builder, env[b], dtype, b.name or "b")
            start = env[acc]
            if not isinstance(start, Stored):
                store_into(builder, start, out)
                start = Stored(result.type, out)
            multiply_accumulate(builder, left, right, start, out)
            env[result] = Stored(result.type, out)
        case ReduceTile(operand=operand, where=where):
            out = _destination(builder, result, destinations)
            data = unguarded(builder, env[operand], operand.name)
            taken = None if where is None else unguarded(builder, env[where], where.name)
            reduce_tile(builder, op, data, taken, out)
            env[result] = Stored(result.type, out)
        case ArgReduce(operand=operand, where=where):
            out = _destination(builder, result, destinations)
            data = unguarded(builder, env[operand], operand.name)
            taken = None if where is None else unguarded(builder, env[where], where.name)
            arg_reduce(builder, op, data, taken, out)
            env[result] = Stored(result.type, out)
        case _:
            source = _source(builder, op, env, result in fusion.shared)
            lazy = result in fusion.inlined or isinstance(
                op, (Full, Iota, Broadcast, Transpose, Reshape, Extract)
            )
            if isinstance(source, IndexValue) or (lazy and result.shape):
                env[result] = source
            elif result.shape == () and result not in destinations:
                env[result] = _scalar(builder, source, result)
            else:
                out = _destination(builder, result, destinations)
                store_into(builder, source, out)
                env[result] = Stored(result.type, out)
    note_integer(builder, result, env[result])


def _source(builder: Builder, op: Op, env: Environment, shared: bool) -> Source:
    match op:
        case Full(result=result, value=value):
            return Literal(result.type, value)
        case Iota(result=result):
            return Positions(result.type)
        case FromIndex(result=result, index=index):
            return IndexValue(result.type, builder.resolve(index))
        case Elementwise(result=result, fn=fn, operands=operands):
            return Applied(result.type, fn, tuple(env[v] for v in operands), shared)
        case Cast(result=result, operand=operand):
            return Casted(result.type, env[operand], shared)
        case Broadcast(result=result, operand=operand):
            return broadcast(env[operand], result.type)
        case Reshape(result=result, operand=operand):
            return reshaped(env[operand], result.type, builder)
        case Transpose(result=result, operand=operand, permutation=permutation):
            return transposed(env[operand], result.type, permutation)
        case Extract():
            return _extracted(builder, op, env)
        case Gather(result=result, operand=operand, index=positions, axis=axis, fill=fill):
            table = unguarded(builder, env[operand], operand.name)
            return Gathered(result.type, table, env[positions], axis, fill)
        case Load(result=result, view=view, fill=fill, bounds=bounds, mask=mask):
            place = view_index(view, builder)
            return Loaded(
                result.type, view.memory, place, viewed_at(view, place), fill, bounds == "assume",
                None if mask is None else env[mask],
                position_of(op.span) if builder.debug and bounds == "assume" else None,
            )  # fmt: skip
    raise TypeError(f"no lowering for {type(op).__name__}")


def _extracted(builder: Builder, op: Extract, env: Environment) -> Source:
    operand = env[op.operand]
    view = View(Memory("", op.operand.shape, op.operand.dtype), op.subscripts)
    place = view_index(view, builder)
    checks = viewed_at(view, place)
    axes = tuple(IndexVar(builder.axis("e", n)) for n in op.result.shape)
    limits = None
    if unproved(checks(axes), builder) or 0 in op.operand.shape:
        if 0 in op.operand.shape:
            return Literal(op.result.type, Number.of(0))
        limits = checks
        if not isinstance(operand, (Stored, Literal, Scalar)):
            # Evaluated out of bounds it could read anything; storage is only read under the test.
            operand = materialize(builder, operand, op.operand.name)
    return Viewed(op.result.type, operand, place, limits)


def _scalar(builder: Builder, source: Source, result: Value) -> Source:
    """Evaluate a scalar now; a literal or a plain expression needs no temporary."""
    if isinstance(source, (Literal, Scalar)):
        return source
    element = source.element((), Body(builder))
    return Scalar(result.type, builder.hold(result.name or "s", element, register_dtype(result.dtype)))


def note_integer(builder: Builder, result: Value, source: Source) -> None:
    """Make an integer scalar usable in index expressions."""
    if result.shape or not is_integer(result.dtype):
        return
    if isinstance(source, IndexValue):
        builder.definitions[result] = source.value
        builder.bounds[result] = interval(source.value, builder.bounds)
        return
    builder.integers[result] = as_int64(source.element((), Body(builder)), result.dtype)
    if bits(result.dtype) < 64:
        info = np.iinfo(numpy_dtype(result.dtype))
        builder.bounds[result] = (int(info.min), int(info.max))


def _destination(builder: Builder, result: Value, destinations: Mapping[Value, Any]) -> Any:
    given = destinations.get(result)
    if given is not None:
        return given
    return builder.allocate(result.name or "t", result.type.size, register_dtype(result.dtype))


def materialize(builder: Builder, source: Source, hint: str, dtype: str | None = None) -> Stored:
    """The source in a dense temporary, converted to a dtype if one is given."""
    if dtype is not None and dtype != source.type.dtype:
        source = Casted(TileType(source.type.shape, dtype), source)
    if isinstance(source, Stored):
        return source
    buffer = builder.allocate(hint or "t", source.type.size, register_dtype(source.type.dtype))
    store_into(builder, source, buffer)
    return Stored(source.type, buffer)


def _dense(builder: Builder, source: Source, dtype: str, hint: str) -> Stored:
    """An operand of a contraction in storage; what has to be copied is converted on the way."""
    return source if isinstance(source, Stored) else materialize(builder, source, hint, dtype)


def unguarded(builder: Builder, source: Source, hint: str) -> Source:
    """A source that needs no bounds tests wherever it is read."""
    axes = tuple(IndexVar(builder.axis("e", n)) for n in source.type.shape)
    return materialize(builder, source, hint) if unproved(source.checks(axes), builder) else source
