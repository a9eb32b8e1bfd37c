"""What all parts of program text share: names in scope, types, subscripts, literals and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tvm_tile.ir.dtypes import DTYPES
from tvm_tile.ir.index import AddressMap, IndexExpr, Predicate
from tvm_tile.ir.index_parser import parse_index, parse_predicate
from tvm_tile.ir.lexer import Cursor, Token
from tvm_tile.ir.ops import Number, Point, Slice, Subscript, View
from tvm_tile.ir.printer import layout_axis
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Reader", "Scope"]

T = TypeVar("T")
Scope = dict[int, Value]


class Reader:
    """A cursor with the definitions read so far.

    Attributes
    ----------
    cursor
        Where in the text it is.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._memories: list[dict[str, Memory]] = [{}]
        self._names: set[str] = set()
        self._scopes: list[Scope] = [{}]
        self._defined: Scope = {}

    # Names

    def new(self, token: Token, tile_type: TileType) -> Value:
        """The value that a token defines; it is not visible yet."""
        earlier = self._defined.get(token.id)
        if earlier is not None:
            where = "" if earlier.span is None else f" on line {earlier.span.line}"
            self.cursor.fail(
                f"value {token} has the id of {earlier}, which is defined{where}", token, "use another id"
            )
        value = Value(token.id, tile_type, token.text, token.span)
        self._defined[token.id] = value
        return value

    def define(self, token: Token, tile_type: TileType) -> Value:
        """The value that a token defines, visible from here to the end of the block."""
        value = self.new(token, tile_type)
        self._scopes[-1][token.id] = value
        return value

    def within(self, values: tuple[Value, ...], read: Callable[[], T]) -> T:
        """Read something in which these values are visible, and which may define more."""
        self._scopes.append({value.id: value for value in values})
        self._memories.append({})
        result = read()
        self._memories.pop()
        self._scopes.pop()
        return result

    def use(self, token: Token) -> Value:
        """The visible value that a token names."""
        for scope in reversed(self._scopes):
            if token.id in scope:
                value = scope[token.id]
                if value.name != token.text:
                    self.cursor.fail(f"value {token} is defined as {value}", token, f"write {value}")
                return value
        elsewhere = self._defined.get(token.id)
        if elsewhere is not None and elsewhere.span is not None:
            line = elsewhere.span.line
            self.cursor.fail(
                f"value {token} is not visible here: line {line} defines it within another region",
                token,
                "carry it, or yield it as a result of that region",
            )
        return self.cursor.fail(f"value {token} is not defined before its use", token)

    def operand(self) -> Value:
        """A use, with an optional type that must be the definition's."""
        token = self.cursor.kind("value", "a value such as %x.1")
        value = self.use(token)
        if self.cursor.accept(":"):
            declared = self.tile_type()
            if declared != value.type:
                self.cursor.fail(f"value {value} is used as {declared} but defined as {value.type}", token)
        return value

    def operands(self) -> tuple[Value, ...]:
        """One use or more, with commas between."""
        found = [self.operand()]
        while self.cursor.accept(","):
            found.append(self.operand())
        return tuple(found)

    def memory(self) -> Memory:
        """The declared memory that a token names."""
        token = self.cursor.kind("memory", "a memory such as @A")
        visible = {name: found for scope in self._memories for name, found in scope.items()}
        found = visible.get(token.text)
        if found is None:
            known = ", ".join(map(str, visible.values())) or "none"
            problem = (
                f"memory {token} is neither a parameter nor allocated; the memories visible here are {known}"
            )
            self.cursor.fail(problem, token)
        return found

    def declare(self) -> Memory:
        """A memory, its type and its attributes: visible from here to the end of the block."""
        cursor = self.cursor
        token = cursor.kind("memory", "a memory such as @A")
        if token.text in self._names:
            cursor.fail(f"memory {token} is declared twice", token, "use another name")
        cursor.expect(":", "and a type after a memory")
        declared = self.tile_type()
        more = self.attributes(
            strides=lambda: self.integers("strides"),
            scope=lambda: cursor.word("a memory scope"),
            layout=lambda: self._layout(len(declared.shape)),
        )
        memory = Memory(token.text, declared.shape, declared.dtype, span=token.span, **more)
        self._names.add(token.text)
        self._memories[-1][token.text] = memory
        return memory

    def _layout(self, rank: int) -> AddressMap:
        """A size and an address over the indices ``%i0.0``, ``%i1.1``, ... of the axes."""
        axes = tuple(AddressMap.axis(k) for k in range(rank))

        def axis(token: Token) -> Value:
            if token.id >= rank or token.text != axes[token.id].name:
                known = ", ".join(str(layout_axis(k)) for k in range(rank)) or "none"
                self.cursor.fail(f"{token} is no axis of the memory; the axes are {known}", token)
            return axes[token.id]

        size = self.cursor.integer("the number of addresses")
        self.cursor.expect(":", "and an address after the number of addresses")
        return AddressMap(axes, parse_index(self.cursor, axis), size)

    # Pieces

    def between(self, opening: str, closing: str, item: Callable[[], T], context: str) -> tuple[T, ...]:
        """A comma-separated list in brackets."""
        self.cursor.expect(opening, context)
        items: list[T] = []
        while not self.cursor.at(closing):
            if items:
                self.cursor.expect(",", f"or {closing!r} {context}")
            items.append(item())
        self.cursor.expect(closing, context)
        return tuple(items)

    def integers(self, what: str) -> tuple[int, ...]:
        """Integers in parentheses."""
        return self.between("(", ")", lambda: self.cursor.integer(what), f"around the {what}")

    def attributes(self, **readers: Callable[[], Any]) -> dict[str, Any]:
        """Trailing attributes in any order: a keyword each, followed by what its reader consumes."""
        found: dict[str, Any] = {}
        while self.cursor.at(*readers):
            keyword = self.cursor.advance()
            if keyword.text in found:
                self.cursor.fail(f"{keyword} is given twice", keyword, "leave one of them out")
            found[keyword.text] = readers[keyword.text]()
        return found

    def tile_type(self) -> TileType:
        """A dtype and extents."""
        token = self.cursor.kind("name", "a type such as float32[16, 16]")
        if token.text not in DTYPES:
            self.cursor.fail(f"there is no dtype {token}", token, f"use one of {', '.join(DTYPES)}")
        shape = self.between("[", "]", lambda: self.cursor.integer("extent"), "around the extents of a type")
        return TileType(shape, token.text)

    def typed(self) -> tuple[Token, TileType]:
        """A definition: a value token and its type."""
        token = self.cursor.kind("value", "a value such as %x.1")
        self.cursor.expect(":", "and a type after a definition")
        return token, self.tile_type()

    def index(self) -> IndexExpr:
        """An integer expression."""
        return parse_index(self.cursor, self.use)

    def predicate(self) -> Predicate:
        """A truth-valued expression."""
        return parse_predicate(self.cursor, self.use)

    def subscripts(self) -> tuple[Subscript, ...]:
        """Subscripts in brackets."""
        return self.between("[", "]", self._subscript, "around subscripts")

    def view(self) -> View:
        """A memory and its subscripts."""
        return View(self.memory(), self.subscripts())

    def _subscript(self) -> Subscript:
        start = self.index()
        if not self.cursor.accept(":+"):
            return Point(start)
        size = self.cursor.integer("slice size")
        return Slice(start, size, self.cursor.integer("slice step") if self.cursor.accept("by") else 1)

    def number(self) -> Number:
        """A literal, kept as written."""
        sign = "-" if self.cursor.accept("-") else ""
        token = self.cursor.token
        words = ("nan", "inf") if sign else ("nan", "inf", "True", "False")
        if token.kind != "number" and not self.cursor.at(*words):
            self.cursor.fail(
                f"expected a literal, found {token}", token, "write 1, -0.5, nan, inf, True or False"
            )
        self.cursor.advance()
        return Number(sign + token.text)

    def flag(self, what: str) -> bool:
        """``true`` or ``false``."""
        token = self.cursor.token
        if not self.cursor.accept("true", "false"):
            self.cursor.fail(f"expected true or false after {what}, found {token}")
        return token.text == "true"
