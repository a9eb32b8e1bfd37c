"""Conflicts between instances of a parallel region: two touches of one element, one of them a write."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Conflict", "Touch", "coordinates"]


def coordinates(instance: tuple[tuple[str, int], ...]) -> str:
    """Named coordinates as text: ``(i=3, j=0)``."""
    return f"({', '.join(f'{name}={value}' for name, value in instance)})"


@dataclass(frozen=True)
class Touch:
    """One instance reads or writes one element.

    Attributes
    ----------
    instance
        Names and values of the loop coordinates, outermost first.
    verb
        ``"reads"`` or ``"writes"``.
    memory
        Name of the memory.
    element
        Coordinates in the memory.
    """

    instance: tuple[tuple[str, int], ...]
    verb: str
    memory: str
    element: tuple[int, ...]

    def __str__(self) -> str:
        element = f"{self.memory}[{', '.join(map(str, self.element))}]"
        return f"instance {coordinates(self.instance)} {self.verb} {element}"


@dataclass(frozen=True)
class Conflict:
    """Two touches of one element by distinct instances of one entry of a parallel region.

    Attributes
    ----------
    context
        Values that both instances share, such as run-time scalars; often empty.
    """

    first: Touch
    second: Touch
    context: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.context)
        return f"{self.first}; {self.second}" + (f" with {given}" if given else "")
