"""Proof that parameters may be passed the very same array.

A parallel region promises that its instances do not interfere through any *one* parameter. It promises
nothing about two parameters that turn out to be the same memory, so this is what is proved here: of two
accesses through different names of a group, made by distinct instances of one entry of a region, none
writes what the other touches. Conflicts through one name alone break the language's contract with or
without aliasing, and are not looked for. Sequential order is kept by generated code, aliased or not, and
needs no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tvm_tile.ir.ops import Atomic
from tvm_tile.ir.regions import Parallel, Program
from tvm_tile.ir.values import Memory
from tvm_tile.relations.presburger import DEFAULT_OPERATIONS
from tvm_tile.relations.proof import Proof
from tvm_tile.semantics.footprints import Access, accesses_of
from tvm_tile.semantics.separation import separate

__all__ = ["prove_alias_pattern"]

_METHOD = "footprints of distinct instances"


def prove_alias_pattern(
    program: Program, groups: Sequence[frozenset[str]], *, operations: int = DEFAULT_OPERATIONS
) -> Proof:
    """Prove that no two instances conflict when each group of parameters is one array.

    Parameters
    ----------
    program
        The program.
    groups
        Names of tensor parameters that are passed the very same array: same start, shape and strides.
    operations
        Budget in isl operations of each question; there is one for each region and pair of accesses.

    Returns
    -------
    Proof
        Proved for all values of run-time scalars. Disproved with a
        :class:`~tvm_tile.semantics.conflicts.Conflict` that happens whatever the data is. Unknown where a
        conflict cannot be excluded because an index is data or not affine, an access is masked or under a
        branch on data, or the budget ran out. The cost is the number of questions.

    Raises
    ------
    ValueError
        A name is no tensor parameter, or members of a group differ in shape, dtype or strides.
    """
    for group in groups:
        _check_group(program, group)
    accesses = accesses_of(program)
    unknown: Proof | None = None
    cost = 0
    for group in groups:
        touching = [access for access in accesses if access.memory.name in group]
        for a, b in combinations(touching, 2):
            if a.memory.name == b.memory.name or not (a.writes or b.writes):
                continue
            if isinstance(a.op, Atomic) and isinstance(b.op, Atomic):
                continue
            for depth in range(_shared_depth(a, b)):
                if not isinstance(a.path[depth].loop, Parallel):
                    continue
                cost += 1
                answer = separate(program, a, b, depth, operations)
                if answer.is_disproved:
                    return Proof.disproved(answer.counterexample, _METHOD, cost)
                if answer.is_unknown and unknown is None:
                    unknown = answer
    if unknown is not None:
        return Proof.unknown(unknown.reason, _METHOD, cost)
    return Proof.proved(_METHOD, cost)


def _check_group(program: Program, group: frozenset[str]) -> None:
    memories = {memory.name: memory for memory in program.tensors}
    for name in sorted(group):
        if name not in memories:
            raise ValueError(f"{program.name} has no tensor parameter {name!r}; it has {', '.join(memories)}")
    members = [memories[name] for name in sorted(group)]
    for other in members[1:]:
        if _type(other) != _type(members[0]):
            raise ValueError(
                f"{members[0].name} and {other.name} cannot be the same array: "
                f"shape, dtype and strides are {_type(members[0])} and {_type(other)}"
            )


def _type(memory: Memory) -> tuple[tuple[int, ...], str, tuple[int, ...]]:
    strides = Memory.dense_or_strides(memory.shape, memory.strides)
    return memory.shape, memory.dtype, Memory(memory.name, memory.shape, "", strides).element_strides


def _shared_depth(a: Access, b: Access) -> int:
    """Number of loops around both accesses."""
    depth = 0
    for one, other in zip(a.path, b.path, strict=False):
        if one.loop is not other.loop:
            break
        depth += 1
    return depth
