"""Source text of functions: from files and notebooks by way of ``linecache``, or given as text."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType

from tvm_tile.errors import CaptureError
from tvm_tile.ir.span import Span

__all__ = ["Definition", "SourceNotFoundError", "definition_in_text", "definition_of", "parse_text"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class SourceNotFoundError(Exception):
    """The text of a function is not to be had; the message says why."""


@dataclass(frozen=True)
class Definition:
    """The syntax tree of one function.

    Attributes
    ----------
    file
        Under which :mod:`linecache` knows the text.
    node
        The definition; its positions are those of the file.
    path
        Names of the definitions around it, outermost first, and its own.
    class_name
        The class it is directly defined in, if any; private names mangle by it.
    """

    file: str
    node: FunctionNode
    path: tuple[str, ...]
    class_name: str | None = None

    @property
    def first_line(self) -> int:
        """First line, decorators included, as code objects count."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        return min([self.node.lineno, *(d.lineno for d in decorators)])

    @property
    def span(self) -> Span:
        """The line of the ``def``."""
        return Span(
            self.file, self.node.lineno, self.node.col_offset + 1, self.node.lineno, self.node.col_offset + 4
        )


# The parsed definitions of a file, with the text that they were parsed from.
_parsed: dict[str, tuple[str, list[Definition]]] = {}


def definition_of(function: FunctionType) -> Definition:
    """The definition of a function by its file and line.

    Raises
    ------
    SourceNotFoundError
        There is no text, or it does not hold the function (any more).
    """
    code = function.__code__
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    if not lines:
        raise SourceNotFoundError(f"there is no source text for {file!r}")
    try:
        definitions = _definitions(file, "".join(lines))
    except SyntaxError:
        # A cell that is no plain Python as a whole: the lines of this function alone.
        definitions = _block(file, lines, code)
    found = [d for d in definitions if d.first_line == code.co_firstlineno and _matches(d, code)]
    if len(found) != 1:
        raise SourceNotFoundError(
            f"line {code.co_firstlineno} of {file!r} does not define {code.co_name}; has the file changed?"
            if not found
            else f"line {code.co_firstlineno} of {file!r} defines several functions"
        )
    return found[0]


def definition_in_text(function: FunctionType, text: str) -> Definition:
    """The definition of a function in a text that holds it alone, or a whole module around it.

    The text is entered in :mod:`linecache`, so that errors can show it.

    Raises
    ------
    CaptureError
        The text is no Python, or does not define the function.
    """
    code = function.__code__
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    file = f"<source {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        definitions = _definitions(file, text)
    except SyntaxError as error:
        line = error.lineno or 1
        raise CaptureError(
            f"source= is no Python: {error.msg}",
            span=Span(file, line, error.offset or 1, line, (error.offset or 1) + 1),
            suggestion="pass the text of the function as it is in its file, from its `def` or decorators on",
        ) from error
    path = tuple(part for part in function.__qualname__.split(".") if part != "<locals>")
    found = [d for d in definitions if _matches(d, code)]
    for narrower in (
        [d for d in found if d.path == path[-len(d.path) :]],
        [d for d in found if d.path == path],
        [d for d in found if d.first_line == code.co_firstlineno],
    ):
        if len(found) > 1 and narrower:
            found = narrower
    if len(found) != 1:
        lines = ", ".join(str(d.node.lineno) for d in found)
        raise CaptureError(
            f"source= defines {function.__name__} at lines {lines}"
            if found
            else f"source= does not define {function.__qualname__} with the parameters of the function",
            span=Span(file, 1, 1, 1, 2),
            suggestion="pass the text of the one function",
        )
    return found[0]


def _matches(definition: Definition, code: CodeType) -> bool:
    arguments = definition.node.args
    names = tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    count = code.co_argcount + code.co_kwonlyargcount
    return definition.path[-1] == code.co_name and names == code.co_varnames[:count]


def _definitions(file: str, text: str) -> list[Definition]:
    known = _parsed.get(file)
    if known is None or known[0] != text:
        known = (text, list(_walk(file, parse_text(text), (), None)))
        _parsed[file] = known
    return known[1]


def parse_text(text: str) -> ast.Module:
    """The syntax tree of a text, which may be indented as a whole; positions are those of the text.

    Raises
    ------
    SyntaxError
        It is no Python.
    """
    try:
        return ast.parse(text)
    except IndentationError:
        # The text of an indented function; one line more in front keeps the columns.
        tree = ast.parse(f"if 1:\n{text}")
        ast.increment_lineno(tree, -1)
        return tree


def _block(file: str, lines: list[str], code: CodeType) -> list[Definition]:
    block = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    try:
        tree = parse_text(block)
    except SyntaxError as error:
        raise SourceNotFoundError(
            f"the text of {code.co_name} in {file!r} is no Python: {error.msg}"
        ) from error
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return list(_walk(file, tree, (), None))


def _walk(file: str, node: ast.AST, path: tuple[str, ...], class_name: str | None) -> Iterator[Definition]:
    # Without recursion: an expression may have more levels than Python recurses.
    pending = [(child, path, class_name) for child in _children_reversed(node)]
    while pending:
        child, path, class_name = pending.pop()
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
            yield Definition(file, child, (*path, name), class_name)
            path, class_name = (*path, name), None
        elif isinstance(child, ast.ClassDef):
            path, class_name = (*path, child.name), child.name
        pending.extend((inner, path, class_name) for inner in _children_reversed(child))


def _children_reversed(node: ast.AST) -> list[ast.AST]:
    return list(ast.iter_child_nodes(node))[::-1]
