"""Tiles after a parallel region that its instances update in part."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.loops import store_into
from tvm_tile.bridges.tirx.lower.memories.addresses import VALUE
from tvm_tile.bridges.tirx.lower.operations import Environment
from tvm_tile.bridges.tirx.lower.scalars import register_dtype
from tvm_tile.bridges.tirx.lower.tiles.patches import Target, combining, with_stores
from tvm_tile.bridges.tirx.lower.uses import free_values_of
from tvm_tile.bridges.tirx.lower.values import Literal, Source, Stored
from tvm_tile.ir.ops import Number
from tvm_tile.ir.patches import patched_states
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["as_memory", "patched_region"]


def as_memory(builder: Builder, type: TileType, buffer: Any) -> Memory:
    """A temporary under construction as memory that statements store into."""
    memory = Memory(buffer.name, type.shape, type.dtype, scope=VALUE)
    builder.buffers[memory] = buffer
    return memory


def patched_region(
    builder: Builder,
    loop: Parallel,
    env: Environment,
    allocate: Callable[[str, int, str], Any],
    destinations: Mapping[Value, Any],
) -> tuple[Parallel, dict[Value, Source], bool]:
    """The region with partial updates as stores; the tiles after it; whether instances must be in order.

    ``allocate(hint, size, register)`` gives the storage of those tiles, which all instances write. It is
    filled here with the tiles from before the region. A tile goes into its destination, which may hold the
    tile from before, if no instance reads what that holds.
    """
    patched = [k for k, patch in enumerate(patched_states(loop)) if patch]
    if not patched:
        return loop, {}, False
    targets: dict[int, Target] = {}
    body = loop.body
    for k in patched:
        result = loop.results[k]
        memory = Memory(builder.unique(result.name or "state"), result.shape, result.dtype, scope=VALUE)
        written = None
        if combining(loop, k) is not None:
            written = Memory(builder.unique("written"), result.shape, "bool", scope=VALUE)
        targets[k] = Target(memory, written)
        body = with_stores(dataclasses.replace(loop, body=body), k, targets[k], builder.value)

    inner = {**env, **{arg: env[init] for arg, init in zip(loop.args, loop.inits, strict=True)}}
    read = {name for value in free_values_of(body) if value in inner for name in inner[value].reads}
    after: dict[Value, Source] = {}
    for k, target in targets.items():
        result = loop.results[k]
        start = env[loop.inits[k]]
        others = {name for j, init in enumerate(loop.inits) if j != k for name in env[init].reads}
        given = destinations.get(result)
        free = given is not None and given.name not in read | others and result.shape != ()
        if given is not None and free and start.reads.get(given.name, True):
            buffer = given
        else:
            buffer = allocate(target.memory.name, result.type.size, register_dtype(result.dtype))
        store_into(builder, start, buffer)
        builder.buffers[target.memory] = buffer
        if target.written is not None:
            flags = allocate(target.written.name, result.type.size, "uint8")
            store_into(builder, Literal(TileType(result.shape, "bool"), Number.of(False)), flags)
            builder.buffers[target.written] = flags
        after[result] = Stored(result.type, buffer)
    kept = [k for k in range(len(loop.results)) if k not in targets]
    states: dict[str, Any] = {
        name: tuple(getattr(loop, name)[k] for k in kept) for name in ("inits", "args", "yields", "results")
    }
    in_order = any(target.written is not None for target in targets.values())
    return dataclasses.replace(loop, body=body, **states), after, in_order
