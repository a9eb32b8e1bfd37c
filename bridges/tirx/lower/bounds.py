"""Bounds of memory accesses: what is proved from known ranges, and the test of what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.scalars import int64, linear
from tvm_tile.ir.index import IndexExpr, as_linear, interval

__all__ = ["Check", "inside_of", "unproved"]

#: Past every array.
_FAR = 1 << 60


@dataclass(frozen=True)
class Check:
    """A position that lies in ``[0, extent)`` for a memory access to be in bounds."""

    position: IndexExpr
    extent: int


def unproved(checks: tuple[Check, ...], builder: Builder) -> tuple[Check, ...]:
    """The checks that the known ranges of their positions do not decide."""
    left: dict[Check, None] = {}
    for check in checks:
        low, high = interval(check.position, builder.bounds)
        if low is None or high is None or low < 0 or high >= check.extent:
            left[check] = None
    return tuple(left)


def inside_of(checks: tuple[Check, ...], builder: Builder) -> Any | None:
    """The run-time test of the checks that are not proved, or ``None`` if all are.

    A number read from memory is clamped first: what is added to it must not wrap.
    """
    test: Any | None = None
    for check in unproved(checks, builder):
        terms, constant = as_linear(check.position)
        known = {atom: f for atom, f in terms.items() if None not in interval(atom, builder.bounds)}
        start = builder.index(linear({atom: f for atom, f in terms.items() if atom not in known}, 0))
        offset = builder.index(linear(known, constant))
        if len(known) == len(terms):
            position = offset
        else:
            position = tirx.min(tirx.max(start, int64(-_FAR)), int64(_FAR)) + offset
        both = tirx.And(tirx.LE(int64(0), position), tirx.LT(position, int64(check.extent)))
        test = both if test is None else tirx.And(test, both)
    return test
