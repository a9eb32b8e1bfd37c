"""Loads, stores and extraction: snapshots, fills, dropped lanes, masks, steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.ir.dtypes import DTYPES, numpy_dtype
from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexVar,
    Not,
    Or,
)
from tvm_tile.semantics.interpreter import interpret
from tvm_tile.semantics.views import evaluate_index, evaluate_predicate


def lanes(part, extent):
    """Element of each lane of a subscript, ``None`` if it is out of bounds; independent of slicing."""
    start, size, step = (part, 1, 1) if isinstance(part, int) else (*part, 1)[:3]
    return [e if 0 <= e < extent else None for e in (start + lane * step for lane in range(size))]


def gather(array, parts, fill):
    axes = [lanes(part, extent) for part, extent in zip(parts, array.shape, strict=True)]
    flat = [fill if None in e else array[e] for e in itertools.product(*axes)]
    shape = [len(axis) for axis, part in zip(axes, parts, strict=True) if not isinstance(part, int)]
    return np.array(flat, array.dtype).reshape(shape)


@st.composite
def subscripts(draw, rank):
    point = st.integers(-3, 8)
    step = st.integers(-3, 3).filter(bool)
    piece = st.tuples(st.integers(-6, 9), st.integers(0, 5), step)
    return [draw(st.one_of(point, piece)) for _ in range(rank)]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_load_fills_lanes_out_of_bounds_and_a_store_drops_them(builder, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    parts = data.draw(subscripts(len(shape)))
    b = builder()
    X, Y = b.tensor("X", shape, "int32"), b.tensor("Y", shape, "int32")
    tile = b.load(X, *parts, fill=-7)
    Z = b.tensor("Z", tile.shape, "int32")
    b.store(Z, [(0, n) for n in tile.shape], tile)
    b.store(Y, parts, tile)
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1
    y, z = np.zeros_like(x), np.zeros(tile.shape, np.int32)
    interpret(b.program(X, Y, Z), x, y, z)
    np.testing.assert_array_equal(z, gather(x, parts, -7))
    want = np.zeros_like(x)
    axes = [lanes(part, extent) for part, extent in zip(parts, shape, strict=True)]
    for e in itertools.product(*axes):
        if None not in e:
            want[e] = x[e]
    np.testing.assert_array_equal(y, want)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_extraction_from_a_tile_gives_zero_outside(builder, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=2)))
    parts = data.draw(subscripts(len(shape)))
    b = builder()
    X = b.tensor("X", shape, "int16")
    tile = b.extract(b.load(X, *((0, n) for n in shape)), *parts)
    Z = b.tensor("Z", tile.shape, "int16")
    b.store(Z, [(0, n) for n in tile.shape], tile)
    x = np.arange(np.prod(shape), dtype=np.int16).reshape(shape) + 1
    z = np.full(tile.shape, 9, np.int16)
    interpret(b.program(X, Z), x, z)
    np.testing.assert_array_equal(z, gather(x, parts, 0))


def test_masked_lanes_load_the_fill_and_store_nothing(builder):
    b = builder()
    X, Y, Z = b.tensor("X", (5,), "float32"), b.tensor("Y", (5,), "float32"), b.tensor("Z", (7,))
    M = b.tensor("M", (7,), "bool")
    mask = b.load(M, (0, 7))
    tile = b.load(X, (-1, 7), fill=float("-inf"), mask=mask)
    b.store(Z, [(0, 7)], tile)
    b.store(Y, [(-1, 7)], tile, mask=mask)
    x = np.arange(5, dtype=np.float32)
    m = np.array([1, 0, 1, 1, 0, 1, 1], bool)
    y, z = np.full(5, 9, np.float32), np.zeros(7, np.float32)
    interpret(b.program(X, Y, Z, M), x, y, z, m)
    inf = np.inf
    assert z.tolist() == [-inf, -inf, 1, 2, -inf, 4, -inf]
    assert y.tolist() == [9, 1, 2, 9, 4]


@pytest.mark.parametrize("value", [True, False])
def test_a_scalar_store_under_a_scalar_mask(builder, value):
    b = builder()
    X, M = b.tensor("X", (3,), "int8"), b.tensor("M", (), "bool")
    b.store(X, [1], b.full((), 5, "int8"), mask=b.load(M))
    x = np.zeros(3, np.int8)
    interpret(b.program(X, M), x, np.array(value))
    assert x.tolist() == [0, 5 * value, 0]


def test_a_load_is_a_snapshot(builder):
    b = builder()
    X, Y = b.tensor("X", (4,)), b.tensor("Y", (4,))
    whole, one = b.load(X, (0, 4)), b.load(X, 2)
    b.store(X, [(0, 4)], b.full((4,), 0.0))
    b.store(Y, [(0, 4)], b.apply("add", whole, b.broadcast(one, (4,))))
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    interpret(b.program(X, Y), x, y)
    assert x.tolist() == [0, 0, 0, 0]
    assert y.tolist() == [2, 3, 4, 5]


def test_negative_run_time_indices_do_not_wrap(builder):
    b = builder()
    X, Y = b.tensor("X", (4,)), b.tensor("Y", (4,))
    with b.loop("parallel", 4) as p:
        i = IndexBinary("-", IndexVar(p.indices[0]), IndexConst(2))
        b.store(Y, [p.indices[0]], b.load(X, i, fill=-1.0))
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    interpret(b.program(X, Y), x, y)
    assert y.tolist() == [-1, -1, 0, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_loads_and_stores_with_a_fill(builder, dtype):
    b = builder()
    X, Y = b.tensor("X", (3,), dtype), b.tensor("Y", (5,), dtype)
    b.store(Y, [(0, 5)], b.load(X, (-1, 5), fill=1))
    x, y = np.zeros(3, numpy_dtype(dtype)), np.zeros(5, numpy_dtype(dtype))
    interpret(b.program(X, Y), x, y)
    assert y.astype(np.float64).tolist() == [1, 0, 0, 0, 1]


def test_reading_a_row_number_from_memory(builder):
    b = builder()
    ids, table, out = b.tensor("ids", (4,), "int32"), b.tensor("table", (3, 2)), b.tensor("out", (4, 2))
    with b.loop("parallel", 4) as p:
        row = b.load(ids, p.indices[0])
        b.store(out, [p.indices[0], (0, 2)], b.load(table, row, (0, 2), fill=-1.0))
    t, o = np.arange(6, dtype=np.float32).reshape(3, 2), np.zeros((4, 2), np.float32)
    interpret(b.program(ids, table, out), np.array([2, 0, -1, 3], np.int32), t, o)
    assert o.tolist() == [[4, 5], [0, 1], [-1, -1], [-1, -1]]


def test_index_expressions_are_exact_integers():
    def ev(op, a, b):
        return evaluate_index(IndexBinary(op, IndexConst(a), IndexConst(b)), lambda v: 0)

    assert [ev(op, -7, 2) for op in ("+", "-", "*", "//", "%", "min", "max")] == [-5, -9, -14, -4, 1, -7, 2]
    assert (ev("//", 5, 0), ev("%", 5, 0)) == (0, 0)
    assert ev("*", 2**62, 8) == 2**65


def test_predicates():
    one, two = IndexConst(1), IndexConst(2)
    yes, no = Comparison("<", one, two), Comparison("==", one, two)
    for p, want in [
        (And(yes, no), False),
        (Or(no, yes), True),
        (Not(no), True),
        (BoolConst(False), False),
        (Comparison("!=", one, two), True),
        (Comparison(">=", one, two), False),
        (Comparison(">", two, one), True),
        (Comparison("<=", two, two), True),
    ]:
        assert evaluate_predicate(p, lambda v: 0) is want
