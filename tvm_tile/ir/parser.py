"""Program text read back: the inverse of :func:`tvm_tile.ir.printer.print_program`.

The text may be written by hand: any ids, whitespace and ``#`` comments will do. The parser checks what
a text needs to mean something (its grammar, and that each use has one definition in scope);
:mod:`tvm_tile.ir.verifier` checks the program itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm_tile.errors import ArgumentError, CaptureError
from tvm_tile.ir.lexer import Cursor, Token, tokenize
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.op_parser import EFFECTS, parse_merge_op, parse_op
from tvm_tile.ir.reader import Reader
from tvm_tile.ir.regions import (
    Block,
    Domain,
    If,
    Lambda,
    Loop,
    Merge,
    Parallel,
    Pipeline,
    Program,
    Reduce,
    Serial,
    Statement,
)
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["parse_program"]

_LOOPS: dict[str, type[Loop]] = {
    "parallel": Parallel,
    "serial": Serial,
    "pipeline": Pipeline,
    "reduce": Reduce,
}
_INDEX_TYPE = TileType((), "int64")

_Results = Callable[[], tuple[Value, ...]]


def parse_program(text: str, file: str = "<program text>") -> Program:
    """The program that a text describes; ids and names are kept as written.

    Parameters
    ----------
    text
        What :func:`~tvm_tile.ir.printer.print_program` prints, or the like written by hand.
    file
        Name under which errors show the text; a text parsed later under the same name takes its place.

    Raises
    ------
    ArgumentError
        Not a text.
    CaptureError
        The text is no program: a syntax error, an undefined or twice defined value or memory, or a use
        that contradicts its definition.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"expected the text of a program, got {text!r:.80} ({type(text).__name__})",
            suggestion="str(program) gives it",
        )
    tokens = tokenize(text, file)
    try:
        return _program(Reader(Cursor(tokens)))
    except RecursionError:
        pass
    raise CaptureError(
        "the text nests too deeply",
        span=tokens[0].span,
        obligation="program text",
        suggestion="name parts of long expressions with the op 'index'",
    )


def _program(reader: Reader) -> Program:
    cursor = reader.cursor
    first = cursor.expect("kernel", "at the start of a program")
    name = cursor.word("the kernel's name")
    params = reader.between("(", ")", lambda: _param(reader), "around the parameters")
    options = reader.attributes(fma=lambda: reader.flag("fma"))
    span = cursor.since(first)
    body, yields = _block(reader)
    if yields:
        cursor.fail("a kernel yields nothing", suggestion="store the result in a tensor parameter")
    cursor.kind("end", "the end of the text after the kernel")
    return Program(name, params, body, span=span, **options)


def _param(reader: Reader) -> Memory | Value:
    return reader.declare() if reader.cursor.token.kind == "memory" else reader.define(*reader.typed())


def _block(reader: Reader, visible: tuple[Value, ...] = ()) -> tuple[Block, tuple[Value, ...]]:
    """A braced block, and what it yields; ``visible`` are a region's own values."""

    def statements() -> tuple[Block, tuple[Value, ...]]:
        found: list[Statement] = []
        while not reader.cursor.at("}", "yield"):
            if reader.cursor.token.kind == "end":
                reader.cursor.fail("expected '}' after a block, found the end of the text")
            found.append(_statement(reader))
        yields = reader.operands() if reader.cursor.accept("yield") else ()
        return Block(tuple(found)), yields

    reader.cursor.expect("{", "before a block")
    block = reader.within(visible, statements)
    reader.cursor.expect("}", "after a block")
    return block


def _statement(reader: Reader) -> Statement:
    cursor, first = reader.cursor, reader.cursor.token
    named: list[tuple[Token, TileType]] = []
    if first.kind == "value":
        named.append(reader.typed())
        while cursor.accept(","):
            named.append(reader.typed())
        cursor.expect("=", "after the results of a statement")
    keyword = cursor.kind("name", "an operation or a region")

    def results() -> tuple[Value, ...]:
        # Called at the statement's end: its results are not visible within it.
        return tuple(reader.define(*result) for result in named)

    match keyword.text:
        case "if":
            return _branch(reader, first, results)
        case region if region in _LOOPS:
            return _loop(reader, region, first, results)
        case effect if effect in EFFECTS:
            if named:
                cursor.fail(f"{effect} defines no value", keyword)
            return EFFECTS[effect](reader, first)
        case "merge_reduce" | "scan" as op:
            fields = parse_merge_op(reader, op)
            fields["merge"] = _merge(reader)
            kind = MergeReduce if op == "merge_reduce" else Scan
            return kind(results(), span=cursor.since(first), **fields)
    make = parse_op(reader, keyword)
    if len(named) != 1:
        cursor.fail(f"{keyword.text} defines one value, not {len(named)}", keyword)
    span = cursor.since(first)
    return make(results()[0], span)


def _branch(reader: Reader, first: Token, results: _Results) -> If:
    condition = reader.operand()
    span = reader.cursor.since(first)
    then, then_yields = _block(reader)
    orelse, else_yields = _block(reader) if reader.cursor.accept("else") else (Block(), ())
    return If(condition, then, orelse, then_yields, else_yields, results(), span=span)


def _loop(reader: Reader, region: str, first: Token, results: _Results) -> Loop:
    cursor = reader.cursor
    named: list[tuple[Token, TileType]] = []
    while not cursor.at("in"):
        if named:
            cursor.expect(",", "or 'in' after an index")
        token = cursor.kind("value", "an index such as %i.1, or 'in'")
        named.append((token, reader.tile_type() if cursor.accept(":") else _INDEX_TYPE))
    cursor.expect("in", "before the extents")
    extents = reader.between("(", ")", reader.index, "around the extents")
    indices = tuple(reader.new(*index) for index in named)
    readers: dict[str, Callable[[], Any]] = {
        "where": lambda: reader.within(indices, reader.predicate),
        "carry": lambda: reader.between("(", ")", lambda: _carried(reader), "around carried states"),
    }
    match region:
        case "parallel":
            readers["bind"] = lambda: cursor.word("a scope")
        case "pipeline":
            readers["versions"] = lambda: cursor.integer("versions")
            readers["ii"] = lambda: cursor.integer("ii")
        case "reduce":
            readers["policy"] = lambda: cursor.word("a policy")
    fields = reader.attributes(**readers)
    domain = Domain(extents, fields.pop("where", None))
    carried: tuple[tuple[Value, Value], ...] = fields.pop("carry", ())
    args, inits = tuple(arg for arg, _ in carried), tuple(init for _, init in carried)
    span = cursor.since(first)
    body, yields = _block(reader, (*indices, *args))
    if region == "reduce" and cursor.at("merge"):
        fields["merge"] = _merge(reader)
    return _LOOPS[region](domain, indices, body, inits, args, yields, results(), span=span, **fields)


def _carried(reader: Reader) -> tuple[Value, Value]:
    """One ``arg = init``; the arg has the init's type unless it says otherwise."""
    token = reader.cursor.kind("value", "a carried state such as %s.1")
    declared = reader.tile_type() if reader.cursor.accept(":") else None
    reader.cursor.expect("=", "before the initial value of a carried state")
    init = reader.operand()
    return reader.new(token, declared or init.type), init


def _merge(reader: Reader) -> Merge:
    cursor = reader.cursor
    keyword = cursor.expect("merge", "before a reduction's merge")
    provenance = cursor.word("where the merge comes from, such as declared,")
    laws = reader.attributes(
        associative=lambda: True,
        commutative=lambda: True,
        exact=lambda: True,
        builtin=lambda: reader.between("(", ")", lambda: cursor.word("a function"), "around functions"),
    )
    cursor.expect("{", "before the parts of a merge")

    def part() -> Lambda:
        return _lambda(reader)

    parts = reader.attributes(identity=part, lift=part, combine=part)
    cursor.expect("}", "after identity, lift and combine of a merge")
    for needed in ("identity", "combine"):
        if needed not in parts:
            cursor.fail(f"the merge has no part {needed!r}", keyword)
    return Merge(provenance=provenance, **{"associative": False, **laws}, **parts)


def _lambda(reader: Reader) -> Lambda:
    params = reader.between("(", ")", lambda: reader.new(*reader.typed()), "around parameters")
    body, yields = _block(reader, params)
    return Lambda(params, body, yields)
