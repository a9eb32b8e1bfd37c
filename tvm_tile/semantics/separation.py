"""Proof that two accesses of distinct instances of a region share no element."""

from __future__ import annotations

from tvm_tile.ir.regions import Program
from tvm_tile.relations.presburger import Point, prove_empty
from tvm_tile.relations.proof import Proof
from tvm_tile.semantics.conflicts import Conflict, Touch
from tvm_tile.semantics.constraints import ConstraintSystem
from tvm_tile.semantics.footprints import Access, Enclosing

__all__ = ["separate"]


def separate(program: Program, a: Access, b: Access, depth: int, operations: int) -> Proof:
    """Prove that ``a`` in one instance of the loop at ``depth`` and ``b`` in another share no element.

    Returns
    -------
    Proof
        Disproved with a :class:`~tvm_tile.semantics.conflicts.Conflict` that happens whatever the data is;
        unknown where one cannot be excluded.
    """
    region = a.path[depth]
    outer = a.path[:depth]
    shared = region.visible
    system = ConstraintSystem(shared, program.scalars)
    around = [name for step in outer for name in system.coordinates(step, "")]
    first, element = _place(system, a, depth, "first")
    second, same = _place(system, b, depth, "second")
    system.require(" or ".join(f"{p} != {q}" for p, q in zip(first, second, strict=True)) or "false")
    for p, q in zip(element, same, strict=True):
        system.require(f"{p} = {q}")
    answer = prove_empty(system.text(), operations=operations)
    if not answer.is_disproved:
        return answer
    doubts = list(dict.fromkeys((*a.doubts, *b.doubts, *system.doubts)))
    if doubts:
        return Proof.unknown(
            f"{a.memory.name} and {b.memory.name} may share an element between instances of the loop over "
            f"{', '.join(_names(region))}: {'; '.join(doubts)}"
        )
    point: Point = answer.counterexample
    names = [name for step in (*outer, region) for name in _names(step)]

    def touch(access: Access, own: tuple[str, ...]) -> Touch:
        values = (point[variable] for variable in (*around, *own))
        cell = tuple(point[variable] for variable in element)
        return Touch(tuple(zip(names, values, strict=True)), access.verb, access.memory.name, cell)

    context = tuple((name, point[variable]) for variable, name in system.known_parameters().items())
    return Proof.disproved(Conflict(touch(a, first), touch(b, second), context))


def _place(
    system: ConstraintSystem, access: Access, depth: int, side: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Constrain one side; gives the variables of the region's coordinates and of the element."""
    own = [system.coordinates(step, side) for step in access.path[depth:]]
    for guard in access.guards:
        system.hold(guard, side)
    return own[0], system.element(access.subscripts, access.memory.shape, side)


def _names(step: Enclosing) -> tuple[str, ...]:
    return tuple(index.name or str(index) for index in step.loop.indices)
