"""Objects of the user as text for error messages, and as sequences, whatever they are."""

from __future__ import annotations

from typing import Any

__all__ = ["counted", "described", "items_of", "message_of"]


def described(x: Any, width: int = 60) -> str:
    """The start of ``repr(x)``, or the type's name where there is none.

    A ``__repr__`` may raise; that of an int with thousands of digits does.
    """
    if hasattr(type(x), "_describe"):
        return str(x._describe())
    try:
        return repr(x)[:width]
    except Exception:  # Whatever the user's own text raises; the message is about something else.
        if isinstance(x, int):
            return f"an int of {x.bit_length()} bits"
        return f"<{type(x).__name__} without text>"


def counted(number: int, one: str, several: str) -> str:
    """A number with its noun: ``1 axis``, ``2 axes``."""
    return f"{number} {one if number == 1 else several}"


def items_of(x: Any) -> tuple[Any, ...] | None:
    """The elements of a sequence argument; ``None`` where it is no sequence.

    Text is none. An array without axes has ``__iter__`` but no elements.
    """
    if isinstance(x, (str, bytes)) or hasattr(type(x), "_describe") or getattr(x, "ndim", 1) == 0:
        return None
    return tuple(x) if hasattr(x, "__iter__") else None


def message_of(error: BaseException) -> str:
    """``str(error)``, or a note where that raises."""
    try:
        return str(error)
    except Exception:  # As above.
        return "(its message cannot be shown)"
