"""What the verifier reports: one record a broken rule."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_tile.ir.span import Span

__all__ = ["Fault"]


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
