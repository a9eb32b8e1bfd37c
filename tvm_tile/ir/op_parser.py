"""Leaf operations read back from program text; one case an operation of :mod:`tvm_tile.ir.ops`."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.lexer import Token
from tvm_tile.ir.ops import (
    Alloc,
    ArgReduce,
    Atomic,
    Broadcast,
    Cast,
    Concat,
    Elementwise,
    Extern,
    Extract,
    FromIndex,
    Full,
    Gather,
    Insert,
    Iota,
    Load,
    Mma,
    Op,
    ReduceTile,
    Reshape,
    Stage,
    Store,
    Transpose,
    View,
)
from tvm_tile.ir.reader import Reader
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, Value

__all__ = ["EFFECTS", "MakeOp", "parse_merge_op", "parse_op"]

#: Makes an operation's record of its result and its span.
MakeOp = Callable[[Value, Span], Op]

_CONVERSIONS = {"cast": Cast, "broadcast": Broadcast, "reshape": Reshape}
_KEYWORDS = (
    *("alloc", "argmax", "argmin", "atomic", "cast", "concat", "broadcast", "extern", "extract", "full"),
    *("gather", "if", "index", "insert", "iota", "load", "merge_reduce", "mma", "parallel", "pipeline"),
    *("reduce", "reduce_tile", "reshape", "scan", "serial", "stage", "store", "transpose", "yield"),
    *FUNCTIONS,
)


def _stage(reader: Reader, first: Token) -> Stage:
    name = reader.cursor.word("the stage's name")
    return Stage(name, span=reader.cursor.since(first))


def _store(reader: Reader, first: Token) -> Store:
    view = reader.view()
    reader.cursor.expect(",", "and a value after the view of a store")
    value = reader.operand()
    more = reader.attributes(bounds=lambda: reader.cursor.word("a bounds mode"), mask=reader.operand)
    return Store(view, value, span=reader.cursor.since(first), **more)


def _alloc(reader: Reader, first: Token) -> Alloc:
    return Alloc(reader.declare(), span=reader.cursor.since(first))


def _extern(reader: Reader, first: Token) -> Extern:
    cursor = reader.cursor
    symbol = cursor.word("the name of a C function")

    def item() -> View | Value:
        return reader.view() if cursor.token.kind == "memory" else reader.operand()

    operands = reader.between("(", ")", item, "around the arguments of a call")

    def memories() -> tuple[Memory, ...]:
        return reader.between("(", ")", reader.memory, "around memories")

    more = {"reads": (), "writes": (), **reader.attributes(reads=memories, writes=memories)}
    return Extern(symbol, operands, span=cursor.since(first), **more)


#: Statements without results: from their keyword to what consumes the rest; the token starts the statement.
EFFECTS: dict[str, Callable[[Reader, Token], Op]] = {
    "alloc": _alloc,
    "extern": _extern,
    "stage": _stage,
    "store": _store,
}


def parse_merge_op(reader: Reader, name: str) -> dict[str, Any]:
    """Consume a reduction or scan of tiles up to its merge: its fields but for results and merge."""
    cursor = reader.cursor
    fields: dict[str, Any] = {"operands": reader.operands()}
    readers: dict[str, Callable[[], Any]] = {
        "policy": lambda: cursor.word("a policy"),
        "seeds": lambda: reader.between("(", ")", reader.operand, "around seeds"),
    }
    if name == "scan":
        readers |= {"axis": lambda: cursor.integer("axis"), "exclusive": lambda: True}
    else:
        readers |= {"axes": lambda: reader.integers("axes"), "where": reader.operand}
    fields |= reader.attributes(**readers)
    needed = "axis" if name == "scan" else "axes"
    if needed not in fields:
        cursor.fail(
            f"{name} needs its {needed}", suggestion=f"write {needed} {'0' if name == 'scan' else '(0)'}"
        )
    return fields


def parse_op(reader: Reader, keyword: Token) -> MakeOp:
    """Consume the operands of an operation with one result, whose keyword has been consumed."""
    cursor = reader.cursor
    match keyword.text:
        case "full":
            number = reader.number()
            return lambda result, span: Full(result, number, span=span)
        case "index":
            index = reader.index()
            return lambda result, span: FromIndex(result, index, span=span)
        case "iota":
            return lambda result, span: Iota(result, span=span)
        case "cast" | "broadcast" | "reshape" as name:
            kind, operand = _CONVERSIONS[name], reader.operand()
            return lambda result, span: kind(result, operand, span=span)
        case "transpose":
            operand, permutation = reader.operand(), reader.integers("permutation")
            return lambda result, span: Transpose(result, operand, permutation, span=span)
        case "extract":
            operand, subscripts = reader.operand(), reader.subscripts()
            return lambda result, span: Extract(result, operand, subscripts, span=span)
        case "insert":
            operand, subscripts = reader.operand(), reader.subscripts()
            cursor.expect(",", "and a value after the subscripts of an insert")
            value = reader.operand()
            more = reader.attributes(combine=lambda: cursor.word("a function such as add"))
            return lambda result, span: Insert(result, operand, subscripts, value, span=span, **more)
        case "concat":
            operands, axis = reader.operands(), _axis(reader, "concat")
            return lambda result, span: Concat(result, operands, axis, span=span)
        case "gather":
            operands = reader.operands()
            if len(operands) != 2:
                cursor.fail(f"gather takes a tile and positions, not {len(operands)} values", keyword)
            operand, positions = operands
            axis = _axis(reader, "gather")
            more = reader.attributes(fill=reader.number)
            return lambda result, span: Gather(result, operand, positions, axis, span=span, **more)
        case "atomic":
            fn, view = cursor.word("a function such as add"), reader.view()
            cursor.expect(",", "and a value after the view of an atomic")
            value = reader.operand()
            more = reader.attributes(mask=reader.operand)
            return lambda result, span: Atomic(result, view, value, fn, span=span, **more)
        case "mma":
            operands = reader.operands()
            if len(operands) != 3:
                cursor.fail(f"mma takes a, b and the accumulator, not {len(operands)} values", keyword)
            a, b, acc = operands
            ordered = cursor.accept("ordered")
            return lambda result, span: Mma(result, a, b, acc, ordered, span=span)
        case "reduce_tile":
            return _reduce_tile(reader)
        case "argmax" | "argmin" as name:
            return _arg_reduce(reader, name)
        case "load":
            view = reader.view()
            more = reader.attributes(
                fill=reader.number, bounds=lambda: cursor.word("a bounds mode"), mask=reader.operand
            )
            return lambda result, span: Load(result, view, span=span, **more)
        case fn if fn in FUNCTIONS:
            operands = reader.operands()
            return lambda result, span: Elementwise(result, fn, operands, span=span)
    close = difflib.get_close_matches(keyword.text, _KEYWORDS, n=1)
    remedy = f"did you mean {close[0]!r}?" if close else None
    return cursor.fail(f"there is no operation {keyword.text!r}", keyword, remedy)


def _axis(reader: Reader, what: str) -> int:
    reader.cursor.expect("axis", f"and an axis after the operands of {what}")
    return reader.cursor.integer("axis")


def _reduce_tile(reader: Reader) -> MakeOp:
    combiner, operand = reader.cursor.word("a combiner such as add"), reader.operand()
    more = reader.attributes(
        axes=lambda: reader.integers("axes"),
        policy=lambda: reader.cursor.word("a policy"),
        keepdims=lambda: True,
        where=reader.operand,
    )
    if "axes" not in more:
        reader.cursor.fail("reduce_tile needs its axes", suggestion="write axes (0)")
    fields = {"keepdims": False, "policy": "unordered_tree", **more}
    return lambda result, span: ReduceTile(result, operand, combiner=combiner, span=span, **fields)


def _arg_reduce(reader: Reader, kind: str) -> MakeOp:
    operand = reader.operand()
    more = reader.attributes(
        axis=lambda: reader.cursor.integer("axis"), keepdims=lambda: True, where=reader.operand
    )
    if "axis" not in more:
        reader.cursor.fail(f"{kind} needs its axis", suggestion="write axis 0")
    fields = {"keepdims": False, **more}
    return lambda result, span: ArgReduce(result, operand, kind=kind, span=span, **fields)
