"""Regions: sequence, conditional, parallel, serial, pipeline and reduce, and the program itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Never

from tvm_tile.errors import ArgumentError
from tvm_tile.ir.index import IndexExpr, Predicate
from tvm_tile.ir.ops import Op
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, Value

__all__ = [
    "Block",
    "Domain",
    "If",
    "Lambda",
    "Loop",
    "Merge",
    "Parallel",
    "Pipeline",
    "Program",
    "Reduce",
    "Serial",
    "Statement",
]


@dataclass(frozen=True)
class Block:
    """A sequence of statements."""

    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Lambda:
    """A pure function over tile values: parameters, body, yielded values."""

    params: tuple[Value, ...]
    body: Block
    yields: tuple[Value, ...]


@dataclass(frozen=True)
class Domain:
    """A finite set of integer points: a box from zero, less the points where the predicate is false.

    Points are ordered lexicographically. ``where`` reads the region's own index values.
    """

    extents: tuple[IndexExpr, ...]
    where: Predicate | None = None


@dataclass(frozen=True)
class If:
    """A program branch on a scalar ``bool``; each arm yields one value a result."""

    condition: Value
    then: Block
    orelse: Block
    then_yields: tuple[Value, ...] = ()
    else_yields: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Loop:
    """Common shape of the four region loops.

    ``indices`` are the coordinates (``int64[]``), visible in the body and in the domain's predicate.
    Carried state ``k`` starts as ``inits[k]``; the body sees it as ``args[k]`` and its next value is
    ``yields[k]``, all at once; ``results[k]`` is its value after the loop.
    """

    domain: Domain
    indices: tuple[Value, ...]
    body: Block
    inits: tuple[Value, ...] = ()
    args: tuple[Value, ...] = ()
    yields: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Parallel(Loop):
    """Independent instances, no order between them.

    A carried state here is an anchored update: every instance starts from ``inits``, and the yielded
    value must not depend on the region's indices or loads, so it is one value, computed once. With no
    active instance the results are the inits.
    """

    bind: str | None = None


@dataclass(frozen=True)
class Serial(Loop):
    """Total order; carried state is a recurrence."""


@dataclass(frozen=True)
class Pipeline(Loop):
    """The meaning of :class:`Serial`; :class:`~tvm_tile.ir.ops.Stage` marks cut the body into stages."""

    versions: int | None = None
    ii: int | None = None


@dataclass(frozen=True)
class Merge:
    """How partial states combine, with the laws it is known to obey.

    Attributes
    ----------
    combine
        From two states (left then right, flattened) to one state.
    identity
        No parameters; yields the identity state.
    lift
        From the region's coordinates to a state; ``None`` means the body run from the identity.
    provenance
        ``"derived"`` from the body's form, or ``"declared"`` by the user.
    builtin
        Names of the elementwise functions, one a state, when the merge is a known one.
    """

    combine: Lambda
    identity: Lambda
    lift: Lambda | None = None
    associative: bool = True
    commutative: bool = False
    exact: bool = False
    provenance: str = "declared"
    builtin: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Reduce(Loop):
    """Carried states are reduction states; ``policy`` says which groupings and orders are admitted.

    ``fold_left`` and ``fold_right`` apply the body as written; the tree policies need ``merge``.
    """

    policy: str = "unordered_tree"
    merge: Merge | None = None


Statement = Op | If | Loop


@dataclass(frozen=True)
class Program:
    """A specialized kernel: parameters and an ordered region tree.

    Attributes
    ----------
    params
        In call order: :class:`~tvm_tile.ir.values.Memory` for a tensor, a scalar
        :class:`~tvm_tile.ir.values.Value` for a run-time scalar.
    fma
        Whether ``a * b + c`` may be contracted to one rounding.
    """

    name: str
    params: tuple[Memory | Value, ...]
    body: Block
    fma: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def tensors(self) -> tuple[Memory, ...]:
        """The tensor parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, Memory))

    @property
    def scalars(self) -> tuple[Value, ...]:
        """The run-time scalar parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, Value))

    @property
    def reads(self) -> frozenset[Memory]:
        """Memories that some op may read."""
        from tvm_tile.ir.effects import effects_of

        return effects_of(self.body).reads

    @property
    def writes(self) -> frozenset[Memory]:
        """Memories that some op may write."""
        from tvm_tile.ir.effects import effects_of

        return effects_of(self.body).writes

    def __str__(self) -> str:
        from tvm_tile.ir.printer import print_program

        return print_program(self)

    def __call__(self, *args: Any, **options: Any) -> Never:
        """Refuse: a program is data.

        Raises
        ------
        ArgumentError
            Always.
        """
        raise ArgumentError(
            f"program {self.name} is not called",
            suggestion="tt.build(program)(...) runs it, and tt.interpret(program, ...) evaluates it",
        )

    def structural_hash(self) -> str:
        """Hex digest of the structure; names and spans do not take part."""
        from tvm_tile.ir.structure import structural_hash

        return structural_hash(self)
