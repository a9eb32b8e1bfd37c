"""Explicit memory on a CPU: layouts, strides, scopes, fresh lives, bounds."""

import numpy as np
import pytest

from tvm_tile.ir.index import AddressMap, IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.ops import Alloc, Atomic, Number
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.values import Memory

PIPELINES = ("tirx", "default")
RNG = np.random.default_rng(12)


def index(op, a, b):
    a, b = (
        IndexConst(e) if isinstance(e, int) else IndexVar(e) if not hasattr(e, "op") else e for e in (a, b)
    )
    return IndexBinary(op, a, b)


def swizzled(rows, columns):
    """Row-major with columns rotated by the row: a bijection no strides express."""
    i, j = AddressMap.axis(0), AddressMap.axis(1)
    rotated = index("%", index("+", j, index("*", i, 3)), columns)
    return AddressMap((i, j), index("+", index("*", i, columns), rotated), rows * columns)


def layouts(rows, columns):
    return {
        "dense": {},
        "padded": {"strides": (columns + 5, 1)},
        "columns first": {"strides": (1, rows)},
        "rotated": {"layout": swizzled(rows, columns)},
    }


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("layout", ["dense", "padded", "columns first", "rotated"])
@pytest.mark.parametrize("scope", ["local", "shared", "global"])
def test_elements_come_back_from_where_they_were_put(compiled, assembler, layout, scope, pipeline):
    a = assembler
    A, C, D = (
        Memory("A", (6, 35), "float32"),
        Memory("C", (6, 35), "float32"),
        Memory("D", (8, 37), "float32"),
    )
    T = Memory("T", (6, 35), "float32", scope=scope, **layouts(6, 35)[layout])
    a.emit(Alloc(T))
    a.store(a.load(A), T)
    a.store(a.full((9, 40), 5.0, "float32"), T, (4, 9), (33, 40))
    a.store(a.load(T), C)
    a.store(a.load(T, (-1, 8), (-1, 37), fill=Number.of(-2.5)), D)
    x = RNG.standard_normal((6, 35)).astype("float32")
    c, d = np.zeros((6, 35), "float32"), np.zeros((8, 37), "float32")
    compiled(a.program(A, C, D), pipeline)(x, c, d)
    expected = x.copy()
    expected[4:, 33:] = 5
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(d, np.pad(expected, 1, constant_values=-2.5))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "float8_e4m3fn"]
)
def test_every_dtype_is_kept_as_it_is(compiled, assembler, dtype, pipeline):
    a = assembler
    A, C = Memory("A", (50,), "float32"), Memory("C", (50,), "float32")
    T = Memory("T", (50,), dtype, scope="local")
    a.emit(Alloc(T))
    a.store(a.cast(a.load(A), dtype), T)
    a.store(a.cast(a.load(T), "float32"), C)
    x = RNG.integers(0, 2 if dtype == "bool" else 16, 50).astype("float32")
    found = np.zeros(50, "float32")
    compiled(a.program(A, C), pipeline)(x, found)
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_each_instance_has_its_own(compiled, assembler, pipeline):
    a = assembler
    A, C = Memory("A", (40, 300), "int32"), Memory("C", (40, 300), "int32")

    def body(i):
        T = Memory("T", (300,), "int32", scope="local")
        a.emit(Alloc(T))
        a.store(a.load(A, i), T)

        def swap(j):
            low, high = a.load(T, j), a.load(T, index("-", 299, j))
            a.store(high, T, j)
            a.store(low, T, index("-", 299, j))

        a.loop((150,), swap)
        a.store(a.load(T), C, i)

    a.loop((40,), body, kind=Parallel)
    x = RNG.integers(0, 99, (40, 300)).astype("int32")
    found = np.zeros_like(x)
    compiled(a.program(A, C), pipeline)(x, found)
    np.testing.assert_array_equal(found, x[:, ::-1])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_memory_outside_of_a_region_is_shared_by_its_instances(compiled, assembler, pipeline):
    a = assembler
    A, C = Memory("A", (200,), "int32"), Memory("C", (8,), "int32")
    T = Memory("T", (8,), "int32", scope="global", strides=(3,))
    a.emit(Alloc(T))
    a.store(a.full((8,), 0, "int32"), T)

    def body(i):
        a.op(Atomic, (), "int32", a.view(T, index("%", i, 8)), a.load(A, i), "add")

    a.loop((200,), body, kind=Parallel)
    a.store(a.load(T), C)
    x = RNG.integers(0, 99, 200).astype("int32")
    found = np.zeros(8, "int32")
    compiled(a.program(A, C), pipeline)(x, found)
    np.testing.assert_array_equal(found, x.reshape(25, 8).sum(0))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1, 1)])
def test_memories_of_no_or_one_element(compiled, assembler, shape, pipeline):
    a = assembler
    A, C = Memory("A", shape, "int32"), Memory("C", shape, "int32")
    T = Memory("T", shape, "int32", scope="local")
    a.emit(Alloc(T))
    a.store(a.load(A), T)
    a.store(a.load(T), C)
    x, found = np.full(shape, 3, "int32"), np.zeros(shape, "int32")
    compiled(a.program(A, C), pipeline)(x, found)
    np.testing.assert_array_equal(found, x)


def test_a_load_is_a_snapshot_of_explicit_memory(compiled, assembler):
    a = assembler
    C, T = Memory("C", (2, 40), "int32"), Memory("T", (40,), "int32", scope="local")
    a.emit(Alloc(T))
    a.store(a.full((40,), 1, "int32"), T)
    before = a.load(T)
    a.store(a.full((40,), 2, "int32"), T)
    a.store(before, C, 0)
    a.store(a.load(T), C, 1)
    found = np.zeros((2, 40), "int32")
    compiled(a.program(C))(found)
    np.testing.assert_array_equal(found, [[1] * 40, [2] * 40])
