"""Programs as readable text. :func:`tvm_tile.ir.parser.parse_program` is the inverse.

Values print as ``%name.id``, memories as ``@name``; every definition but a loop index and a carried
state shows its type. Attributes at their defaults are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from tvm_tile.ir.index import (
    AddressMap,
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
    substitute_index,
)
from tvm_tile.ir.lexer import quoted, word
from tvm_tile.ir.merge_ops import MergeReduce, Scan
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
    Number,
    Op,
    ReduceTile,
    Reshape,
    Slice,
    Stage,
    Store,
    Subscript,
    Transpose,
    View,
)
from tvm_tile.ir.regions import (
    Block,
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

__all__ = ["PRECEDENCE", "layout_axis", "print_index", "print_program", "print_statement"]

_INDENT = "  "
_INDEX_TYPE = TileType((), "int64")

#: Binding strength of the infix operators of index expressions and predicates; ``not`` is between
#: ``and`` and the comparisons. All associate to the left.
PRECEDENCE = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "//", "%"), 6),
}
_NOT = 3


def print_program(program: Program) -> str:
    """The text of a program, which parses back to an equal one if its ids are unique."""
    params = ", ".join(_memory(p) if isinstance(p, Memory) else _definition(p) for p in program.params)
    head = f"kernel {word(program.name)}({params}){'' if program.fma else ' fma false'} {{"
    return "\n".join([head, *_block(program.body, (), _INDENT), "}"]) + "\n"


def print_statement(statement: Statement) -> str:
    """The text of one statement, as it stands in the program's text."""
    return "\n".join(_statement(statement, ""))


def print_index(e: IndexExpr | Predicate, within: int = 0) -> str:
    """An index expression or predicate with no more parentheses than it needs.

    Parameters
    ----------
    e
        The expression.
    within
        Least binding strength that stands without parentheses here.
    """
    match e:
        case IndexConst(value):
            return str(value)
        case IndexVar(value):
            return _use(value)
        case BoolConst(value):
            return "true" if value else "false"
        case IndexBinary("min" | "max" as op, a, b):
            return f"{op}({print_index(a)}, {print_index(b)})"
        case Not(a):
            strength, text = _NOT, f"not {print_index(a, _NOT)}"
        case IndexBinary(op, a, b) | Comparison(op, a, b):
            strength, text = _infix(op, a, b)
        case And(a, b):
            strength, text = _infix("and", a, b)
        case Or(a, b):
            strength, text = _infix("or", a, b)
    return f"({text})" if strength < within else text


def _infix(op: str, a: IndexExpr | Predicate, b: IndexExpr | Predicate) -> tuple[int, str]:
    strength = PRECEDENCE[op]
    return strength, f"{print_index(a, strength)} {op} {print_index(b, strength + 1)}"


def _use(value: Value) -> str:
    return f"%{word(value.name)}.{value.id}" if value.name else f"%{value.id}"


def _uses(values: Iterable[Value]) -> str:
    return ", ".join(map(_use, values))


def _definition(value: Value) -> str:
    return f"{_use(value)}: {value.type}"


def _memory(memory: Memory) -> str:
    text = f"@{word(memory.name)}: {TileType(memory.shape, memory.dtype)}"
    if memory.strides is not None:
        text += f" strides {_tuple(memory.strides)}"
    if memory.scope != "param":
        text += f" scope {quoted(memory.scope)}"
    return text if memory.layout is None else f"{text} {_layout(memory.layout)}"


def _layout(layout: AddressMap) -> str:
    axes = {axis: IndexVar(layout_axis(k)) for k, axis in enumerate(layout.axes)}
    return f"layout {layout.size} : {print_index(substitute_index(layout.address, axes))}"


def layout_axis(position: int) -> Value:
    """The value that stands in program text for the index along an axis of a memory's layout: ``%i0.0``."""
    return dataclasses.replace(AddressMap.axis(position), id=position)


def _tuple(items: Iterable[object]) -> str:
    return f"({', '.join(map(str, items))})"


def _subscripts(subscripts: tuple[Subscript, ...]) -> str:
    def one(subscript: Subscript) -> str:
        if isinstance(subscript, Slice):
            tail = "" if subscript.step == 1 else f" by {subscript.step}"
            return f"{print_index(subscript.start)} :+ {subscript.size}{tail}"
        return print_index(subscript.index)

    return f"[{', '.join(map(one, subscripts))}]"


def _view(view: View) -> str:
    return f"@{word(view.memory.name)}{_subscripts(view.subscripts)}"


def _block(block: Block, yields: tuple[Value, ...], indent: str) -> Iterator[str]:
    for statement in block.statements:
        yield from _statement(statement, indent)
    if yields:
        yield f"{indent}yield {_uses(yields)}"


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    results = ", ".join(map(_definition, statement.results))
    lead = f"{indent}{results} = " if results else indent
    match statement:
        case MergeReduce(merge=merge) | Scan(merge=merge):
            yield f"{lead}{_op(statement)} {_merge_head(merge)} {{"
            yield from _merge_parts(merge, indent + _INDENT)
            yield f"{indent}}}"
        case Op():
            yield f"{lead}{_op(statement)}"
        case If(condition, then, orelse, then_yields, else_yields):
            yield f"{lead}if {_use(condition)} {{"
            yield from _block(then, then_yields, indent + _INDENT)
            if orelse.statements or else_yields:
                yield f"{indent}}} else {{"
                yield from _block(orelse, else_yields, indent + _INDENT)
            yield f"{indent}}}"
        case Loop():
            yield f"{lead}{_loop_head(statement)} {{"
            yield from _block(statement.body, statement.yields, indent + _INDENT)
            if isinstance(statement, Reduce) and statement.merge is not None:
                yield f"{indent}}} {_merge_head(statement.merge)} {{"
                yield from _merge_parts(statement.merge, indent + _INDENT)
            yield f"{indent}}}"


def _loop_head(loop: Loop) -> str:
    keyword = {Parallel: "parallel", Serial: "serial", Pipeline: "pipeline", Reduce: "reduce"}[type(loop)]
    indices = ", ".join(_use(v) if v.type == _INDEX_TYPE else _definition(v) for v in loop.indices)
    parts = [keyword, indices, "in", _tuple(map(print_index, loop.domain.extents))]
    if loop.domain.where is not None:
        parts.append(f"where {print_index(loop.domain.where)}")
    match loop:
        case Parallel(bind=str(bind)):
            parts.append(f"bind {quoted(bind)}")
        case Pipeline(versions=versions, ii=ii):
            parts.append("" if versions is None else f"versions {versions}")
            parts.append("" if ii is None else f"ii {ii}")
        case Reduce(policy=policy):
            parts.append(f"policy {word(policy)}")
    if loop.args or loop.inits:
        parts.append(f"carry {_tuple(_carry(arg, init) for arg, init in zip_longest(loop.args, loop.inits))}")
    return " ".join(filter(None, parts))


def _carry(arg: Value | None, init: Value | None) -> str:
    # A program whose inits and args do not pair is illegal; its text is for reading only.
    if arg is None or init is None:
        return f"{'?' if arg is None else _use(arg)} = {'?' if init is None else _use(init)}"
    return f"{_use(arg) if arg.type == init.type else _definition(arg)} = {_use(init)}"


def _merge_head(merge: Merge) -> str:
    laws = [law for law in ("associative", "commutative", "exact") if getattr(merge, law)]
    builtin = [] if merge.builtin is None else [f"builtin {_tuple(map(word, merge.builtin))}"]
    return " ".join(["merge", word(merge.provenance), *laws, *builtin])


def _merge_parts(merge: Merge, indent: str) -> Iterator[str]:
    for name, part in (("identity", merge.identity), ("lift", merge.lift), ("combine", merge.combine)):
        if part is not None:
            yield f"{indent}{name} {_tuple(map(_definition, part.params))} {{"
            yield from _lambda_body(part, indent + _INDENT)
            yield f"{indent}}}"


def _lambda_body(part: Lambda, indent: str) -> Iterator[str]:
    yield from _block(part.body, part.yields, indent)


def _op(op: Op) -> str:
    match op:
        case Full(value=value):
            return f"full {value}"
        case FromIndex(index=index):
            return f"index {print_index(index)}"
        case Iota():
            return "iota"
        case Elementwise(fn=fn, operands=operands):
            return f"{word(fn)} {_uses(operands)}"
        case Cast(operand=operand):
            return f"cast {_use(operand)}"
        case Broadcast(operand=operand):
            return f"broadcast {_use(operand)}"
        case Reshape(operand=operand):
            return f"reshape {_use(operand)}"
        case Transpose(operand=operand, permutation=permutation):
            return f"transpose {_use(operand)} {_tuple(permutation)}"
        case Extract(operand=operand, subscripts=subscripts):
            return f"extract {_use(operand)} {_subscripts(subscripts)}"
        case Insert(operand=operand, subscripts=subscripts, value=part, combine=combine):
            text = f"insert {_use(operand)} {_subscripts(subscripts)}, {_use(part)}"
            return text if combine is None else f"{text} combine {word(combine)}"
        case Concat(operands=operands, axis=axis):
            return f"concat {_uses(operands)} axis {axis}"
        case Gather(operand=operand, index=positions, axis=axis, fill=fill):
            return f"gather {_uses((operand, positions))} axis {axis}{_fill(fill)}"
        case MergeReduce(operands=operands, axes=axes, policy=policy, seeds=seeds, where=where):
            text = f"merge_reduce {_uses(operands)} axes {_tuple(axes)} policy {word(policy)}"
            return f"{text}{_seeds(seeds)}{_mask('where', where)}"
        case Scan(operands=operands, axis=axis, exclusive=exclusive, policy=policy, seeds=seeds):
            text = f"scan {_uses(operands)} axis {axis}{' exclusive' if exclusive else ''}"
            return f"{text} policy {word(policy)}{_seeds(seeds)}"
        case Alloc(memory=memory):
            return f"alloc {_memory(memory)}"
        case Atomic(view=view, value=operand, fn=fn, mask=mask):
            return f"atomic {word(fn)} {_view(view)}, {_use(operand)}{_mask('mask', mask)}"
        case Extern(symbol=symbol, operands=operands, reads=reads, writes=writes):
            passed = _tuple(_view(item) if isinstance(item, View) else _use(item) for item in operands)
            return f"extern {quoted(symbol)} {passed} reads {_names(reads)} writes {_names(writes)}"
        case Mma(a=a, b=b, acc=acc, ordered=ordered):
            return f"mma {_uses((a, b, acc))}{' ordered' if ordered else ''}"
        case ReduceTile(operand=operand, axes=axes, combiner=combiner, keepdims=keepdims, policy=policy):
            text = f"reduce_tile {word(combiner)} {_use(operand)} axes {_tuple(axes)} policy {word(policy)}"
            return f"{text}{' keepdims' if keepdims else ''}{_mask('where', op.where)}"
        case ArgReduce(operand=operand, axis=axis, kind=kind, keepdims=keepdims, where=where):
            text = f"{word(kind)} {_use(operand)} axis {axis}"
            return f"{text}{' keepdims' if keepdims else ''}{_mask('where', where)}"
        case Load(view=view, fill=fill, bounds=bounds, mask=mask):
            return f"load {_view(view)}{_fill(fill)}{_bounds(bounds)}{_mask('mask', mask)}"
        case Store(view=view, value=stored, bounds=bounds, mask=mask):
            return f"store {_view(view)}, {_use(stored)}{_bounds(bounds)}{_mask('mask', mask)}"
        case Stage(name=name):
            return f"stage {quoted(name)}"
    raise TypeError(f"no text for the operation {type(op).__name__}")


def _fill(fill: Number) -> str:
    return "" if fill == Number("0") else f" fill {fill}"


def _seeds(seeds: tuple[Value, ...]) -> str:
    return f" seeds {_tuple(map(_use, seeds))}" if seeds else ""


def _names(memories: tuple[Memory, ...]) -> str:
    return _tuple(f"@{word(memory.name)}" for memory in memories)


def _bounds(bounds: str) -> str:
    return "" if bounds == "fill" else f" bounds {word(bounds)}"


def _mask(keyword: str, mask: Value | None) -> str:
    return "" if mask is None else f" {keyword} {_use(mask)}"
