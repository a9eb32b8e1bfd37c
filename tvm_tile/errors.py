"""The error tree. Every error names the thing, shows its source line and suggests one remedy.

All public errors derive from :class:`TileError` and carry four fields: ``span`` (where in the
user's source), ``obligation`` (the name of the rule that failed), ``counterexample`` (a concrete
point that shows the failure, where there is one) and ``suggestion`` (one thing to try).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_tile.ir.span import Span

__all__ = [
    "ArgumentError",
    "CaptureError",
    "IllegalError",
    "OperandError",
    "TileError",
    "UnknownError",
    "UnsupportedError",
]


class TileError(Exception):
    """Base of all errors of the package.

    Parameters
    ----------
    message
        What is wrong, with the names and the values involved.
    span
        Where in the user's source; shown as an excerpt with a caret.
    obligation
        Name of the rule that is broken, such as ``"noninterference"``.
    counterexample
        A concrete point that shows the fault.
    suggestion
        One thing to try instead.
    """

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        obligation: str | None = None,
        counterexample: Any = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.obligation = obligation
        self.counterexample = counterexample
        self.suggestion = suggestion

    def __str__(self) -> str:
        lines = [self.message if self.span is None else f"{self.span}: {self.message}"]
        if self.span is not None:
            excerpt = self.span.excerpt()
            if excerpt:
                lines.append(excerpt)
        if self.obligation is not None:
            lines.append(f"  obligation: {self.obligation}")
        if self.counterexample is not None:
            lines.append(f"  counterexample: {self.counterexample}")
        if self.suggestion is not None:
            lines.append(f"  try: {self.suggestion}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the fields when an error crosses a process boundary."""
        return (_rebuild, (type(self), self.message, self.__dict__))


def _rebuild(kind: type[TileError], message: str, state: dict[str, Any]) -> TileError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class CaptureError(TileError):
    """The Python source is not a tile program."""


class IllegalError(TileError):
    """An obligation is disproved."""


class UnknownError(TileError):
    """An obligation could not be decided within its budget."""


class UnsupportedError(TileError):
    """Legal, but this target or bridge has no emitter for it."""


class ArgumentError(TileError):
    """A call's arrays do not fit: shape, dtype, rank, device, layout, writability or aliasing."""


class OperandError(CaptureError, ArgumentError):
    """The operands of one operation do not fit each other in shape or dtype.

    Capture runs once for given arguments, so either the source or the arguments may be at fault;
    the error is an instance of both :class:`CaptureError` and :class:`ArgumentError`.
    """
