"""What the verifier reports: one record a broken rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Value

__all__ = ["Fault", "agreement_faults", "counted"]


@dataclass(frozen=True)
class Fault:
    """One broken rule of a program.

    Attributes
    ----------
    message
        What is wrong, with the names and the values involved.
    span
        Where in the user's source, as far as it is known.
    obligation
        Name of the rule.
    suggestion
        One thing to try instead.
    """

    message: str
    span: Span | None
    obligation: str
    suggestion: str

    def __str__(self) -> str:
        where = "" if self.span is None else f"{self.span}: "
        return f"{where}{self.message} ({self.obligation}; try: {self.suggestion})"


def agreement_faults(
    what: str, given: tuple[Value, ...], wanted: tuple[Value, ...], span: Span | None
) -> Iterator[Fault]:
    """Values that flow from ``given`` to ``wanted`` have their number and types."""
    if len(given) != len(wanted):
        yield Fault(
            f"{what} {counted(given)} for {counted(wanted)} ({', '.join(map(str, wanted)) or 'none'})",
            span,
            "arity",
            "give one value each",
        )
        return
    for value, target in zip(given, wanted, strict=True):
        if value.type != target.type:
            yield Fault(
                f"{what} {value} of type {value.type} for {target} of type {target.type}",
                span,
                "type",
                f"keep the shape and dtype of {target.name or target} with a cast",
            )


def counted(values: tuple[Value, ...]) -> str:
    """The number of values, in words."""
    return f"{len(values)} value{'' if len(values) == 1 else 's'}"
