"""Operands for the generated function from arrays that TVM does not take as they are.

Most need a new view: read-only inputs, element types that NumPy does not export, meaningless strides of
axes of extent 1. Only elements that are not aligned, or not a whole number of elements apart, are copied
to a temporary, and back after the call where the program writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_tile.bridges.runtime.arguments import Placed
from tvm_tile.bridges.runtime.dlpack import FOREIGN_CODES, array_at, tensor_of
from tvm_tile.ir.values import Memory

__all__ = ["Staging", "stage"]


@dataclass
class Staging:
    """Operands of one call, and what is to be copied back after it.

    Attributes
    ----------
    operands
        In call order.
    changed
        Whether some operand is not the argument itself.
    """

    operands: list[Any] = field(default_factory=list)
    changed: bool = False
    temporaries: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def copy_back(self) -> None:
        """Write the temporaries of written parameters to the arrays that they stand for."""
        for array, temporary in self.temporaries:
            array[...] = temporary


def stage(
    bound: Sequence[Placed | bool | int | float], written: frozenset[Memory], alignments: Mapping[str, int]
) -> Staging:
    """Make the operands of one call.

    Parameters
    ----------
    bound
        The checked arguments.
    written
        Parameters that the program writes.
    alignments
        Bytes to which the generated code needs each tensor parameter to be aligned, by name.
    """
    staging = Staging()
    # Identical views share one temporary, or a write through one name would not be seen through the other.
    copies: dict[tuple[Any, ...], np.ndarray] = {}
    for placed in bound:
        if not isinstance(placed, Placed):
            staging.operands.append(placed)
            continue
        memory = placed.memory
        if not placed.is_empty and _needs_copy(placed, alignments[memory.name]):
            place = (placed.address, memory.shape, memory.dtype, placed.relevant_strides)
            array = array_at(placed.address, memory.shape, placed.strides, placed.itemsize, placed.argument)
            if place not in copies:
                copies[place] = _temporary(memory, placed.itemsize, alignments[memory.name])
                copies[place][...] = array
            if memory in written:
                staging.temporaries.append((array, copies[place]))
            operand = tensor_of(copies[place], memory.dtype)
        else:
            operand = placed.argument if _goes_as_it_is(placed) else _reviewed(placed)
        staging.changed |= operand is not placed.argument
        staging.operands.append(operand)
    return staging


def _needs_copy(placed: Placed, alignment: int) -> bool:
    return placed.address % alignment != 0 or any(s % placed.itemsize for s in placed.relevant_strides)


def _goes_as_it_is(placed: Placed) -> bool:
    import tvm_ffi

    argument, itemsize = placed.argument, placed.itemsize
    if placed.is_empty or placed.strides != tuple(s * itemsize for s in placed.memory.element_strides):
        return False
    if isinstance(argument, tvm_ffi.Tensor):
        return True
    return (
        type(argument) is np.ndarray and argument.flags.writeable and placed.memory.dtype not in FOREIGN_CODES
    )


def _reviewed(placed: Placed) -> Any:
    """The same elements with exactly the strides of the parameter."""
    memory = placed.memory
    if placed.is_empty:
        # Strides that TVM compares even though there is nothing to reach; and an address that is never used.
        return tensor_of(_temporary(memory, placed.itemsize, 1), memory.dtype)
    strides = tuple(s * placed.itemsize for s in memory.element_strides)
    return tensor_of(
        array_at(placed.address, memory.shape, strides, placed.itemsize, placed.argument), memory.dtype
    )


def _temporary(memory: Memory, itemsize: int, alignment: int) -> np.ndarray:
    """New memory with the shape and strides of a parameter, as unsigned elements."""
    reach = [max(n - 1, 0) * s for n, s in zip(memory.shape, memory.element_strides, strict=True)]
    before = -sum(r for r in reach if r < 0)
    elements = before + sum(r for r in reach if r > 0) + 1
    storage = np.zeros(elements * itemsize + alignment, np.uint8)
    start = storage.__array_interface__["data"][0]
    address = start + -(start + before * itemsize) % alignment + before * itemsize
    strides = tuple(s * itemsize for s in memory.element_strides)
    return array_at(address, memory.shape, strides, itemsize, storage)
