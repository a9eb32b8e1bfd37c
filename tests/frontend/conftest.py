"""Checks of errors by the text that their span covers."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tvm_tile.errors import TileError


def covered(error: TileError) -> str:
    """The source text of an error's span, which must lie on one line."""
    span = error.span
    assert span is not None, error
    assert span.line == span.end_line, span
    return linecache.getline(span.file, span.line)[span.column - 1 : span.end_column - 1]


def _refused(kind: type[TileError], call: Callable[[], Any], *words: str, at: str | None = None) -> TileError:
    with pytest.raises(kind) as info:
        call()
    error = info.value
    for word in words:
        assert word in str(error), f"no {word!r} in: {error}"
    if at is not None:
        assert covered(error) == at
        assert error.span is not None
        if not error.span.file.startswith("<"):
            assert Path(error.span.file).parent == Path(__file__).parent
    assert error.suggestion or error.span
    return error


@pytest.fixture
def refused() -> Callable[..., TileError]:
    """``refused(kind, call, *words, at=text)``: the call raises the kind, with the words, at the text."""
    return _refused
