"""Access relations: which elements each access touches, at which loop coordinates, when.

An access is stated over the coordinates of the loops around it. What its footprint depends on besides
them (a mask, a branch on data, a loaded index) makes the statement an upper bound, and the access keeps
the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tvm_tile.ir.dtypes import is_bool, is_integer, is_narrowing
from tvm_tile.ir.index import (
    BoolConst,
    IndexConst,
    IndexExpr,
    IndexVar,
    Predicate,
    compare,
    conjunction,
    disjunction,
    negation,
    substitute_index,
    substitute_predicate,
)
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    Atomic,
    Broadcast,
    Cast,
    Elementwise,
    Extern,
    FromIndex,
    Full,
    Insert,
    Load,
    Op,
    Point,
    Slice,
    Store,
    Subscript,
)
from tvm_tile.ir.reductions import TREES
from tvm_tile.ir.regions import Block, Domain, If, Lambda, Loop, Program, Reduce, Statement
from tvm_tile.ir.values import Memory, Value

__all__ = ["Access", "Enclosing", "accesses_of"]

_COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}


@dataclass(frozen=True)
class Enclosing:
    """A loop around an access.

    Attributes
    ----------
    loop
        The region.
    domain
        Its domain, with computed scalars replaced by the index expressions that define them.
    visible
        Values known where it is entered: all its instances see the same ones.
    """

    loop: Loop
    domain: Domain
    visible: frozenset[Value]


@dataclass(frozen=True)
class Access:
    """One load or store with the conditions under which it runs.

    Attributes
    ----------
    op
        What touches it.
    memory
        The memory it touches; for an insert, its operand as one.
    writes
        Whether it writes there.
    subscripts
        Subscripts of its view, with computed scalars replaced by their index expressions.
    path
        Loops around it, outermost first.
    guards
        Branch conditions that hold where it runs, as far as they are index predicates.
    doubts
        Why it may touch less than this says; empty if the footprint is exact, but for index expressions
        that are not affine.
    """

    op: Op
    memory: Memory
    writes: bool
    subscripts: tuple[Subscript, ...]
    path: tuple[Enclosing, ...] = ()
    guards: tuple[Predicate, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """``"reads"``, ``"writes"`` or ``"updates"``."""
        if isinstance(self.op, Atomic):
            return "updates"
        return "writes" if self.writes else "reads"


def accesses_of(program: Program) -> tuple[Access, ...]:
    """Every access of a program in program order: loads, stores, atomics, opaque calls, and inserts."""
    collector = _Collector(program)
    collector.block(program.body, _Place())
    return tuple(collector.found)


@dataclass(frozen=True)
class _Place:
    """Where the collector stands."""

    path: tuple[Enclosing, ...] = ()
    guards: tuple[Predicate, ...] = ()
    doubts: tuple[str, ...] = ()


class _Collector:
    def __init__(self, program: Program) -> None:
        self.found: list[Access] = []
        self._visible: set[Value] = set(program.scalars)
        # Scalars that are index expressions or index predicates of other values.
        self._indices: dict[Value, IndexExpr] = {}
        self._predicates: dict[Value, Predicate] = {}

    def block(self, block: Block, place: _Place) -> None:
        for statement in block.statements:
            self._statement(statement, place)
            self._visible.update(statement.results)

    def _statement(self, statement: Statement, place: _Place) -> None:
        match statement:
            case Load() | Store() | Atomic():
                self._access(statement, place)
            case Extern():
                self._call(statement, place)
            case Insert(operand=operand, subscripts=subscripts):
                tile = Memory(_name(operand), operand.shape, operand.dtype, scope="tile")
                self._found(statement, tile, True, subscripts, place, place.doubts)
            case MergeReduce(merge=merge) | Scan(merge=merge):
                for part in (merge.identity, merge.lift, merge.combine):
                    if part is not None:
                        self._lambda(part, place)
            case Op():
                self._define(statement)
            case If(condition, then, orelse):
                predicate = self._predicates.get(condition)
                if predicate is None:
                    doubt = f"whether the branch on {_name(condition)} is taken depends on data"
                    held = denied = replace(place, doubts=(*place.doubts, doubt))
                else:
                    held = replace(place, guards=(*place.guards, predicate))
                    denied = replace(place, guards=(*place.guards, negation(predicate)))
                self.block(then, held)
                self.block(orelse, denied)
            case Loop():
                self._loop(statement, place)

    def _loop(self, loop: Loop, place: _Place) -> None:
        step = Enclosing(loop, _resolved_domain(loop.domain, self._indices), frozenset(self._visible))
        inside = replace(place, path=(*place.path, step))
        self._visible.update((*loop.indices, *loop.args))
        merge = loop.merge if isinstance(loop, Reduce) else None
        lifted = merge is not None and merge.lift is not None and _is_tree(loop)
        doubt = "the merge's lift may run in place of the loop's body"
        self.block(loop.body, replace(inside, doubts=(*inside.doubts, doubt)) if lifted else inside)
        if merge is None:
            return
        self._lambda(merge.identity, place)
        self._lambda(merge.combine, inside)
        if merge.lift is not None:
            self._indices.update(
                {param: IndexVar(index) for param, index in zip(merge.lift.params, loop.indices, strict=True)}
            )
            self._lambda(merge.lift, inside)

    def _lambda(self, function: Lambda, place: _Place) -> None:
        doubt = "how often a merge's functions run is left open"
        self.block(function.body, replace(place, doubts=(*place.doubts, doubt)))

    def _access(self, op: Load | Store | Atomic, place: _Place) -> None:
        doubts = place.doubts
        if op.mask is not None:
            doubts = (*doubts, f"the mask {_name(op.mask)} of the access to {op.view.memory.name} is data")
        self._found(op, op.view.memory, not isinstance(op, Load), op.view.subscripts, place, doubts)

    def _call(self, op: Extern, place: _Place) -> None:
        doubts = (*place.doubts, f"what the opaque function {op.symbol} touches is not known")
        for memory in dict.fromkeys((*op.reads, *op.writes)):
            everything = tuple(Slice(IndexConst(0), extent) for extent in memory.shape)
            self._found(op, memory, memory in op.writes, everything, place, doubts)

    def _found(
        self,
        op: Op,
        memory: Memory,
        writes: bool,
        subscripts: tuple[Subscript, ...],
        place: _Place,
        doubts: tuple[str, ...],
    ) -> None:
        resolved = tuple(_resolved_subscript(s, self._indices) for s in subscripts)
        self.found.append(Access(op, memory, writes, resolved, place.path, place.guards, doubts))

    def _define(self, op: Op) -> None:
        """Note a scalar that is an exact function of indices."""
        match op:
            case FromIndex(result, index):
                self._indices[result] = substitute_index(index, self._indices)
            case Full(result, value) if result.shape == ():
                if is_integer(result.dtype) and isinstance(value.value, int):
                    self._indices[result] = IndexConst(int(value.value))
                elif is_bool(result.dtype):
                    self._predicates[result] = BoolConst(bool(value.value))
            case Cast(result, operand) if operand.shape == () and is_integer(operand.dtype):
                # A cast that may wrap is no function that index expressions have.
                if is_integer(result.dtype) and not is_narrowing(operand.dtype, result.dtype):
                    self._indices[result] = self._index(operand)
            case Broadcast(result, operand) if result.shape == ():
                if operand in self._predicates:
                    self._predicates[result] = self._predicates[operand]
                elif is_integer(result.dtype):
                    self._indices[result] = self._index(operand)
            case Elementwise(result, fn, operands) if result.shape == () and is_bool(result.dtype):
                self._predicate(result, fn, operands)

    def _predicate(self, result: Value, fn: str, operands: tuple[Value, ...]) -> None:
        if fn in _COMPARISONS and all(is_integer(v.dtype) for v in operands):
            left, right = (self._index(v) for v in operands)
            self._predicates[result] = compare(_COMPARISONS[fn], left, right)
            return
        known = [self._predicates[v] for v in operands if v in self._predicates]
        if len(known) < len(operands):
            return
        match fn, known:
            case "and", [a, b]:
                self._predicates[result] = conjunction(a, b)
            case "or", [a, b]:
                self._predicates[result] = disjunction(a, b)
            case "invert", [a]:
                self._predicates[result] = negation(a)

    def _index(self, value: Value) -> IndexExpr:
        return self._indices.get(value, IndexVar(value))


def _is_tree(loop: Loop) -> bool:
    return isinstance(loop, Reduce) and loop.policy in TREES


def _name(value: Value) -> str:
    return value.name or str(value)


def _resolved_subscript(subscript: Subscript, known: Mapping[Value, IndexExpr]) -> Subscript:
    if isinstance(subscript, Point):
        return Point(substitute_index(subscript.index, known))
    return replace(subscript, start=substitute_index(subscript.start, known))


def _resolved_domain(domain: Domain, known: Mapping[Value, IndexExpr]) -> Domain:
    extents = tuple(substitute_index(extent, known) for extent in domain.extents)
    where = None if domain.where is None else substitute_predicate(domain.where, known)
    return Domain(extents, where)
