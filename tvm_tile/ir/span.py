"""Source positions: file, line and column of the Python expression that made an op."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

__all__ = ["Span"]

#: Characters of a source line that an excerpt shows.
_LONGEST = 200


@dataclass(frozen=True)
class Span:
    """A half-open range of source text.

    Attributes
    ----------
    file
        Path, or the name under which :mod:`linecache` knows the text (notebook cells).
    line, column
        Start; lines count from 1, columns (in characters) from 1.
    end_line, end_column
        End, exclusive in the column.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The first source line of the range with carets below it, or ``""`` if it is not readable."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text:
            return ""
        last = self.end_column if self.end_line == self.line else len(text) + 1
        width = max(1, min(last, len(text) + 1) - self.column)
        gutter = f"{self.line:>5} | "
        start = self.column - 1
        if len(text) > _LONGEST:
            # A part of the line, with the place in it.
            first = max(0, min(start - _LONGEST // 4, len(text) - _LONGEST))
            text, start = text[first : first + _LONGEST], start - first
            width = max(1, min(width, _LONGEST - start))
        # Tabs keep their width in the caret line, so that the caret stays below its character.
        lead = "".join("\t" if c == "\t" else " " for c in text[:start])
        return f"{gutter}{text}\n{' ' * (len(gutter) - 2)}| {lead}{'^' * width}"
