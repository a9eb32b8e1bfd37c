"""Which arguments of a call share memory: not at all, as identical views, or in a way that is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tvm_tile.bridges.runtime.arguments import Placed
from tvm_tile.bridges.runtime.dlpack import array_at
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.values import Memory
from tvm_tile.semantics.sharing import WORK, share_an_element

__all__ = ["Overlap", "find_overlap", "overlaps_itself"]


@dataclass(frozen=True)
class Overlap:
    """How the arguments of one call lie in memory.

    Attributes
    ----------
    groups
        Names of parameters that got identical views, where the program writes one of them.
    interleaved
        Whether two arguments, one of them written, lie between one another without sharing an element.
    """

    groups: tuple[frozenset[str], ...] = ()
    interleaved: bool = False


def find_overlap(tensors: Sequence[Placed], written: frozenset[Memory]) -> Overlap:
    """Compare all pairs of tensor arguments of which the program writes at least one.

    Raises
    ------
    ArgumentError
        Two of them share an element without being identical views, or that could not be decided.
    """
    groups: list[set[str]] = []
    interleaved = False
    for a, b in combinations([t for t in tensors if not t.is_empty], 2):
        if a.memory not in written and b.memory not in written:
            continue
        (low_a, high_a), (low_b, high_b) = a.byte_range, b.byte_range
        if high_a <= low_b or high_b <= low_a:
            continue
        if _identical(a, b):
            _join(groups, a.memory.name, b.memory.name)
            continue
        _refuse_if_shared(a, b)
        interleaved = True
    return Overlap(tuple(frozenset(group) for group in groups), interleaved)


def _identical(a: Placed, b: Placed) -> bool:
    return (
        a.address == b.address
        and a.memory.shape == b.memory.shape
        and a.memory.dtype == b.memory.dtype
        and a.relevant_strides == b.relevant_strides
    )


def _join(groups: list[set[str]], a: str, b: str) -> None:
    touched = [group for group in groups if a in group or b in group]
    for group in touched:
        groups.remove(group)
    groups.append({a, b}.union(*touched))


def _refuse_if_shared(a: Placed, b: Placed) -> None:
    names = f"parameters {a.memory.name} and {b.memory.name}"
    first, second = (
        array_at(p.address, p.memory.shape, p.relevant_strides, p.itemsize, p.argument) for p in (a, b)
    )
    shared = share_an_element(first, second)
    if shared is None:
        raise ArgumentError(
            f"whether {names} share an element could not be decided within {WORK} steps",
            obligation="arguments do not overlap",
            suggestion=f"pass a copy as {a.memory.name}",
        )
    if not shared:
        return
    raise ArgumentError(
        f"{names} share elements without being identical views, and the program writes one of them",
        obligation="arguments do not overlap",
        suggestion=f"pass a copy as {a.memory.name}",
    )


def overlaps_itself(memory: Memory) -> bool:
    """Whether two elements of an array with the shape and strides of a parameter are one."""
    if 0 in memory.shape:
        return False
    axes = sorted((abs(s), n) for s, n in zip(memory.element_strides, memory.shape, strict=True) if n > 1)
    reach = 1
    for stride, extent in axes:
        if stride < reach:
            break
        reach += stride * (extent - 1)
    else:
        return False
    # The axes interleave: look at the addresses themselves.
    addresses = np.zeros(1, np.int64)
    for stride, extent in axes:
        addresses = np.add.outer(addresses, np.arange(extent) * stride).ravel()
        if len(np.unique(addresses)) < len(addresses):
            return True
    return False
