"""Proof that a program writes every element of a memory, whatever its data are."""

from __future__ import annotations

from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.ops import Op, Store
from tvm_tile.ir.regions import Program
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory
from tvm_tile.relations.presburger import DEFAULT_OPERATIONS, prove_empty
from tvm_tile.relations.proof import Proof
from tvm_tile.semantics.constraints import ConstraintSystem
from tvm_tile.semantics.footprints import Access, accesses_of

__all__ = ["prove_covered"]

_METHOD = "union of store footprints"


class _Footprint(ConstraintSystem):
    """The elements that one store writes, as a formula over names of an element's coordinates."""

    def formula(self, access: Access, coordinates: list[str]) -> str:
        for step in access.path:
            self.coordinates(step, "")
        for guard in access.guards:
            self.hold(guard, "")
        own = self.element(access.subscripts, access.memory.shape, "")
        for coordinate, name in zip(coordinates, own, strict=True):
            self.require(f"{coordinate} = {name}")
        condition = " and ".join(self._constraints) or "true"
        return f"(exists {', '.join(self._variables)} : {condition})" if self._variables else f"({condition})"


def prove_covered(program: Program, memory: Memory, *, operations: int = DEFAULT_OPERATIONS) -> Proof:
    """Prove that a program writes each element of a memory at least once.

    Parameters
    ----------
    program
        The program.
    memory
        One of its memories.
    operations
        Budget in isl operations.

    Returns
    -------
    Proof
        Proved for all data. Disproved with the position of an element that is never written. Unknown where
        that depends on data or on run-time scalars, or the budget ran out.
    """
    coordinates = [f"x{axis}" for axis in range(len(memory.shape))]
    doubts: list[str] = []
    for op in walk(program.body):
        if isinstance(op, Op) and not isinstance(op, Store) and memory in effects_of(op).writes:
            doubts.append(f"what the {type(op).__name__} on {memory.name} writes is not known exactly")
    written: list[str] = []
    for access in accesses_of(program):
        if access.memory != memory or not isinstance(access.op, Store):
            continue
        footprint = _Footprint(frozenset(program.scalars), program.scalars)
        formula = footprint.formula(access, coordinates)
        scalars = footprint.known_parameters().values()
        unsure = [
            *access.doubts,
            *footprint.doubts,
            *(f"the run-time scalar {name} decides what is written" for name in scalars),
        ]
        # An upper bound of what is written proves nothing.
        doubts.extend(unsure)
        if not unsure:
            written.append(formula)
    box = [f"0 <= {name} < {extent}" for name, extent in zip(coordinates, memory.shape, strict=True)]
    missing = " and ".join([*box, *(f"not {formula}" for formula in written)]) or "true"
    answer = prove_empty(f"{{ [{', '.join(coordinates)}] : {missing} }}", operations=operations)
    if answer.is_proved:
        return Proof.proved(_METHOD)
    if doubts:
        return Proof.unknown("; ".join(dict.fromkeys(doubts)), _METHOD)
    if answer.is_unknown:
        return Proof.unknown(answer.reason, _METHOD)
    return Proof.disproved(tuple(answer.counterexample[name] for name in coordinates), _METHOD)
