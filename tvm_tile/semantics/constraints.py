"""Index expressions as Presburger constraints over two instances of one region.

Loop coordinates and integer run-time scalars become integer variables. Products of variables, divisions
by variables and scalars that are data become fresh variables with nothing known but their range; the
system is then an upper bound, and keeps the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_tile.ir.dtypes import is_integer, numpy_dtype
from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexExpr,
    IndexVar,
    Not,
    Or,
    Predicate,
    as_linear,
    constant_of,
    free_values,
)
from tvm_tile.ir.ops import Point, Subscript
from tvm_tile.ir.values import Value
from tvm_tile.semantics.footprints import Enclosing

__all__ = ["ConstraintSystem"]

#: Tells apart the two instances of a question: what one side computes the other need not.
Side = str


class ConstraintSystem:
    """A conjunction of constraints, written as isl text.

    Parameters
    ----------
    shared
        Values that are the same on all sides.
    parameters
        Of these, run-time scalars: any value of their dtype may be passed.
    """

    def __init__(self, shared: frozenset[Value], parameters: Sequence[Value]) -> None:
        self.doubts: list[str] = []
        self._shared = shared
        self._parameters = frozenset(parameters)
        self._variables: list[str] = []
        self._constraints: list[str] = []
        self._named: dict[tuple[IndexExpr, Side | None], str] = {}

    def text(self) -> str:
        """The set of the system's solutions, in isl's notation."""
        return f"{{ [{', '.join(self._variables)}] : {' and '.join(self._constraints) or 'true'} }}"

    def require(self, constraint: str) -> None:
        """Add a constraint, written with names that this system gave."""
        self._constraints.append(f"({constraint})")

    def hold(self, predicate: Predicate, side: Side) -> None:
        """Require a predicate."""
        self.require(self._predicate(predicate, side))

    def coordinates(self, step: Enclosing, side: Side) -> tuple[str, ...]:
        """Variables for a loop's coordinates, within its domain."""
        names = []
        for index, extent in zip(step.loop.indices, step.domain.extents, strict=True):
            name = self._variable()
            self._named[self._key(IndexVar(index), side)] = name
            self.require(f"0 <= {name} < {self._affine(extent, side)}")
            names.append(name)
        if step.domain.where is not None:
            self.hold(step.domain.where, side)
        return tuple(names)

    def element(self, subscripts: Sequence[Subscript], shape: tuple[int, ...], side: Side) -> tuple[str, ...]:
        """Variables for an element that a view covers; lanes out of bounds cover none."""
        names = []
        for subscript, extent in zip(subscripts, shape, strict=True):
            name = self._variable()
            names.append(name)
            self.require(f"0 <= {name} < {extent}")
            if isinstance(subscript, Point):
                self.require(f"{name} = {self._affine(subscript.index, side)}")
                continue
            lane = self._variable()
            self.require(f"0 <= {lane} < {subscript.size}")
            self.require(f"{name} = {self._affine(subscript.start, side)} + {subscript.step} * {lane}")
        return tuple(names)

    def known_parameters(self) -> dict[str, str]:
        """From variables to names of the run-time scalars that the system mentions."""
        return {
            variable: atom.value.name or str(atom.value)
            for (atom, _), variable in self._named.items()
            if isinstance(atom, IndexVar) and atom.value in self._parameters
        }

    def _variable(self) -> str:
        self._variables.append(f"v{len(self._variables)}")
        return self._variables[-1]

    def _key(self, expression: IndexExpr, side: Side) -> tuple[IndexExpr, Side | None]:
        return expression, None if free_values(expression) <= self._shared else side

    def _affine(self, expression: IndexExpr, side: Side) -> str:
        terms, constant = as_linear(expression)
        parts = [f"{factor} * {self._atom(atom, side)}" for atom, factor in terms.items()]
        return f"({' + '.join([*parts, str(constant)])})"

    def _atom(self, atom: IndexExpr, side: Side) -> str:
        match atom:
            case IndexBinary("min" | "max" as op, a, b):
                return f"{op}({self._affine(a, side)}, {self._affine(b, side)})"
            case IndexBinary("//" | "%" as op, a, b):
                divisor = constant_of(b)
                if divisor is not None:
                    return self._division(op, self._affine(a, side), divisor)
        return self._opaque(atom, side)

    def _division(self, op: str, dividend: str, divisor: int) -> str:
        if divisor == 0:
            return "0"
        sign = "" if divisor > 0 else "-1 * "
        quotient = f"floor(({sign}{dividend}) / {abs(divisor)})"
        return quotient if op == "//" else f"({dividend} - {divisor} * {quotient})"

    def _opaque(self, atom: IndexExpr, side: Side) -> str:
        """A variable for what is no affine function, the same wherever it has the same value."""
        key = self._key(atom, side)
        if key not in self._named:
            name = self._named[key] = self._variable()
            if isinstance(atom, IndexVar):
                dtype = atom.value.dtype
                if is_integer(dtype):
                    info = np.iinfo(numpy_dtype(dtype))
                    self.require(f"{info.min} <= {name} <= {info.max}")
                if atom.value not in self._parameters:
                    self.doubts.append(f"the index {atom.value.name or atom.value} is data")
            else:
                self.doubts.append(f"the index {atom} is not affine")
        return self._named[key]

    def _predicate(self, predicate: Predicate, side: Side) -> str:
        match predicate:
            case BoolConst(value):
                return "true" if value else "false"
            case Comparison(op, a, b):
                relation = "=" if op == "==" else op
                return f"{self._affine(a, side)} {relation} {self._affine(b, side)}"
            case And(a, b):
                return f"({self._predicate(a, side)}) and ({self._predicate(b, side)})"
            case Or(a, b):
                return f"({self._predicate(a, side)}) or ({self._predicate(b, side)})"
            case Not(a):
                return f"not ({self._predicate(a, side)})"
