"""Which values depend on given values, through data, subscripts, branch conditions and trip counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tvm_tile.ir.index import free_values
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Op
from tvm_tile.ir.regions import Block, Domain, If, Loop, Merge, Reduce, Statement
from tvm_tile.ir.structure import operands_of, walk
from tvm_tile.ir.values import Value

__all__ = ["dependent_values", "domain_values"]


def domain_values(domain: Domain) -> frozenset[Value]:
    """Values that a region's extents and predicate read."""
    found: frozenset[Value] = frozenset()
    for extent in domain.extents:
        found |= free_values(extent)
    return found if domain.where is None else found | free_values(domain.where)


def dependent_values(
    body: Block, seeds: Iterable[Value], source: Callable[[Op], bool] = lambda op: False
) -> frozenset[Value]:
    """The seeds, and all values in ``body`` that depend on one of them or on the result of a source op.

    Dependence is over-approximated, never missed: a branch on a dependent condition makes all its
    results dependent, and so does a loop whose number of turns depends.

    Parameters
    ----------
    body
        The statements to look through, nested regions included.
    seeds
        Values that are dependent to begin with.
    source
        Ops whose results are dependent whatever their operands are, such as loads.
    """
    found = set(seeds)
    before = -1
    # Carried states lead back to the start of their loop, so one pass is not enough; the set only grows.
    while len(found) != before:
        before = len(found)
        _mark_block(body, found, source)
    return frozenset(found)


def _mark_block(block: Block, found: set[Value], source: Callable[[Op], bool]) -> None:
    for statement in block.statements:
        _mark(statement, found, source)


def _mark(statement: Statement, found: set[Value], source: Callable[[Op], bool]) -> None:
    match statement:
        case If(condition, then, orelse, then_yields, else_yields, results):
            _mark_block(then, found, source)
            _mark_block(orelse, found, source)
            for k, result in enumerate(results):
                ends = (condition, *then_yields[k : k + 1], *else_yields[k : k + 1])
                if not found.isdisjoint(ends):
                    found.add(result)
        case Loop(domain=domain, indices=indices, body=body, inits=inits, args=args):
            turns_depend = not found.isdisjoint(domain_values(domain) - set(indices))
            if turns_depend:
                found.update(indices)
            for init, arg in zip(inits, args, strict=False):
                if init in found:
                    found.add(arg)
            _mark_block(body, found, source)
            everything = turns_depend or not found.isdisjoint(domain_values(domain))
            if isinstance(statement, Reduce) and statement.merge is not None:
                everything = everything or _merge_depends(statement.merge, found, source)
            for k, result in enumerate(statement.results):
                ends = (*inits[k : k + 1], *args[k : k + 1], *statement.yields[k : k + 1])
                if everything or not found.isdisjoint(ends):
                    found.update((*args[k : k + 1], result))
        case MergeReduce(merge=merge) | Scan(merge=merge):
            reads = not found.isdisjoint(operands_of(statement))
            if reads or _merge_depends(merge, found, source):
                found.update(statement.results)
        case _:
            if not found.isdisjoint(operands_of(statement)) or source(statement):
                found.update(statement.results)


def _merge_depends(merge: Merge, found: set[Value], source: Callable[[Op], bool]) -> bool:
    for part in (merge.identity, merge.lift, merge.combine):
        if part is None:
            continue
        _mark_block(part.body, found, source)
        inside = {value for statement in walk(part.body) for value in statement.results}
        if not found.isdisjoint((*part.yields, *inside)):
            return True
    return False
