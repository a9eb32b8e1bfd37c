"""Leaf operations read back from program text; one case an operation of :mod:`tvm_tile.ir.ops`."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.lexer import Token
from tvm_tile.ir.ops import (
    ArgReduce,
    Broadcast,
    Cast,
    Elementwise,
    Extract,
    FromIndex,
    Full,
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
from tvm_tile.ir.values import Value

__all__ = ["MakeOp", "parse_op", "parse_stage", "parse_store"]

#: Makes an operation's record of its result and its span.
MakeOp = Callable[[Value, Span], Op]

_CONVERSIONS = {"cast": Cast, "broadcast": Broadcast, "reshape": Reshape}
_KEYWORDS = (
    *("argmax", "argmin", "cast", "broadcast", "extract", "full", "if", "index", "iota", "load", "mma"),
    *("parallel", "pipeline", "reduce", "reduce_tile", "reshape", "serial", "stage", "store", "transpose"),
    *("yield", *FUNCTIONS),
)


def parse_stage(reader: Reader, first: Token) -> Stage:
    """Consume what follows ``stage``; ``first`` starts the statement."""
    name = reader.cursor.word("the stage's name")
    return Stage(name, span=reader.cursor.since(first))


def parse_store(reader: Reader, first: Token) -> Store:
    """Consume what follows ``store``; ``first`` starts the statement."""
    view = View(reader.memory(), reader.subscripts())
    reader.cursor.expect(",", "and a value after the view of a store")
    value = reader.operand()
    more = reader.attributes(bounds=lambda: reader.cursor.word("a bounds mode"), mask=reader.operand)
    return Store(view, value, span=reader.cursor.since(first), **more)


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
            view = View(reader.memory(), reader.subscripts())
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
