"""Operations: from an IR op to a source, or to loops that fill a temporary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_tile.bridges.tirx.lower.bounds import Check, unproved
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.contraction import multiply_accumulate
from tvm_tile.bridges.tirx.lower.fusion import Fusion
from tvm_tile.bridges.tirx.lower.loops import element_loops, store_into
from tvm_tile.bridges.tirx.lower.memory import Loaded, view_index, viewed_at, write_element
from tvm_tile.bridges.tirx.lower.reduction import arg_reduce, reduce_tile
from tvm_tile.bridges.tirx.lower.scalars import as_int64, register_dtype
from tvm_tile.bridges.tirx.lower.values import (
    Applied,
    Casted,
    Index,
    IndexValue,
    Literal,
    Positions,
    Scalar,
    Source,
    Stored,
)
from tvm_tile.bridges.tirx.lower.views import Viewed, broadcast, reshaped, transposed
from tvm_tile.ir.dtypes import bits, is_integer, numpy_dtype
from tvm_tile.ir.index import IndexVar, interval
from tvm_tile.ir.ops import (
    ArgReduce,
    Broadcast,
    Cast,
    Elementwise,
    Extract,
    FromIndex,
    Full,
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

__all__ = ["Environment", "emit_op", "materialize", "note_integer"]

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
    if isinstance(op, Store):
        _store(builder, op, env)
        return
    if isinstance(op, Stage):
        return
    (result,) = op.results
    match op:
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
            data, mask = (
                _unguarded(builder, env[v], v.name) if v is not None else None for v in (operand, where)
            )
            assert data is not None
            reduce_tile(builder, op, data, mask, out)
            env[result] = Stored(result.type, out)
        case ArgReduce(operand=operand, where=where):
            out = _destination(builder, result, destinations)
            data, mask = (
                _unguarded(builder, env[v], v.name) if v is not None else None for v in (operand, where)
            )
            assert data is not None
            arg_reduce(builder, op, data, mask, out)
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
        case Load(result=result, view=view, fill=fill, bounds=bounds, mask=mask):
            place = view_index(view, builder)
            return Loaded(
                result.type, view.memory, place, viewed_at(view, place), fill, bounds == "assume",
                None if mask is None else env[mask],
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


def _unguarded(builder: Builder, source: Source, hint: str) -> Source:
    """A source that needs no bounds tests wherever it is read."""
    axes = tuple(IndexVar(builder.axis("e", n)) for n in source.type.shape)
    return materialize(builder, source, hint) if unproved(source.checks(axes), builder) else source


def _store(builder: Builder, op: Store, env: Environment) -> None:
    memory = op.view.memory
    if 0 in memory.shape:
        return
    place = view_index(op.view, builder)
    limits = viewed_at(op.view, place)
    value = env[op.value]
    mask = None if op.mask is None else env[op.mask]
    assume = op.bounds == "assume"

    def checks(index: Index) -> tuple[Check, ...]:
        own = () if assume else limits(index)
        return (*own, *value.checks(index), *(() if mask is None else mask.checks(index)))

    def sink(index: Index, body: Body) -> None:
        wanted = None if mask is None else mask.element(index, body)
        element = value.element(index, body)
        write_element(memory, place(index), element, body, () if assume else limits(index), wanted)

    element_loops(
        builder, op.view.shape, sink,
        width=max(value.width, bits(memory.dtype) // 8),
        checks=checks,
        vectorize=value.vectorizes and mask is None,
    )  # fmt: skip
