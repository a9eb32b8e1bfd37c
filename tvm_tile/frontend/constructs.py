"""The user's syntax at a place, for errors that name the construct and spell its replacement."""

from __future__ import annotations

import ast
import linecache

from tvm_tile.frontend.positions import span_of_columns
from tvm_tile.frontend.source import parse_text
from tvm_tile.ir.span import Span

__all__ = [
    "assigned_name",
    "call_at",
    "called_name",
    "in_keyword",
    "is_ours",
    "loaded_ref",
    "subscripted",
    "truth_remedy",
    "update_for",
    "value_assigned_at",
]


def _path_to(span: Span | None) -> list[ast.AST]:
    """Nodes around a place from the outermost in, the last one being the smallest that covers it."""
    if span is None:
        return []
    text = "".join(linecache.getlines(span.file))
    try:
        tree = parse_text(text)
    except (SyntaxError, ValueError):
        return []
    start, end = (span.line, span.column), (span.end_line, span.end_column)

    def covers(node: ast.AST) -> bool:
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not first <= start[0] <= end[0] <= last:
            return False
        there = span_of_columns(
            span.file,
            first,
            getattr(node, "col_offset", 0),
            last,
            getattr(node, "end_col_offset", 0),
        )
        return (there.line, there.column) <= start and end <= (there.end_line, there.end_column)

    def within(node: ast.AST) -> list[ast.AST]:
        for child in ast.iter_child_nodes(node):
            for decorator in getattr(child, "decorator_list", ()):
                # It stands before the place of what it decorates.
                if covers(decorator):
                    return [child, decorator, *within(decorator)]
            if not hasattr(child, "lineno"):
                # A clause without a place of its own, such as that of a comprehension.
                found = within(child)
                if found:
                    return [child, *found]
            elif covers(child):
                return [child, *within(child)]
        return []

    return within(tree)


def call_at(span: Span | None) -> ast.Call | None:
    """The call expression at a place, if there is one exactly there."""
    path = _path_to(span)
    return path[-1] if path and isinstance(path[-1], ast.Call) else None


def called_name(span: Span | None) -> str | None:
    """Name of the function, or of the method or module function, that is called at a place."""
    call = call_at(span)
    match call.func if call is not None else None:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def is_ours(span: Span | None) -> bool:
    """Whether the call at a place is of a function of the language, as far as its spelling tells."""
    call = call_at(span)
    return call is not None and ast.unparse(call.func).startswith(("tt.", "tvm_tile."))


def assigned_name(span: Span | None) -> str | None:
    """The name that the call at a place is assigned to, if it is one."""
    path = _path_to(span)
    call = path[-1] if path else None
    match path[-2] if len(path) > 1 else None:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.NamedExpr(target=ast.Name(id=name)):
            return name
        case ast.Tuple(elts=values) if len(path) > 2:
            match path[-3]:
                case ast.Assign(targets=[ast.Tuple(elts=names)]) if len(names) == len(values):
                    target = next(t for t, value in zip(names, values, strict=True) if value is call)
                    return target.id if isinstance(target, ast.Name) else None
    return None


def subscripted(span: Span | None) -> str | None:
    """What the expression at a place subscripts, as it is written, if it is a subscript."""
    path = _path_to(span)
    match path[-1] if path else None:
        case ast.Subscript(value=value):
            return ast.unparse(value)
    return None


def update_for(span: Span | None) -> str | None:
    """The functional update for the assignment to a part of a name that stands at a place."""
    for node in reversed(_path_to(span)):
        match node:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                pass
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=term):
                value = ast.BinOp(ast.Subscript(target.value, target.slice, ast.Load()), op, term)
            case _:
                continue
        name, place = ast.unparse(target.value), ast.unparse(_as_argument(target.slice))
        return f"{name} = tt.update({name}, {place}, {ast.unparse(value)})"
    return None


def _as_argument(subscript: ast.expr) -> ast.expr:
    """What stands between brackets, as it is written elsewhere."""
    match subscript:
        case ast.Tuple(elts=parts):
            return ast.Tuple([_as_argument(part) for part in parts], ast.Load())
        case ast.Slice(lower=lower, upper=upper, step=step):
            bounds = [ast.Constant(None) if bound is None else bound for bound in (lower, upper, step)]
            if step is None:
                bounds = bounds[1:2] if lower is None else bounds[:2]
            return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
    return subscript


def loaded_ref(span: Span | None) -> tuple[ast.expr, str] | None:
    """For ``A[idx].method(...)`` at a place: ``A``, and the same by way of ``A.at[idx]``."""
    path = _path_to(span)
    match path[-1] if path else None:
        case ast.Attribute(value=ast.Subscript(value=base, slice=place), attr=name):
            at = ast.Subscript(ast.Attribute(base, "at", ast.Load()), place, ast.Load())
            method = ast.Attribute(at, name, ast.Load())
            match path[-2] if len(path) > 1 else None:
                case ast.Call(func=func, args=args, keywords=keywords) if func is path[-1]:
                    return base, ast.unparse(ast.Call(method, args, keywords))
            return base, ast.unparse(method)
    return None


def value_assigned_at(span: Span | None) -> ast.expr | None:
    """What the assignment that a place lies in gives its target; of ``x += y`` it is ``x + y``."""
    for node in reversed(_path_to(span)):
        match node:
            case ast.Assign(value=value):
                return value
            case ast.AugAssign(target=target, op=op, value=value):
                return ast.BinOp(target, op, value)
    return None


def in_keyword(span: Span | None, keyword: str) -> bool:
    """Whether a place lies in a keyword argument of the name, outside of functions in it."""
    path = _path_to(span)
    found = [k for k, node in enumerate(path) if isinstance(node, ast.keyword) and node.arg == keyword]
    return bool(found) and not any(isinstance(node, ast.Lambda) for node in path[found[-1] :])


def truth_remedy(span: Span | None) -> tuple[str, str] | None:
    """What asks for a truth value at a place, and what to write instead; ``None`` where it is unknown."""
    path = _path_to(span)
    if not path:
        return None
    if any(isinstance(node, ast.pattern) for node in path):
        return "`match` needs", "write the cases as `if x == value:` ... `else:`"
    node = path[-1]
    remedy = _by_itself(node)
    return remedy if remedy is not None or len(path) < 2 else _by_its_parent(node, path[-2])


def _by_itself(node: ast.AST) -> tuple[str, str] | None:
    match node:
        case ast.Call(func=ast.Name(id=("max" | "min") as name), args=[a, b, *rest], keywords=[]):
            function = f"tt.{name}imum"
            return f"Python's {name} needs", f"use {_nested(function, [a, b, *rest])}"
        case ast.Call(func=ast.Name(id=("max" | "min") as name)):
            return f"Python's {name} needs", f"use tt.{name} over a tile's axes, or tt.{name}imum of two"
        case ast.Call(func=ast.Name(id="bool")):
            return "bool() needs", 'branch with a plain `if`, or convert with .astype("bool")'
        case ast.Call(func=ast.Name(id=name)):
            return f"{name} needs", "use tile operations, and select with tt.where"
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[group]):
            return _membership(left, op, group)
        case ast.Compare(left=left, ops=[_, _, *_] as ops, comparators=others):
            terms = [left, *others]
            parts = [
                f"({ast.unparse(ast.Compare(terms[k], [op], [terms[k + 1]]))})" for k, op in enumerate(ops)
            ]
            return "a chained comparison needs", f"split it: {' & '.join(parts)}"
        case ast.BoolOp():
            return _joined(node)
        case ast.UnaryOp(op=ast.Not()):
            return _negated(node)
    return None


def _by_its_parent(node: ast.AST, parent: ast.AST) -> tuple[str, str] | None:
    match parent:
        case ast.BoolOp():
            return _joined(parent)
        case ast.UnaryOp(op=ast.Not()):
            return _negated(parent)
        case ast.IfExp(test=test, body=body, orelse=orelse) if test is node:
            parts = ", ".join(map(ast.unparse, (test, body, orelse)))
            return "`... if ... else ...` needs", f"use tt.where({parts}), or an `if` statement"
        case ast.While():
            return "`while` needs", "loop with tt.serial over a known number of steps, and branch with `if`"
        case ast.Assert():
            return "`assert` needs", "assert shapes, dtypes and constants; check data outside of the kernel"
        case ast.comprehension():
            return "`if` of a comprehension needs", "select with tt.where, or mask the contributions"
        case ast.If():
            return (
                "an `if` that Python runs needs",
                "move it out of the generator or coroutine, into a plain function",
            )
    return None


def _nested(function: str, arguments: list[ast.expr]) -> str:
    text = ast.unparse(arguments[0])
    for argument in arguments[1:]:
        text = f"{function}({text}, {ast.unparse(argument)})"
    return text


def _membership(left: ast.expr, op: ast.cmpop, group: ast.expr) -> tuple[str, str]:
    inside = isinstance(op, ast.In)
    if isinstance(group, (ast.Tuple, ast.List, ast.Set)) and group.elts:
        each: ast.cmpop = ast.Eq() if inside else ast.NotEq()
        parts = [f"({ast.unparse(ast.Compare(left, [each], [item]))})" for item in group.elts]
        return "`in` needs", f"compare with each: {(' | ' if inside else ' & ').join(parts)}"
    return "`in` needs", "compare with each value and join with |, or use tt.any(x == value)"


def _joined(node: ast.BoolOp) -> tuple[str, str]:
    word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
    parts = f" {sign} ".join(f"({ast.unparse(value)})" for value in node.values)
    return f"`{word}` needs", f"join conditions with {sign}: {parts}"


def _negated(node: ast.UnaryOp) -> tuple[str, str]:
    return "`not` needs", f"negate with ~: ~({ast.unparse(node.operand)})"
