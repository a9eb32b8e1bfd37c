"""Index expressions and predicates read back from program text, to the very same trees."""

from __future__ import annotations

from collections.abc import Callable

from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexExpr,
    IndexVar,
    Not,
    Or,
    Predicate,
)
from tvm_tile.ir.lexer import Cursor, Token
from tvm_tile.ir.printer import PRECEDENCE
from tvm_tile.ir.values import Value

__all__ = ["parse_index", "parse_predicate"]

_NOT = 3


def parse_index(cursor: Cursor, resolve: Callable[[Token], Value]) -> IndexExpr:
    """Consume an integer expression; ``resolve`` finds the value of a value token.

    Nothing is folded: the tree is the one written.
    """
    return _integer(cursor, _expression(cursor, resolve, 0), cursor.token)


def parse_predicate(cursor: Cursor, resolve: Callable[[Token], Value]) -> Predicate:
    """Consume a truth-valued expression."""
    return _truth(cursor, _expression(cursor, resolve, 0), cursor.token)


def _expression(cursor: Cursor, resolve: Callable[[Token], Value], least: int) -> IndexExpr | Predicate:
    """Precedence climbing: operators that bind as strongly as ``least``, left-associative."""
    left = _operand(cursor, resolve)
    while cursor.token.kind in ("sign", "name") and PRECEDENCE.get(cursor.token.text, -1) >= least:
        op = cursor.advance()
        right = _expression(cursor, resolve, PRECEDENCE[op.text] + 1)
        left = _join(cursor, op, left, right)
    return left


def _join(
    cursor: Cursor, op: Token, left: IndexExpr | Predicate, right: IndexExpr | Predicate
) -> IndexExpr | Predicate:
    match op.text:
        case "and":
            return And(_truth(cursor, left, op), _truth(cursor, right, op))
        case "or":
            return Or(_truth(cursor, left, op), _truth(cursor, right, op))
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return Comparison(op.text, _integer(cursor, left, op), _integer(cursor, right, op))
    return IndexBinary(op.text, _integer(cursor, left, op), _integer(cursor, right, op))


def _operand(cursor: Cursor, resolve: Callable[[Token], Value]) -> IndexExpr | Predicate:
    token = cursor.token
    if token.kind == "value":
        cursor.advance()
        return IndexVar(resolve(token))
    if token.kind == "number" or cursor.at("-"):
        return IndexConst(cursor.integer("an index"))
    if cursor.accept("("):
        inner = _expression(cursor, resolve, 0)
        cursor.expect(")", "after an expression")
        return inner
    if cursor.accept("true", "false"):
        return BoolConst(token.text == "true")
    if cursor.accept("not"):
        return Not(_truth(cursor, _expression(cursor, resolve, _NOT), token))
    if cursor.accept("min", "max"):
        cursor.expect("(", f"after {token.text}")
        a = parse_index(cursor, resolve)
        cursor.expect(",", f"between the operands of {token.text}")
        b = parse_index(cursor, resolve)
        cursor.expect(")", f"after the operands of {token.text}")
        return IndexBinary(token.text, a, b)
    return cursor.fail(f"expected an index expression, found {token}")


def _integer(cursor: Cursor, e: IndexExpr | Predicate, at: Token) -> IndexExpr:
    if not isinstance(e, IndexExpr):
        cursor.fail(f"expected an integer here, but {e} is a truth value", at)
    return e


def _truth(cursor: Cursor, e: IndexExpr | Predicate, at: Token) -> Predicate:
    if not isinstance(e, Predicate):
        cursor.fail(f"expected a truth value here, but {e} is an integer", at)
    return e
