"""What a reduction combines, as a pure function: the values it loads and reads from outside are parameters.

The laws of a merge need to hold only for the states that contributions lead to. This function makes such
states without the memories and the values around it: see :mod:`tvm_tile.semantics.laws`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tvm_tile.ir.ops import Alloc, Atomic, Extern, Full, Load, Store
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Reduce, Statement
from tvm_tile.ir.structure import operands_of, walk
from tvm_tile.ir.values import Value

__all__ = ["Contribution", "contribution_of_body", "contribution_of_lift"]

#: Elements of one parameter up to which a contribution is run for an examination.
_LARGEST = 2**18


@dataclass(frozen=True)
class Contribution:
    """A function to a state.

    Attributes
    ----------
    function
        Its first ``states`` parameters take the identity; the others may hold any value of their type.
    coordinates
        Those of the others that are coordinates of a region, so never negative.
    seed
        The state that joins on the left, where the program fixes it.
    """

    function: Lambda
    states: int
    coordinates: tuple[Value, ...]
    seed: tuple[Full, ...] = ()


def contribution_of_body(region: Reduce, seed: tuple[Full, ...]) -> Contribution | None:
    """The body of a region, which is run from the identity; ``None`` if it has effects, or is large.

    ``seed`` is what the states start from.
    """
    body = Lambda(region.args, region.body, region.yields)
    found = _pure(body, len(region.args), region.indices)
    return None if found is None else dataclasses.replace(found, seed=seed)


def contribution_of_lift(lift: Lambda, indices: tuple[Value, ...] = ()) -> Contribution | None:
    """The lift of a merge; ``None`` if it is large. ``indices`` are those parameters that are coordinates."""
    return _pure(lift, 0, indices)


def _pure(function: Lambda, states: int, coordinates: tuple[Value, ...]) -> Contribution | None:
    statements = list(walk(function.body))
    if any(isinstance(s, (Store, Atomic, Extern, Alloc)) for s in statements):
        return None
    body = _bare(function.body)
    statements = list(walk(body))
    if any(isinstance(s, Load) for s in statements):
        return None
    inside = {*function.params}
    for s in statements:
        inside |= {*s.results, *getattr(s, "indices", ()), *getattr(s, "args", ())}
    reads = [v for s in statements for v in operands_of(s)] + [v for s in statements for v in _yields_of(s)]
    free = dict.fromkeys(v for v in (*reads, *function.yields) if v not in inside)
    params = (*function.params, *free)
    if any(prod(v.shape) > _LARGEST for v in params):
        return None
    return Contribution(Lambda(params, body, function.yields), states, coordinates)


def _yields_of(statement: Statement) -> tuple[Value, ...]:
    match statement:
        case If(then_yields=then, else_yields=orelse):
            return (*then, *orelse)
        case Loop(yields=yields):
            return yields
    return ()


def _without_loads(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for s in statements:
        match s:
            case Load():
                continue
            case If(then=then, orelse=orelse):
                kept.append(dataclasses.replace(s, then=_bare(then), orelse=_bare(orelse)))
            case Loop(body=body):
                kept.append(dataclasses.replace(s, body=_bare(body)))
            case _:
                kept.append(s)
    return tuple(kept)


def _bare(block: Block) -> Block:
    return Block(_without_loads(block.statements))
