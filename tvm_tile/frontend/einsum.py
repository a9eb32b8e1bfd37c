"""Einstein summation: products of tiles over named axes, by matrix products."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import OperandError
from tvm_tile.frontend import reductions
from tvm_tile.frontend.arithmetic import applied
from tvm_tile.frontend.contraction import mma
from tvm_tile.frontend.described import counted, described
from tvm_tile.frontend.operands import (
    adapted,
    broadcast,
    common_dtype,
    converted,
    dtype_argument,
    filled,
    is_weak,
    tile_of,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped, transpose
from tvm_tile.frontend.subscripts import extract
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.dtypes import accumulation_dtype, bits, is_bool, is_float, is_narrowing

__all__ = ["einsum"]


@dataclass(frozen=True)
class _Term:
    """A tile with one label an axis, all different; the axes of an ellipsis are labelled by ints."""

    tile: Tile
    labels: tuple[Any, ...]


def einsum(spec: str, *operands: Any, dtype: Any = None) -> Tile:
    """Sum of products over named axes, as in :func:`numpy.einsum`.

    Parameters
    ----------
    spec : str
        One term of letters an operand, such as ``"bik,bkj->bij"``. A letter twice in one term takes the
        diagonal; ``...`` stands for axes that broadcast. Without ``->`` the result has the axes of the
        ellipsis, then the letters that occur once, in alphabetical order. Letters that the result lacks are
        summed over.
    *operands : tile
        One a term. They are contracted from left to right.
    dtype : optional
        Dtype of the result. By default the operands' promoted one, ``int32`` for int8 and int16.

    Returns
    -------
    Tile
        float16 and bfloat16 accumulate in float32, through all operands, and round once.

    Raises
    ------
    OperandError
        The spec is malformed or does not fit the operands, extents differ, or the dtype would narrow.
    """
    if not isinstance(spec, str):
        _refuse(
            f"einsum takes its spec first, a string, not {described(spec)}", 'tt.einsum("ij,jk->ik", a, b)'
        )
    tiles = [tile_of(operand) for operand in operands]
    terms, result = _parsed(spec, len(tiles))
    own = common_dtype(*tiles) if tiles else "float32"
    if is_bool(own):
        _refuse("einsum does not take bool", 'convert with .astype("int32")')
    by_default = own if is_float(own) else accumulation_dtype(own)
    wanted = by_default if dtype is None else dtype_argument(dtype)
    working = accumulation_dtype(wanted)
    if is_float(wanted) and bits(wanted) < 16:
        working = "float32"
    tiles = [adapted(tile, own) if is_weak(tile) else tile for tile in tiles]
    for tile in tiles:
        if is_narrowing(tile.dtype, working):
            _refuse(
                f"einsum in {working} would narrow {tile._describe()}",
                f'convert it first with .astype("{working}"), or give a wider dtype',
            )
    labelled = _labelled(spec, terms, tiles)
    wide = max((len(labels) for labels in (_ellipsis(term) for term in labelled)), default=0)
    output = _output(spec, result, labelled, wide)
    total = _contracted([_diagonal(spec, term) for term in labelled], output, working)
    return converted(total, wanted)


def _refuse(message: str, suggestion: str) -> None:
    raise OperandError(message, span=current_span(), suggestion=suggestion)


def _parsed(spec: str, count: int) -> tuple[list[str], str | None]:
    """The terms of the operands, and that of the result if there is one, with ``*`` for an ellipsis."""
    text = "".join(spec.split()).replace("*", "?").replace("...", "*")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        wrong = sorted(set(term) - set(string.ascii_letters) - {"*"})
        if wrong or term.count("*") > 1:
            what = f"holds {wrong[0]!r}" if wrong else "holds two ellipses"
            _refuse(
                f"the einsum spec {spec!r} {what} in a term",
                "write letters and `...`, such as 'bij,...j->bi'",
            )
    if len(terms) != count:
        _refuse(
            f"the einsum spec {spec!r} has {len(terms)} term{'s' if len(terms) > 1 else ''} "
            f"for {count} operands",
            "write one term an operand, joined by commas",
        )
    return terms, right if arrow else None


def _labelled(spec: str, terms: list[str], tiles: list[Tile]) -> list[_Term]:
    """Each operand with a label an axis, the axes of ellipses counted from the end: -1, -2, ..."""
    found = []
    for term, tile in zip(terms, tiles, strict=True):
        named = len(term.replace("*", ""))
        rest = tile.ndim - named
        if rest < 0 or (rest > 0 and "*" not in term):
            _refuse(
                f"the term {term.replace('*', '...')!r} of einsum spec {spec!r} names "
                f"{counted(named, 'axis', 'axes')} of "
                f"{tile._describe()}, which has {tile.ndim}",
                "name each axis, or write ... for the rest",
            )
        before, _, after = term.partition("*")
        found.append(_Term(tile, (*before, *range(-rest, 0), *after)))
    return found


def _ellipsis(term: _Term) -> list[int]:
    return [label for label in term.labels if isinstance(label, int)]


def _output(spec: str, result: str | None, terms: list[_Term], wide: int) -> tuple[Any, ...]:
    dots = tuple(range(-wide, 0))
    letters = [label for term in terms for label in term.labels if isinstance(label, str)]
    if result is None:
        return (*dots, *sorted(label for label in set(letters) if letters.count(label) == 1))
    before, dot, after = result.partition("*")
    named = before + after
    for label in named:
        if named.count(label) > 1 or label not in letters:
            why = "twice" if named.count(label) > 1 else "but no operand does"
            _refuse(
                f"the result of einsum spec {spec!r} names axis {label!r} {why}",
                "name axes of the operands, each once",
            )
    if dots and not dot:
        _refuse(
            f"the result of einsum spec {spec!r} has no `...`, but the operands have {wide} such axes",
            f"write them in the result: '->...{result}'",
        )
    return (*before, *dots, *after)


def _diagonal(spec: str, term: _Term) -> _Term:
    """The term with axes of equal label replaced by their diagonal, which goes last."""
    tile, labels = term.tile, list(term.labels)
    while len(set(labels)) < len(labels):
        label = next(each for each in labels if labels.count(each) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        n, m = tile.shape[first], tile.shape[second]
        if n != m:
            _refuse(
                f"axis {label!r} of einsum spec {spec!r} has extents {n} and {m} in {tile._describe()}",
                "take parts of one extent",
            )
        others = [axis for axis in range(len(labels)) if axis not in (first, second)]
        square = transpose(tile, (*others, first, second))
        flat = reshaped(square, (*square.shape[:-2], n * n))
        # Elements of the diagonal lie one row and one column apart.
        tile = extract(flat, (..., slice(0, n * n, n + 1)))
        labels = [*(labels[axis] for axis in others), label]
    return _Term(tile, tuple(labels))


def _contracted(terms: list[_Term], output: tuple[Any, ...], dtype: str) -> Tile:
    extents = _extents(terms)
    left = _summed(terms[0], {*output, *_labels(terms[1:])}, dtype)
    for k, right in enumerate(terms[1:], 1):
        later = {*output, *_labels(terms[k + 1 :])}
        right = _summed(right, {*later, *left.labels}, dtype)
        left = _summed(left, {*later, *right.labels}, dtype)
        left = _product(left, right, later, extents, dtype)
    tile = converted(left.tile, dtype)
    missing = [label for label in output if label not in left.labels]
    assert not missing, missing
    order = [left.labels.index(label) for label in output]
    return broadcast(transpose(tile, order), tuple(extents[label] for label in output))


def _labels(terms: list[_Term]) -> set[Any]:
    return {label for term in terms for label in term.labels}


def _extents(terms: list[_Term]) -> dict[Any, int]:
    extents: dict[Any, int] = {}
    for term in terms:
        for label, n in zip(term.labels, term.tile.shape, strict=True):
            known = extents.get(label, 1)
            if 1 not in (n, known) and n != known:
                shown = repr(label) if isinstance(label, str) else "of the ellipsis"
                _refuse(
                    f"axis {shown} of einsum has extent {known} in one operand and {n} in "
                    f"{term.tile._describe()}",
                    "take parts of one extent",
                )
            extents[label] = n if known == 1 else known
    return extents


def _summed(term: _Term, kept: set[Any], dtype: str) -> _Term:
    """The term summed over the axes that nothing else asks for."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
    if not axes:
        return term
    tile = reductions.sum(converted(term.tile, dtype), axes, dtype=dtype)
    return _Term(tile, tuple(label for label in term.labels if label in kept))


def _product(left: _Term, right: _Term, later: set[Any], extents: dict[Any, int], dtype: str) -> _Term:
    """Two terms multiplied, and summed over what they share and nothing later asks for."""
    shared = [label for label in left.labels if label in right.labels]
    batch = [label for label in shared if label in later]
    inner = [label for label in shared if label not in later]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    a = _arranged(left, [*batch, *rows, *inner], shared, extents)
    b = _arranged(right, [*batch, *inner, *columns], shared, extents)
    labels = (*batch, *rows, *columns)

    def size(group: list[Any], tile: Tile, start: int) -> int:
        return math.prod(tile.shape[start : start + len(group)])

    around = a.shape[: len(batch)]
    m = size(rows, a, len(batch))
    n = size(columns, b, len(batch) + len(inner))
    shape = (*around, *a.shape[len(batch) : len(batch) + len(rows)], *b.shape[len(batch) + len(inner) :])
    if inner:
        k = size(inner, a, len(batch) + len(rows))
        zero = filled(a.trace, (*around, m, n), 0, dtype)
        product = mma(reshaped(a, (*around, m, k)), reshaped(b, (*around, k, n)), zero)
    else:
        x, y = converted(reshaped(a, (*around, m, 1)), dtype), converted(reshaped(b, (*around, 1, n)), dtype)
        product = applied("multiply", x, y)
    return _Term(reshaped(product, shape), labels)


def _arranged(term: _Term, order: list[Any], shared: list[Any], extents: dict[Any, int]) -> Tile:
    """The tile with its axes in an order; those that it shares have their full extent."""
    tile = transpose(term.tile, [term.labels.index(label) for label in order])
    shape = tuple(
        extents[label] if label in shared else n for label, n in zip(order, tile.shape, strict=True)
    )
    return broadcast(tile, shape)
