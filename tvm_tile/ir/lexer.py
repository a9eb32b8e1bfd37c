"""Tokens of program text, and a cursor over them that makes errors with a source excerpt."""

from __future__ import annotations

import json
import linecache
import re
from dataclasses import dataclass
from typing import NoReturn

from tvm_tile.errors import CaptureError
from tvm_tile.ir.span import Span

__all__ = ["Cursor", "Token", "quoted", "tokenize", "word"]

_NAME = r"[^\W\d]\w*"
_STRING = r'"(?:[^"\\\n]|\\[^\n])*"'
_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r\f\v]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<value>%(?:(?:{_NAME}|{_STRING})\.)?[0-9]+)
    | (?P<memory>@(?:{_NAME}|{_STRING}))
    | (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<name>{_NAME})
    | (?P<string>{_STRING})
    | (?P<sign>:\+|//|<=|>=|==|!=|[-+*%<>=(){{}}\[\],:])
    """,
    re.VERBOSE,
)

#: Python converts longer digit strings only on request; no extent or literal is near it.
_MOST_DIGITS = 4000


def quoted(text: str) -> str:
    """A string literal of program text."""
    return json.dumps(text)


def word(text: str) -> str:
    """A name as it stands in program text: bare where that reads back, else quoted."""
    return text if re.fullmatch(_NAME, text) else quoted(text)


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes
    ----------
    kind
        ``value memory number name string sign`` or ``end``.
    text
        As written, for a sign, name or number; without its quotes for a string. For a memory its name,
        for a value the name of its definition (``""`` without one).
    id
        The id of a value.
    """

    kind: str
    text: str
    span: Span
    id: int = -1

    def __str__(self) -> str:
        match self.kind:
            case "end":
                return "the end of the text"
            case "value":
                return f"%{word(self.text)}.{self.id}" if self.text else f"%{self.id}"
            case "memory":
                return f"@{word(self.text)}"
            case "string":
                return quoted(self.text)
        return repr(self.text)


def tokenize(text: str, file: str) -> list[Token]:
    """Tokens of a text, with an ``end`` token last; the text becomes readable for excerpts as ``file``.

    Raises
    ------
    CaptureError
        A character, string or integer that is no token.
    """
    # Not splitlines: it also breaks at characters that are no line ends to the token expression.
    lines = [line + "\n" for line in text.split("\n")]
    linecache.cache[file] = (len(text), None, lines, file)
    tokens: list[Token] = []
    line, line_start, position = 1, 0, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        column = position - line_start + 1
        if match is None:
            kind = "string does not end on its line" if text[position] == '"' else "no token starts with this"
            _fail(f"{kind}: {text[position]!r}", Span(file, line, column, line, column + 1))
        position = match.end()
        if match.lastgroup == "newline":
            line, line_start = line + 1, position
        elif match.lastgroup != "space":
            span = Span(file, line, column, line, position - line_start + 1)
            tokens.append(_token(str(match.lastgroup), match.group(), span))
    column = position - line_start + 1
    tokens.append(Token("end", "", Span(file, line, column, line, column)))
    return tokens


def _token(kind: str, text: str, span: Span) -> Token:
    match kind:
        case "value":
            name, _, digits = text[1:].rpartition(".")
            return Token(kind, _unquoted(name, span), span, _integer(digits, span))
        case "memory":
            return Token(kind, _unquoted(text[1:], span), span)
        case "string":
            return Token(kind, _unquoted(text, span), span)
        case "number" if text.isdigit():
            _integer(text, span)
    return Token(kind, text, span)


def _unquoted(text: str, span: Span) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text, strict=False))
    except ValueError as error:
        raise CaptureError(
            f"not a string literal: {text}: {error}", span=span, suggestion="write escapes as in JSON"
        ) from error


def _integer(digits: str, span: Span) -> int:
    if len(digits) > _MOST_DIGITS:
        _fail(f"an integer of {len(digits)} digits is too long", span)
    return int(digits)


def _fail(message: str, span: Span, suggestion: str | None = None) -> NoReturn:
    raise CaptureError(message, span=span, obligation="program text", suggestion=suggestion)


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    def since(self, first: Token) -> Span:
        """The range from a token to the one consumed last."""
        start, end = first.span, self._tokens[max(self._at - 1, 0)].span
        return Span(start.file, start.line, start.column, end.end_line, end.end_column)

    def fail(self, message: str, token: Token | None = None, suggestion: str | None = None) -> NoReturn:
        """Raise a :class:`CaptureError` at a token, by default the next one."""
        _fail(message, (token or self.token).span, suggestion)

    def advance(self) -> Token:
        """Consume one token; the ``end`` token stays."""
        token = self.token
        if token.kind != "end":
            self._at += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or names."""
        return self.token.kind in ("sign", "name") and self.token.text in texts

    def accept(self, *texts: str) -> bool:
        """Consume the next token if it is one of these signs or names."""
        found = self.at(*texts)
        if found:
            self.advance()
        return found

    def expect(self, text: str, context: str) -> Token:
        """Consume one given sign or name."""
        if not self.at(text):
            remedy = "for a remainder write % with a space after it" if self.token.kind == "value" else None
            self.fail(f"expected {text!r} {context}, found {self.token}", suggestion=remedy)
        return self.advance()

    def kind(self, kind: str, what: str) -> Token:
        """Consume a token of one kind."""
        if self.token.kind != kind:
            remedy = "write a value with its id, as in %x.1" if self.at("%") else None
            self.fail(f"expected {what}, found {self.token}", suggestion=remedy)
        return self.advance()

    def word(self, what: str) -> str:
        """Consume a name, bare or quoted."""
        if self.token.kind not in ("name", "string"):
            self.fail(f"expected {what}, found {self.token}")
        return self.advance().text

    def integer(self, what: str) -> int:
        """Consume an integer with an optional sign."""
        negative = self.accept("-")
        token = self.token
        if token.kind != "number" or not token.text.isdigit():
            self.fail(f"expected {what}, an integer, found {token}")
        self.advance()
        return -int(token.text) if negative else int(token.text)
