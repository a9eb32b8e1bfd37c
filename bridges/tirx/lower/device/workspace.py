"""Temporaries of a thread: in its private memory while they are small, else in parts of a global buffer.

A thread of a device has a few kilobytes. What does not fit lives in global memory, one part a thread, so the
number of threads that are there at a time is bounded and each runs several instances in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore

from tvm_tile.ir.dtypes import bits

__all__ = ["PRIVATE_BYTES", "WORKSPACE_BYTES", "moved", "oversized", "size_of"]

#: What the temporaries of one thread may take of its private memory.
PRIVATE_BYTES = 4096

#: What the parts of all threads of a launch may take of global memory.
WORKSPACE_BYTES = 1 << 26


def size_of(allocation: Any) -> int:
    """Bytes of an allocation of constant size."""
    buffer = allocation.buffer
    size = 1
    for extent in buffer.ty.shape:
        size *= int(extent)
    return size * bits(str(buffer.ty.dtype)) // 8


def oversized(allocations: Sequence[Any]) -> list[Any]:
    """The allocations to move out of private memory: the largest ones, until the rest fits."""
    total = sum(map(size_of, allocations))
    out = []
    for allocation in sorted(allocations, key=size_of, reverse=True):
        if total <= PRIVATE_BYTES:
            break
        out.append(allocation)
        total -= size_of(allocation)
    return out


def moved(statement: Any, places: Mapping[str, tuple[Any, Any]]) -> Any:
    """The statement with buffers replaced, by name, by another one at an offset."""
    names = frozenset(places)

    def load(node: Any) -> Any:
        if node.source.name not in names:
            return node
        buffer, offset = places[str(node.source.name)]
        return buffer[node.indices[0] + offset]

    def store(node: Any) -> Any:
        if node.buffer.name not in names:
            return node
        buffer, offset = places[str(node.buffer.name)]
        return BufferStore(buffer, node.value, [node.indices[0] + offset])

    return tvm_ffi.structural_map(statement, [(TensorLoad, load), (BufferStore, store)])
