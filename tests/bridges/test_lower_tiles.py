"""Gather, concatenation and partial updates of tiles on a CPU."""

import numpy as np
import pytest
import tvm_ffi
from tvm.tirx import AllocBuffer

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.ops import Concat, Extract, Gather, Insert, Number, Reshape, Transpose
from tvm_tile.ir.values import Memory

PIPELINES = ("tirx", "default")
RNG = np.random.default_rng(5)


def integers(*shape, dtype="int32"):
    return RNG.integers(-50, 50, shape).astype(dtype)


def call(compiled, program, *arrays, pipeline="tirx"):
    found = [a.copy() for a in arrays]
    compiled(program, pipeline)(*found)
    return found


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("positions", ["int8", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [((7, 33), 1, 40), ((7, 33), 0, 3), ((5,), 0, 1), ((3, 4, 5), 1, 2), ((4, 1), 1, 0)],
)
def test_gather_takes_along_an_axis_and_fills(compiled, assembler, shape, axis, count, positions, pipeline):
    a = assembler
    result = (*shape[:axis], count, *shape[axis + 1 :])
    A, I, C = Memory("A", shape, "float32"), Memory("I", result, positions), Memory("C", result, "float32")
    # Computed positions: the gather and the arithmetic around it are one loop nest.
    index = a.apply("add", a.load(I), a.full(result, 1, positions))
    taken = a.op(Gather, result, "float32", a.load(A), index, axis, Number.of(-7.5))
    a.store(a.apply("multiply", taken, a.full(result, 2.0, "float32")), C)
    n = shape[axis]
    x = RNG.standard_normal(shape).astype("float32")
    low = 0 if positions.startswith("u") else -3
    i = RNG.integers(low, n + 3, result).astype(positions)
    if positions == "uint64" and i.size:
        i.flat[0] = 2**64 - 5
    with np.errstate(over="ignore"):
        at = i + i.dtype.type(1)
    inside = (at >= 0) & (at < n)
    expected = (
        np.where(inside, np.take_along_axis(x, np.where(inside, at, 0).astype("int64"), axis), -7.5) * 2
    )
    found = call(compiled, a.program(A, I, C), x, i, np.zeros(result, "float32"), pipeline=pipeline)
    np.testing.assert_array_equal(found[2], expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_gather_from_nothing_and_from_a_computed_table(compiled, assembler, pipeline):
    a = assembler
    A, I, C, D = (Memory("A", (6,), "int32"), Memory("I", (9,), "int32"), Memory("C", (9,), "int32"),
                  Memory("D", (9,), "int32"))  # fmt: skip
    i = a.load(I)
    empty = a.op(Extract, (0,), "int32", a.load(A), a.subscripts((6,), [(0, 0)]))
    a.store(a.op(Gather, (9,), "int32", empty, i, 0, Number.of(3)), C)
    x = a.load(A)
    a.store(a.op(Gather, (9,), "int32", a.apply("multiply", x, x), i, 0), D)
    values, places = integers(6), RNG.integers(-2, 8, 9).astype("int32")
    found = call(compiled, a.program(A, I, C, D), values, places, np.zeros(9, "int32"), np.zeros(9, "int32"),
                 pipeline=pipeline)  # fmt: skip
    np.testing.assert_array_equal(found[2], 3)
    inside = (places >= 0) & (places < 6)
    np.testing.assert_array_equal(found[3], np.where(inside, (values**2)[np.where(inside, places, 0)], 0))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(3,), (1, 17), (0, 4, 9), (5, 0, 0)])
def test_concatenation_joins_in_order(compiled, assembler, axis, sizes, pipeline):
    a = assembler
    shapes = [(n, 11) if axis == 0 else (11, n) for n in sizes]
    memories = [Memory(f"A{k}", shape, "int32") for k, shape in enumerate(shapes)]
    total = (sum(sizes), 11) if axis == 0 else (11, sum(sizes))
    C = Memory("C", total, "int32")
    parts = []
    for k, memory in enumerate(memories):
        x = a.load(memory)
        parts.append(a.apply("negative", x) if k % 2 else x)
    joined = a.op(Concat, total, "int32", tuple(parts), axis)
    a.store(a.apply("add", joined, a.full(total, 1, "int32")), C)
    arrays = [integers(*shape) for shape in shapes]
    found = call(compiled, a.program(*memories, C), *arrays, np.zeros(total, "int32"), pipeline=pipeline)[-1]
    expected = np.concatenate([-x if k % 2 else x for k, x in enumerate(arrays)], axis) + 1
    np.testing.assert_array_equal(found, expected)


def test_a_tile_joined_with_itself_becomes_the_state(compiled, assembler):
    """The state is read at other positions than it is written: it may not be overwritten early."""
    a = assembler
    A = Memory("A", (10,), "int32")

    def body(i, state):
        low = a.op(Extract, (5,), "int32", state, a.subscripts((10,), [(0, 5)]))
        high = a.op(Extract, (5,), "int32", state, a.subscripts((10,), [(5, 5)]))
        return a.op(Concat, (10,), "int32", (high, a.apply("add", low, low)), 0)

    (result,) = a.loop((3,), body, [a.load(A)])
    a.store(result, A)
    x = integers(10)
    expected = x.copy()
    for _ in range(3):
        expected = np.concatenate([expected[5:], 2 * expected[:5]])
    np.testing.assert_array_equal(call(compiled, a.program(A), x)[0], expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("start", [-3, 0, 4, 30])
def test_an_insert_leaves_its_operand_alone_and_drops_what_is_outside(compiled, assembler, start, pipeline):
    a = assembler
    A, C, D = (Memory(name, (6, 20), "float32") for name in "ACD")
    V = Memory("V", (9,), "float32")
    x = a.load(A)
    y = a.op(Insert, (6, 20), "float32", x, a.subscripts((6, 20), [2, (start, 9, 2)]), a.load(V))
    z = a.op(Insert, (6, 20), "float32", y, a.subscripts((6, 20), [(3, 2), 1]), a.full((2,), 5.0, "float32"))
    a.store(z, C)
    a.store(x, D)
    data, values = RNG.standard_normal((6, 20)).astype("float32"), RNG.standard_normal(9).astype("float32")
    empty = np.zeros((6, 20), "float32")
    found = call(compiled, a.program(A, V, C, D), data, values, empty, empty, pipeline=pipeline)
    expected = data.copy()
    for k in range(9):
        if 0 <= start + 2 * k < 20:
            expected[2, start + 2 * k] = values[k]
    expected[3:5, 1] = 5
    np.testing.assert_array_equal(found[2], expected)
    np.testing.assert_array_equal(found[3], data)


def test_versions_that_are_read_later_keep_their_own_storage(compiled, assembler):
    a = assembler
    A, C = Memory("A", (8,), "int32"), Memory("C", (4, 8), "int32")

    def put(tile, at, value):
        return a.op(Insert, (8,), "int32", tile, a.subscripts((8,), [at]), a.full((), value, "int32"))

    x = a.apply("add", a.load(A), a.full((8,), 1, "int32"))
    reshaped = a.op(Reshape, (2, 4), "int32", x)
    y = put(x, 1, 100)
    z = put(y, 2, 200)
    w = put(y, 3, 300)
    for row, tile in enumerate((y, z, w)):
        a.store(tile, C, row)
    a.store(a.op(Reshape, (8,), "int32", a.op(Transpose, (4, 2), "int32", reshaped, (1, 0))), C, 3)
    data = integers(8)
    found = call(compiled, a.program(A, C), data, np.zeros((4, 8), "int32"))[1]
    base = data + 1
    expected = np.stack([base] * 3)
    expected[:, 1] = 100
    expected[1, 2], expected[2, 3] = 200, 300
    np.testing.assert_array_equal(found[:3], expected)
    np.testing.assert_array_equal(found[3], base.reshape(2, 4).T.reshape(8))


def test_a_state_is_updated_with_parts_of_itself(compiled, assembler):
    a = assembler
    A = Memory("A", (12,), "int32")

    def body(i, state):
        part = a.op(Extract, (8,), "int32", state, a.subscripts((12,), [(0, 8)]))
        moved = a.op(Insert, (12,), "int32", state, a.subscripts((12,), [(2, 8)]), part)
        last = a.op(Extract, (), "int32", moved, a.subscripts((12,), [11]))
        first = a.op(Extract, (), "int32", state, a.subscripts((12,), [3]))
        return a.op(Insert, (12,), "int32", moved, a.subscripts((12,), [i]), a.apply("add", last, first))

    (result,) = a.loop((3,), body, [a.load(A)])
    a.store(result, A)
    x = integers(12)
    expected = x.copy()
    for i in range(3):
        before = expected.copy()
        expected[2:10] = before[:8]
        expected[i] = expected[11] + before[3]
    np.testing.assert_array_equal(call(compiled, a.program(A), x)[0], expected)


def test_a_gather_reads_memory_itself_unless_a_store_comes_between(compiled, assembler):
    a = assembler
    A, I, C, D = (Memory("A", (50, 30), "float32"), Memory("I", (4, 30), "int32"),
                  Memory("C", (4, 30), "float32"), Memory("D", (4, 30), "float32"))  # fmt: skip
    index = a.load(I)
    direct = a.op(Gather, (4, 30), "float32", a.apply("negative", a.load(A)), index, 0)
    a.store(direct, C)
    before = a.op(Gather, (4, 30), "float32", a.load(A), index, 0)
    a.store(a.full((50, 30), 0.0, "float32"), A)
    a.store(before, D)
    program = a.program(A, I, C, D)
    sizes = []
    function = lower_program(program, host_target())
    tvm_ffi.structural_walk(
        function.body, (AllocBuffer, lambda node: sizes.append(int(node.buffer.shape[0])))
    )
    assert sizes.count(50 * 30) == 1
    x = RNG.standard_normal((50, 30)).astype("float32")
    i = RNG.integers(-2, 53, (4, 30)).astype("int32")
    found = call(compiled, program, x, i, np.zeros((4, 30), "float32"), np.zeros((4, 30), "float32"))
    inside = (i >= 0) & (i < 50)
    taken = np.where(inside, np.take_along_axis(x, np.where(inside, i, 0), 0), 0)
    np.testing.assert_array_equal(found[2], -taken)
    np.testing.assert_array_equal(found[3], taken)


def test_a_gather_from_a_window_over_the_edge(compiled, assembler):
    a = assembler
    A, I, C = Memory("A", (9,), "int32"), Memory("I", (7,), "int32"), Memory("C", (7,), "int32")
    window = a.load(A, (-3, 15), fill=Number.of(-1))
    a.store(a.op(Gather, (7,), "int32", window, a.load(I), 0, Number.of(-2)), C)
    x, i = integers(9), np.array([0, 2, 3, 11, 12, 14, 15], "int32")
    expected = np.append(np.pad(x, 3, constant_values=-1), -2)[i]
    np.testing.assert_array_equal(call(compiled, a.program(A, I, C), x, i, np.zeros(7, "int32"))[2], expected)
