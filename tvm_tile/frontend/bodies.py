"""Static facts about the bodies of ``for`` and ``if`` statements: names, jumps and deletions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tvm_tile.frontend.positions import span_of_columns
from tvm_tile.ir.span import Span

__all__ = ["Body", "Jump", "Place", "branch_body", "first_assignments", "loop_body", "stored_names"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Jump:
    """A statement that a captured body cannot have.

    Attributes
    ----------
    keyword
        How it is written, such as ``break``.
    """

    keyword: str
    line: int
    start: int
    end_line: int
    end: int

    @classmethod
    def at(cls, keyword: str, node: ast.stmt | ast.expr) -> Jump:
        """At the position of a node, the body of a loop left out."""
        last = node.test if isinstance(node, ast.While) else node
        end_line, end = last.end_lineno or node.lineno, last.end_col_offset or node.col_offset
        return cls(keyword, node.lineno, node.col_offset, end_line, end)

    @property
    def remedy(self) -> str:
        """What to write in place of it in the body of a region loop."""
        match self.keyword:
            case "continue":
                return (
                    "put the rest of the body under an `if` of the opposite condition "
                    "(or leave points out with where= of the loop, if it is one on indices)"
                )
            case "break":
                return (
                    'carry a flag: done = tt.zeros((), "bool") before the loop, done = done | condition in '
                    "it, and the rest of the body under `if ~done:` (where= of the loop leaves indices out)"
                )
            case "return":
                return (
                    "store it to a tensor parameter (out[i] = ...); a helper assigns it to a name that has a "
                    "tile before the loop, and returns that after the loop"
                )
            case "yield":
                return "make a plain function of the generator, which returns tiles or stores them"
            case "while":
                return (
                    "loop with tt.serial and branch with `if`, or move the Python loop into a helper function"
                )
            case "else of a loop":
                return "put the statements after the loop"
        return "assign a local name before the loop and in it"

    def span(self, file: str) -> Span:
        """Its place in a file."""
        return span_of_columns(file, self.line, self.start, self.end_line, self.end)


@dataclass(frozen=True)
class Place:
    """Where a rewritten function stands.

    Attributes
    ----------
    file
        File of its source.
    outside
        Names that it takes from the functions around it.
    """

    file: str
    outside: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Body:
    """Facts about one body, or about the two arms of a branch together.

    Attributes
    ----------
    line
        Of the statement.
    names
        Names that it assigns, loop variables left out, in the order of first assignment in the function.
    targets
        The loop variables.
    target_count
        How many the loop variables are, if the target is a plain tuple; 1 for a name; ``None`` if unknown.
    local
        Names that it uses as variables of inner loops only.
    first_line
        Where it first assigns each name.
    jumps
        Statements that only a Python body can have.
    deletions
        ``del`` of names.
    """

    line: int
    names: tuple[str, ...]
    targets: tuple[str, ...] = ()
    target_count: int | None = None
    local: frozenset[str] = frozenset()
    first_line: dict[str, int] = field(default_factory=dict)
    jumps: tuple[Jump, ...] = ()
    deletions: dict[str, Jump] = field(default_factory=dict)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Children that run in the same scope as the node, in source order."""
    if isinstance(node, _FUNCTIONS):
        yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
        if not isinstance(node, ast.Lambda):
            yield from node.decorator_list
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        # The value is evaluated before the target is stored.
        if node.value is not None:
            yield node.value
        yield from node.targets if isinstance(node, ast.Assign) else (node.target,)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from (node.iter, node.target, *node.body, *node.orelse)
    else:
        yield from ast.iter_child_nodes(node)


def _stores(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Names that a subtree stores in the scope it runs in, in source order."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name, node
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, node
        case ast.alias(name=name, asname=asname):
            yield asname or name.split(".")[0], node
        case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name, node
        case ast.MatchMapping(rest=str(name)):
            yield name, node
    if isinstance(node, _COMPREHENSIONS):
        # Its own variables stay inside; only `:=` stores outside of it.
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                yield inner.target.id, inner
        return
    for child in _children(node):
        yield from _stores(child)


def stored_names(nodes: list[ast.stmt]) -> dict[str, int]:
    """Names that statements store, with the line of the first time."""
    found: dict[str, int] = {}
    for node in nodes:
        for name, where in _stores(node):
            found.setdefault(name, getattr(where, "lineno", getattr(node, "lineno", 0)))
    return found


def first_assignments(function: ast.FunctionDef | ast.Lambda) -> dict[str, int]:
    """The place of each local name in the order of first assignment; parameters come first."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = dict.fromkeys(p.arg for p in parameters)
    if isinstance(function, ast.FunctionDef):
        names |= dict.fromkeys(stored_names(function.body))
    return {name: place for place, name in enumerate(names)}


def _jumps(
    nodes: list[ast.stmt], outer: frozenset[str], *, region: bool, inner_loop: bool = False
) -> Iterator[Jump]:
    """Statements that a region body (or a program branch) cannot have."""
    for node in nodes:
        match node:
            case ast.Break() if not inner_loop:
                yield Jump.at("break", node)
            case ast.Continue() if not inner_loop:
                yield Jump.at("continue", node)
            case ast.Return():
                yield Jump.at("return", node)
            case ast.While() if region:
                yield Jump.at("while", node)
        for expression in _suspensions(node):
            yield Jump.at("yield", expression)
        for name, where in _stores_here(node):
            if name in outer:
                yield Jump.at(f"assignment to global or nonlocal {name!r}", where)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        loops = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        for block in _blocks(node):
            # A break in the `else` of a loop belongs to the loop around it.
            inside = inner_loop or (loops and block is getattr(node, "body", None))
            yield from _jumps(block, outer, region=region, inner_loop=inside)


def _suspensions(node: ast.stmt) -> Iterator[ast.expr]:
    """``yield`` in the expressions of a statement itself; what follows it would not be captured."""
    pending: list[ast.AST] = [node] if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else []
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, (ast.Yield, ast.YieldFrom)):
                yield child
            if isinstance(child, ast.expr) and not isinstance(child, ast.Lambda):
                pending.append(child)


def _stores_here(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Stores of a statement itself, not of the statements in its blocks."""
    nested = {id(inner) for block in _blocks(node) for statement in block for inner in ast.walk(statement)}
    for name, where in _stores(node):
        if id(where) not in nested:
            yield name, node


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for name in ("handlers", "cases"):
        for part in getattr(node, name, ()):
            yield part.body


def _deletions(nodes: list[ast.stmt]) -> dict[str, Jump]:
    found: dict[str, Jump] = {}
    for node in nodes:
        if isinstance(node, ast.Delete):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Del):
                        found.setdefault(name.id, Jump.at("del", node))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for block in _blocks(node):
                found = _deletions(block) | found
    return found


def _only_inner_targets(nodes: list[ast.stmt]) -> frozenset[str]:
    """Names that are variables of inner ``for`` loops and read only in the bodies of those."""
    targets: set[str] = set()
    other: set[str] = set()

    def visit(node: ast.AST, bound: frozenset[str]) -> None:
        if isinstance(node, ast.For):
            visit(node.iter, bound)
            names = {
                n.id
                for n in ast.walk(node.target)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            targets.update(names)
            for statement in node.body:
                visit(statement, bound | names)
            for statement in node.orelse:
                visit(statement, bound)
            return
        if isinstance(node, ast.Name) and (not isinstance(node.ctx, ast.Load) or node.id not in bound):
            other.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child, bound)

    for node in nodes:
        visit(node, frozenset())
    return frozenset(targets - other)


def _ordered(
    names: dict[str, int], order: dict[str, int], leave: frozenset[str] | set[str]
) -> tuple[str, ...]:
    kept = [name for name in names if name not in leave]
    return tuple(sorted(kept, key=lambda name: order.get(name, len(order))))


def loop_body(node: ast.For, order: dict[str, int], outer: frozenset[str]) -> Body:
    """Facts about a loop's body.

    Parameters
    ----------
    order
        From :func:`first_assignments` of the function.
    outer
        Names that the function declares ``global`` or ``nonlocal``.
    """
    targets = [
        n.id for n in ast.walk(node.target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    stored = stored_names(node.body)
    jumps = list(_jumps(node.body, outer, region=True))
    if node.orelse:
        jumps.append(Jump.at("else of a loop", node.orelse[0]))
    count: int | None = 1 if isinstance(node.target, ast.Name) else None
    if isinstance(node.target, (ast.Tuple, ast.List)) and not any(
        isinstance(e, ast.Starred) for e in node.target.elts
    ):
        count = len(node.target.elts)
    return Body(
        line=node.lineno,
        names=_ordered(stored, order, {*targets, *outer}),
        targets=tuple(t for t in dict.fromkeys(targets) if t not in outer),
        target_count=count,
        local=_only_inner_targets(node.body),
        first_line=stored,
        jumps=tuple(jumps),
        deletions=_deletions(node.body),
    )


def branch_body(node: ast.If, order: dict[str, int], outer: frozenset[str]) -> Body:
    """Facts about the arms of a branch; parameters are those of :func:`loop_body`."""
    arms = [*node.body, *node.orelse]
    stored = stored_names(arms)
    return Body(
        line=node.lineno,
        names=_ordered(stored, order, outer),
        local=_only_inner_targets(arms),
        first_line=stored,
        jumps=tuple(_jumps(arms, outer, region=False)),
        deletions=_deletions(arms),
    )
