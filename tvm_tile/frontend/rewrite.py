"""Rewriting of a function's syntax tree into Python that captures it.

``for``, ``if``, assignments and calls go through the runtime (:mod:`~tvm_tile.frontend.runtime`), bound to
the name ``__tt__``; all else stays, and runs as Python during capture. Every node keeps the position of
what it replaces.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from tvm_tile.frontend.bodies import Body, branch_body, first_assignments, loop_body

__all__ = ["RUNTIME", "rewritten"]

#: Name of the runtime in rewritten functions. Ending in underscores, it is not mangled in classes.
RUNTIME = "__tt__"

T = TypeVar("T", bound=ast.AST)


def rewritten(
    function: ast.FunctionDef | ast.Lambda,
) -> tuple[ast.FunctionDef | ast.Lambda, tuple[Body, ...]]:
    """A function rewritten for capture, and the facts about its bodies that the runtime looks up by number.

    Defaults, decorators and annotations are dropped; the caller supplies them from the live function.
    """
    bodies: list[Body] = []
    node = copy.deepcopy(function)
    arguments = node.args
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.returns = None
    result = _Rewriter(node, bodies).function(node)
    return result, tuple(bodies)


def _at(node: T, place: ast.AST) -> T:
    """Give a new tree the position of an old node."""
    for part in ast.walk(node):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return node


def _runtime(attribute: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_attribute(RUNTIME, attribute), list(arguments), [])


def _attribute(name: str, attribute: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(name, ast.Load()), attribute, ast.Load())


def _method(name: str, method: str) -> ast.Call:
    return ast.Call(_attribute(name, method), [_runtime("locals")], [])


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function; nested functions get a rewriter of their own."""

    def __init__(self, function: ast.FunctionDef | ast.Lambda, bodies: list[Body]) -> None:
        self._bodies = bodies
        self._order = first_assignments(function)
        declared = [
            name
            for node in _own_statements(function)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        ]
        self._outer = frozenset(declared)

    def function(self, node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = self._block(node.body)
        return node

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def _register(self, body: Body) -> tuple[str, ast.Constant]:
        self._bodies.append(body)
        number = len(self._bodies) - 1
        return f"__tt_{number}__", ast.Constant(number)

    def _unpack(self, names: tuple[str, ...], call: ast.expr) -> list[ast.stmt]:
        """Store what a runtime call gives for names, and unbind those that it leaves without value."""
        if not names:
            return [ast.Expr(call)]
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        statements: list[ast.stmt] = [ast.Assign([target], call)]
        for name in names:
            unbound = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [_attribute(RUNTIME, "UNBOUND")])
            statements.append(ast.If(unbound, [ast.Delete([ast.Name(name, ast.Del())])], []))
        return statements

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        body = loop_body(node, self._order, self._outer)
        loop, number = self._register(body)
        place = node.iter
        is_region = _attribute(loop, "is_region")
        begin = ast.If(is_region, self._unpack(body.names, _method(loop, "begin")), [])
        end = ast.If(is_region, [ast.Expr(_method(loop, "end"))], [])
        after = ast.If(is_region, self._unpack((*body.names, *body.targets), _method(loop, "finish")), [])
        start = ast.Assign([ast.Name(loop, ast.Store())], _runtime("loop", self.visit(node.iter), number))
        inner = ast.For(
            target=self.visit(node.target),
            iter=ast.Name(loop, ast.Load()),
            body=[_at(begin, place), *self._block(node.body), _at(end, place)],
            orelse=self._block(node.orelse),
        )
        return [_at(start, place), _at(inner, place), _at(after, place)]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        body = branch_body(node, self._order, self._outer)
        branch, number = self._register(body)
        place = node.test
        is_tile = _attribute(branch, "is_tile")
        start = ast.Assign([ast.Name(branch, ast.Store())], _runtime("branch", self.visit(node.test), number))
        opened = ast.If(is_tile, [ast.Expr(_method(branch, "open"))], [])
        switch = ast.If(is_tile, self._unpack(body.names, _method(branch, "switch")), [])
        close = ast.If(is_tile, self._unpack(body.names, _method(branch, "close")), [])
        then = ast.If(_attribute(branch, "then"), [*self._block(node.body), _at(switch, place)], [])
        orelse = ast.If(_attribute(branch, "orelse"), self._block(node.orelse) or [ast.Pass()], [])
        return [_at(statement, place) for statement in (start, opened, then, orelse, close)]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node = self._generic(node)
        then = ast.IfExp(_runtime("then"), node.body, ast.Constant(None))
        orelse = ast.IfExp(_runtime("orelse"), node.orelse, ast.Constant(None))
        condition = _at(_runtime("condition", node.test), node.test)
        return _at(_runtime("chosen", condition, then, orelse), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        node = self._generic(node)
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        outer = [name for name in names if name in self._outer]
        if outer:
            node.value = _at(_runtime("rebind", ast.Constant(outer[0]), node.value), node.value)
        elif names:
            node.value = _at(_runtime("named", ast.Constant(names[0]), node.value), node.value)
        elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple):
            elements = node.targets[0].elts
            if all(isinstance(e, ast.Name) and e.id not in self._outer for e in elements):
                labels = ast.Tuple(
                    [ast.Constant(e.id) for e in elements if isinstance(e, ast.Name)], ast.Load()
                )
                node.value = _at(_runtime("named_all", labels, node.value), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
            if isinstance(node.target, ast.Name):
                hook = "rebind" if node.target.id in self._outer else "named"
                node.value = _at(_runtime(hook, ast.Constant(node.target.id), node.value), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        node = self._generic(node)
        if not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        hook = "rebind" if name in self._outer else "named"
        check = ast.Expr(_runtime(hook, ast.Constant(name), ast.Name(name, ast.Load())))
        return [node, _at(check, node)]

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node = self._generic(node)
        hook = "rebind" if node.target.id in self._outer else "named"
        node.value = _at(_runtime(hook, ast.Constant(node.target.id), node.value), node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        call = node.value
        node = self._generic(node)
        if isinstance(call, ast.Call) and isinstance(node.value, ast.Call):
            # The function is wrapped as in any call already.
            match node.value.func:
                case ast.Call(func=ast.Attribute(attr="call") as hook):
                    hook.attr = "call_alone"
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node = self._generic(node)
        node.func = _at(_runtime("call", node.func), node.func)
        return node

    def visit_Try(self, node: ast.Try | ast.TryStar) -> list[ast.stmt]:
        mark, number = self._mark()
        for handler in node.handlers:
            handler.body = [_at(self._unwind(mark), handler), *self._block(handler.body)]
        node.body, node.orelse, node.finalbody = map(self._block, (node.body, node.orelse, node.finalbody))
        return [_at(number, node), node]

    def visit_TryStar(self, node: ast.TryStar) -> list[ast.stmt]:
        return self.visit_Try(node)

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        # A context manager may swallow an exception from the middle of a region.
        mark, number = self._mark()
        node = self._generic(node)
        return [_at(number, node), node, _at(self._unwind(mark), node)]

    def _mark(self) -> tuple[str, ast.stmt]:
        mark, _ = self._register(Body(0, ()))
        return mark, ast.Assign([ast.Name(mark, ast.Store())], _runtime("mark"))

    def _unwind(self, mark: str) -> ast.stmt:
        return ast.Expr(_runtime("unwind", ast.Name(mark, ast.Load())))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        inner = _Rewriter(node, self._bodies)
        node.body = inner._block(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.visit(node.args)
        node.body = _Rewriter(node, self._bodies).visit(node.body)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        # Its methods are rewritten when they are called.
        return node

    def _generic(self, node: T) -> T:
        return self.generic_visit(node)  # type: ignore[return-value]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, old in ast.iter_fields(node):
            if isinstance(old, list) and old and isinstance(old[0], ast.stmt):
                setattr(node, name, self._block(old))
            elif isinstance(old, list):
                setattr(node, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in old])
            elif isinstance(old, ast.AST):
                setattr(node, name, self.visit(old))
        return node


def _own_statements(function: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    found: list[ast.AST] = []
    pending: list[ast.AST] = list(function.body) if isinstance(function, ast.FunctionDef) else []
    while pending:
        node = pending.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return found
