"""Functions of merges put into a block of statements, with values of their own each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm_tile.bridges.tirx.lower.uses import free_values_of
from tvm_tile.ir.index import BoolConst, IndexConst, IndexVar, Predicate, compare, conjunction, negation
from tvm_tile.ir.regions import Block, Lambda, Statement
from tvm_tile.ir.structure import map_values
from tvm_tile.ir.values import TileType, Value

__all__ = ["Fresh", "all_but", "inlined"]

#: Makes a new value with a name and a type.
Fresh = Callable[[str, TileType], Value]


def inlined(
    function: Lambda, arguments: Sequence[Value], statements: list[Statement], fresh: Fresh
) -> list[Value]:
    """Append the body of a function applied to arguments; gives what it yields."""
    bound = dict(zip(function.params, arguments, strict=True))
    inner = _defined(function.body)

    def replaced(value: Value) -> Value:
        if value not in bound and value in inner:
            bound[value] = fresh(value.name, value.type)
        return bound.get(value, value)

    statements.extend(map_values(function.body, replaced).statements)
    return [replaced(value) for value in function.yields]


def _defined(block: Block) -> set[Value]:
    """Values that a block defines, at any depth."""
    found: set[Value] = set()

    def visit(value: Value) -> Value:
        found.add(value)
        return value

    map_values(block, visit)
    return found - free_values_of(block)


def all_but(indices: Sequence[Value], point: Sequence[int]) -> Predicate:
    """The predicate that leaves one point out of a domain."""
    there: Predicate = BoolConst(True)
    for index, position in zip(indices, point, strict=True):
        there = conjunction(there, compare("==", IndexVar(index), IndexConst(position)))
    return negation(there)
