"""Atomic updates on a CPU: every dtype, contention, masks, bounds, old values."""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile
from tvm_tile.bridges.runtime.dlpack import tensor_of
from tvm_tile.ir.index import IndexVar
from tvm_tile.ir.ops import Atomic
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.values import Memory

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
PIPELINES = ("tirx", "default")
RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def four_threads():
    before = tvm_tile.get_num_threads()
    tvm_tile.set_num_threads(4)
    yield
    tvm_tile.set_num_threads(before)


def _array(values, dtype):
    return np.asarray(values).astype(getattr(ml_dtypes, dtype, dtype))


def _tensor(x):
    return tensor_of(x.view("u2"), "bfloat16") if x.dtype.name == "bfloat16" else x


def updates(a, fn, dtype, n, cells=1):
    """Every instance updates one of a few cells with its own element, and stores what was there."""
    A, C, Old = Memory("A", (n,), dtype), Memory("C", (cells,), dtype), Memory("O", (n,), dtype)

    def body(i):
        cell = IndexVar(i) if cells == n else 0
        old = a.op(Atomic, (), dtype, a.view(C, cell), a.load(A, i), fn)
        a.store(old, Old, i)

    a.loop((n,), body, kind=Parallel)
    return a.program(A, C, Old)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("fn", ["add", "maximum", "minimum"])
def test_contended_updates_are_all_applied(compiled, assembler, fn, dtype, pipeline):
    n = 3001 if dtype not in ("float16", "bfloat16", "int8", "uint8") else 61
    data = _array(RNG.integers(0, 4 if n > 100 else 2, n), dtype)
    if fn != "add" and dtype not in ("uint8", "uint16", "uint32", "uint64"):
        data = _array(RNG.integers(-100, 100, n), dtype)
    cell, old = _array([1], dtype), _array(np.zeros(n), dtype)
    function = compiled(updates(assembler, fn, dtype, n), pipeline)
    function(*map(_tensor, (data, cell, old)))
    wide = data.astype("float64")
    join = {"add": np.sum, "maximum": np.max, "minimum": np.min}[fn]
    assert cell.astype("float64")[0] == join(np.append(wide, 1.0))
    # Each old value is the total of some updates before: nothing was seen twice or torn.
    if fn == "add":
        steps = np.sort(old.astype("float64") + 0)
        assert steps[0] == 1.0
        assert steps[-1] <= cell.astype("float64")[0]
        positive = old.astype("float64")[wide > 0]
        assert len(np.unique(positive)) == len(positive)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fn", ["maximum", "minimum"])
def test_nan_wins_in_either_place(compiled, assembler, fn, dtype):
    values = _array([1, np.nan, -2, np.inf], dtype)
    cells = _array([np.nan, 3, np.inf, -np.inf], dtype)
    expected = getattr(np, fn)(values.astype("float64"), cells.astype("float64"))
    old = _array(np.zeros(4), dtype)
    before = cells.astype("float64")
    compiled(updates(assembler, fn, dtype, 4, 4))(*map(_tensor, (values, cells, old)))
    np.testing.assert_array_equal(cells.astype("float64"), expected)
    np.testing.assert_array_equal(old.astype("float64"), before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_round_once_to_nearest_even(compiled, assembler, dtype):
    a = _array(RNG.standard_normal(500) * 2.0 ** RNG.integers(-9, 9, 500), dtype)
    cells = _array(RNG.standard_normal(500) * 2.0 ** RNG.integers(-9, 9, 500), dtype)
    expected = _array(a.astype("float64") + cells.astype("float64"), dtype)
    old = _array(np.zeros(500), dtype)
    compiled(updates(assembler, "add", dtype, 500, 500))(*map(_tensor, (a, cells, old)))
    np.testing.assert_array_equal(cells.view("u2"), expected.view("u2"))


@pytest.mark.parametrize("dtype", ["int8", "uint64"])
def test_integers_wrap(compiled, assembler, dtype):
    info = np.iinfo(dtype)
    a, cells, old = np.array([1, info.max], dtype), np.array([info.max, info.max], dtype), np.zeros(2, dtype)
    with np.errstate(over="ignore"):
        expected = a + cells
    compiled(updates(assembler, "add", dtype, 2, 2))(a, cells, old)
    np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_lanes_out_of_bounds_or_masked_off_write_nothing_and_give_zero(compiled, assembler, pipeline):
    a = assembler
    C, M, Old = Memory("C", (5, 7), "int32"), Memory("M", (4, 9), "bool"), Memory("O", (4, 9), "int32")
    ones = a.full((4, 9), 2, "int32")
    old = a.op(Atomic, (4, 9), "int32", a.view(C, (-1, 4), (2, 9)), ones, "add", a.load(M))
    a.store(old, Old)
    cells = RNG.integers(1, 9, (5, 7)).astype("int32")
    mask = RNG.random((4, 9)) > 0.4
    found, got = cells.copy(), np.full((4, 9), -1, "int32")
    compiled(a.program(C, M, Old), pipeline)(found, mask, got)
    expected, olds = cells.copy(), np.zeros((4, 9), "int32")
    for i in range(4):
        for j in range(9):
            if mask[i, j] and 0 <= i - 1 < 5 and 0 <= j + 2 < 7:
                olds[i, j] = cells[i - 1, j + 2]
                expected[i - 1, j + 2] += 2
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(got, olds)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_update_whose_old_value_nobody_reads_still_happens(compiled, assembler, pipeline):
    a = assembler
    C = Memory("C", (3,), "float32")
    a.op(Atomic, (3,), "float32", a.view(C), a.full((3,), 1.5, "float32"), "add")
    cells = np.zeros(3, "float32")
    compiled(a.program(C), pipeline)(cells)
    np.testing.assert_array_equal(cells, 1.5)


def test_a_load_before_an_update_sees_the_old_elements(compiled, assembler):
    a = assembler
    C = Memory("C", (40,), "int32")
    shifted = a.load(C, (1, 40))
    a.op(Atomic, (40,), "int32", a.view(C), shifted, "add")
    cells = np.arange(40, dtype="int32")
    expected = cells + np.append(cells[1:], 0)
    compiled(a.program(C))(cells)
    np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("n", [0, 1])
def test_no_and_one_element(compiled, assembler, n):
    data, cell, old = np.ones(n, "float32"), np.zeros(1, "float32"), np.zeros(n, "float32")
    compiled(updates(assembler, "add", "float32", n))(data, cell, old)
    assert cell[0] == n
