"""Programs and arguments for devices: arrays are packed densely on their way there, and unpacked after."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_tile.bridges.runtime.arguments import Placed
from tvm_tile.bridges.runtime.dlpack import array_at
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory

__all__ = ["Packed", "pack_arguments", "packed"]


def packed(program: Program) -> Program:
    """The program on dense row-major parameters."""
    dense = {m: dataclasses.replace(m, strides=None) for m in program.tensors if m.strides is not None}
    return _replaced(program, dense) if dense else program


def _replaced(node: Any, memories: dict[Memory, Memory]) -> Any:
    if isinstance(node, Memory):
        return memories.get(node, node)
    if isinstance(node, tuple):
        parts = tuple(_replaced(part, memories) for part in node)
        return node if all(a is b for a, b in zip(node, parts, strict=True)) else parts
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return node
    changed = {}
    for field in dataclasses.fields(node):
        old = getattr(node, field.name)
        new = _replaced(old, memories)
        if new is not old:
            changed[field.name] = new
    return dataclasses.replace(node, **changed) if changed else node


@dataclasses.dataclass(frozen=True)
class Packed:
    """Dense arrays of raw unsigned elements by parameter; identical views are one array.

    ``origins`` are the views of the arguments' own memory.
    """

    arrays: dict[str, np.ndarray]
    origins: dict[str, np.ndarray]

    def unpack(self, written: Sequence[str]) -> None:
        """Write the results to where the arguments are."""
        for name in written:
            if self.origins[name].size:
                self.origins[name][...] = self.arrays[name]


def pack_arguments(tensors: Sequence[Placed]) -> Packed:
    """Copy tensor arguments to dense arrays."""
    arrays: dict[str, np.ndarray] = {}
    origins: dict[str, np.ndarray] = {}
    known: dict[tuple[Any, ...], np.ndarray] = {}
    for placed in tensors:
        memory = placed.memory
        origin = array_at(placed.address, memory.shape, placed.strides, placed.itemsize, placed.argument)
        place = (placed.address, memory.shape, placed.itemsize, placed.relevant_strides)
        if place not in known or placed.is_empty:
            known[place] = origin.copy(order="C")
        arrays[memory.name] = known[place]
        origins[memory.name] = origin
    return Packed(arrays, origins)
