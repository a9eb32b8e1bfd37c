"""Partial updates of outer tiles in parallel regions on a CPU: joins, own versions, combines, nesting."""

import numpy as np
import pytest
import tvm_ffi
from tvm.tirx import AllocBuffer, For, ForKind

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.index import IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.ops import Extract, FromIndex, Insert
from tvm_tile.ir.regions import Parallel, Serial
from tvm_tile.ir.values import Memory

PIPELINES = ("tirx", "default")
RNG = np.random.default_rng(9)


def integers(*shape):
    return RNG.integers(-50, 50, shape).astype("int32")


def put(a, tile, value, *subscripts, combine=None):
    return a.op(Insert, tile.shape, tile.dtype, tile, a.subscripts(tile.shape, subscripts), value, combine)


def part(a, tile, *subscripts):
    found = a.subscripts(tile.shape, subscripts)
    return a.op(
        Extract, a.view(Memory("", tile.shape, tile.dtype), *subscripts).shape, tile.dtype, tile, found
    )


def number(a, i):
    return a.cast(a.op(FromIndex, (), "int64", IndexVar(i)), "int32")


def const(a, shape, value):
    return a.full(shape, value, "int32")


def times(i, factor):
    return IndexBinary("*", IndexVar(i), IndexConst(factor))


def call(compiled, program, *arrays, pipeline="tirx"):
    found = [a.copy() for a in arrays]
    compiled(program, pipeline)(*found)
    return found


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_instances_patch_their_rows_and_read_the_value_from_before(compiled, assembler, n, pipeline):
    a = assembler
    A, C, D = (Memory(name, (24, 10), "int32") for name in "ACD")

    def body(i, tile):
        before = part(a, tile, (IndexBinary("-", times(i, 3), IndexConst(1)), 3))
        return put(a, tile, a.apply("add", before, const(a, (3, 10), 100)), (times(i, 3), 3))

    tile = a.load(A)
    (result,) = a.loop((n,), body, [tile], kind=Parallel)
    a.store(result, C)
    a.store(tile, D)
    x = integers(24, 10)
    found = call(compiled, a.program(A, C, D), x, np.zeros_like(x), np.zeros_like(x), pipeline=pipeline)
    expected = x.copy()
    padded = np.vstack([np.zeros((1, 10), "int32"), x])
    for i in range(n):
        rows = min(3, 24 - 3 * i)
        if rows > 0:
            expected[3 * i : 3 * i + rows] = padded[3 * i : 3 * i + 3][:rows] + 100
    np.testing.assert_array_equal(found[1], expected)
    np.testing.assert_array_equal(found[2], x)


def _parallel_loops(program):
    found = []
    function = lower_program(program, host_target())
    tvm_ffi.structural_walk(function.body, (For, lambda loop: found.append(loop.kind == ForKind.PARALLEL)))
    return sum(found)


def test_patches_are_written_by_worker_threads_and_combines_are_not(assembler):
    a = assembler
    A = Memory("A", (40,), "int32")
    (joined,) = a.loop((40,), lambda i, t: put(a, t, const(a, (), 1), i), [a.load(A)], kind=Parallel)
    assert _parallel_loops(a.program(A)) == 0  # nothing is stored yet
    a.store(joined, A)
    assert _parallel_loops(a.program(A)) == 1
    (total,) = a.loop(
        (40,), lambda i, t: put(a, t, const(a, (), 1), 0, combine="add"), [a.load(A)], kind=Parallel
    )
    a.store(total, A)
    assert _parallel_loops(a.program(A)) == 1


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_instance_reads_its_own_version(compiled, assembler, pipeline):
    a = assembler
    A, C = Memory("A", (6, 8), "int32"), Memory("C", (6, 8), "int32")

    def body(i, tile):
        once = put(a, tile, part(a, tile, i, (1, 8)), i, (0, 8))
        twice = put(a, once, a.apply("add", part(a, once, i, (0, 4)), part(a, once, i, (4, 4))), i, (2, 4))
        return put(a, twice, a.apply("add", part(a, twice, i, 3), part(a, once, i, 3)), i, 0)

    (result,) = a.loop((6,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x = integers(6, 8)
    found = call(compiled, a.program(A, C), x, np.zeros_like(x), pipeline=pipeline)[1]
    expected = np.hstack([x[:, 1:], np.zeros((6, 1), "int32")])
    once = expected.copy()
    expected[:, 2:6] = once[:, :4] + once[:, 4:]
    expected[:, 0] = expected[:, 3] + once[:, 3]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("reads", [False, True])
def test_chains_through_branches_and_serial_loops(compiled, assembler, reads, pipeline):
    a = assembler
    A, C = Memory("A", (5, 9), "int32"), Memory("C", (5, 9), "int32")

    def body(i, tile):
        def step(j, state):
            value = a.apply("add", part(a, state if reads else tile, i, j), number(a, j))
            odd = a.apply(
                "equal", a.apply("remainder", value, const(a, (), 2)), const(a, (), 1), dtype="bool"
            )
            (after,) = a.branch(
                odd,
                lambda: put(a, state, value, i, IndexBinary("+", IndexVar(j), IndexConst(1))),
                lambda: put(a, put(a, state, const(a, (), -1), i, j), const(a, (), -2), i, 8),
            )
            return after

        (row,) = a.loop((6,), step, [tile])
        return put(a, row, const(a, (), 77), i, 7)

    (result,) = a.loop((5,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x = integers(5, 9)
    found = call(compiled, a.program(A, C), x, np.zeros_like(x), pipeline=pipeline)[1]
    expected = x.copy()
    for i in range(5):
        for j in range(6):
            value = (expected if reads else x)[i, j] + j
            if value % 2:
                expected[i, j + 1] = value
            else:
                expected[i, j], expected[i, 8] = -1, -2
        expected[i, 7] = 77
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_branch_that_keeps_one_of_two_versions(compiled, assembler, pipeline):
    """Both versions are made by every instance; only the one that is yielded counts."""
    a = assembler
    A, C = Memory("A", (9,), "int32"), Memory("C", (9,), "int32")

    def body(i, tile):
        left = put(a, tile, const(a, (), 1000), i)
        right = put(a, tile, const(a, (), 2000), IndexBinary("+", IndexVar(i), IndexConst(4)))
        even = a.apply(
            "equal", a.apply("remainder", number(a, i), const(a, (), 2)), const(a, (), 0), dtype="bool"
        )
        (kept,) = a.branch(even, lambda: left, lambda: right)
        return kept

    (result,) = a.loop((4,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x = integers(9)
    found = call(compiled, a.program(A, C), x, np.zeros_like(x), pipeline=pipeline)[1]
    expected = x.copy()
    expected[[0, 2]], expected[[5, 7]] = 1000, 2000
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("inserts", [1, 2])
def test_values_of_several_instances_combine_without_the_old_one(compiled, assembler, inserts, pipeline):
    a = assembler
    A, B, C = Memory("A", (7,), "int32"), Memory("B", (30,), "int32"), Memory("C", (7,), "int32")

    def body(i, tile):
        cell = IndexBinary("%", times(i, 3), IndexConst(5))
        value = a.load(B, i)
        if inserts == 2:
            # What an instance writes first is replaced by what it writes next.
            tile = put(a, tile, a.apply("add", value, value), cell, combine="add")
        return put(a, tile, value, cell, combine="add")

    (result,) = a.loop((30,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x, b = integers(7), integers(30)
    found = call(compiled, a.program(A, B, C), x, b, np.zeros_like(x), pipeline=pipeline)[2]
    expected = x.copy()
    for cell in range(5):
        expected[cell] = sum(b[i] for i in range(30) if 3 * i % 5 == cell)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("inner", [Parallel, Serial])
def test_nested_regions_join_step_by_step(compiled, assembler, inner, reads, pipeline):
    a = assembler
    A, C = Memory("A", (4, 6), "int32"), Memory("C", (4, 6), "int32")

    def body(i, tile):
        def row(j, state):
            before = part(a, state, i, IndexBinary("+", IndexVar(j), IndexConst(1)))
            return put(a, state, a.apply("add", before, const(a, (), 10)), i, j)

        (rows,) = a.loop((6,), row, [tile], kind=inner)
        if not reads:
            return rows
        return put(a, rows, a.apply("add", part(a, rows, i, 0), part(a, rows, i, 1)), i, 5)

    (result,) = a.loop((4,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x = integers(4, 6)
    found = call(compiled, a.program(A, C), x, np.zeros_like(x), pipeline=pipeline)[1]
    expected = np.hstack([x[:, 1:], np.zeros((4, 1), "int32")]) + 10
    if reads:
        expected[:, 5] = expected[:, 0] + expected[:, 1]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_nested_combines_join_inside_first(compiled, assembler, pipeline):
    a = assembler
    A, B, C = Memory("A", (5,), "int32"), Memory("B", (3, 4), "int32"), Memory("C", (5,), "int32")

    def body(i, tile):
        def column(j, state):
            cell = IndexBinary("%", IndexVar(j), IndexConst(2))
            return put(a, state, a.load(B, i, j), cell, combine="maximum")

        (joined,) = a.loop((4,), column, [tile], kind=Parallel)
        return put(a, joined, const(a, (), 7), 3, combine="maximum")

    (result,) = a.loop((3,), body, [a.load(A)], kind=Parallel)
    a.store(result, C)
    x, b = integers(5) + 1000, integers(3, 4)
    found = call(compiled, a.program(A, B, C), x, b, np.zeros_like(x), pipeline=pipeline)[2]
    expected = x.copy()
    expected[0], expected[1], expected[3] = b[:, ::2].max(), b[:, 1::2].max(), 7
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_patched_and_anchored_states_side_by_side_in_a_serial_loop(compiled, assembler, pipeline):
    a = assembler
    A, C, D = Memory("A", (12,), "int32"), Memory("C", (12,), "int32"), Memory("D", (), "int32")

    def sweep(t, tile, count):
        def body(i, state, counter):
            left = part(a, state, IndexBinary("-", IndexVar(i), IndexConst(1)))
            value = a.apply("add", left, a.apply("add", part(a, state, i), counter))
            return put(a, state, value, i), a.apply("add", counter, const(a, (), 1))

        return a.loop((12,), body, [tile, count], kind=Parallel)

    tile, count = a.loop((3,), sweep, [a.load(A), const(a, (), 0)])
    a.store(tile, C)
    a.store(count, D)
    x = integers(12)
    found = call(compiled, a.program(A, C, D), x, np.zeros_like(x), np.zeros((), "int32"), pipeline=pipeline)
    expected = x.copy()
    for t in range(3):
        expected = expected + np.append([0], expected[:-1]).astype("int32") + t
    np.testing.assert_array_equal(found[1], expected)
    assert found[2] == 3


@pytest.mark.parametrize("dtype", ["float16", "bool", "bfloat16"])
def test_narrow_tiles_are_patched_in_their_registers(compiled, assembler, dtype):
    a = assembler
    A, C = Memory("A", (33,), "float32"), Memory("C", (33,), "float32")
    tile = a.cast(a.load(A), dtype)

    def body(i, state):
        return put(
            a, state, a.cast(a.load(A, IndexBinary("+", IndexVar(i), IndexConst(1))), dtype), times(i, 2)
        )

    (result,) = a.loop((17,), body, [tile], kind=Parallel)
    a.store(a.cast(result, "float32"), C)
    x = integers(33).astype("float32") * (RNG.random(33) > 0.5)
    x = x.astype("float32")
    found = call(compiled, a.program(A, C), x, np.zeros_like(x))[1]
    plain = (x != 0).astype("float32") if dtype == "bool" else x
    expected = plain.copy()
    expected[::2] = plain[1:18]
    np.testing.assert_array_equal(found, expected)


def _copies(program):
    """Names of the temporaries of the program's size that its function has."""
    function = lower_program(program, host_target())
    found = []
    tvm_ffi.structural_walk(
        function.body, (AllocBuffer, lambda node: found.append(int(node.buffer.shape[0])))
    )
    return found.count(999)


@pytest.mark.parametrize("reads", [False, True])
def test_a_state_is_patched_in_place_unless_an_instance_reads_it(compiled, assembler, reads):
    a = assembler
    A, B = Memory("A", (999,), "int32"), Memory("B", (999,), "int32")

    def sweep(t, tile):
        def body(i, state):
            value = part(a, state, IndexBinary("+", IndexVar(i), IndexConst(1))) if reads else a.load(B, i)
            return put(a, state, value, i)

        return a.loop((998,), body, [tile], kind=Parallel)

    (result,) = a.loop((3,), sweep, [a.load(A)])
    a.store(result, A)
    program = a.program(A, B)
    assert _copies(program) == (2 if reads else 1)
    x, b = integers(999), integers(999)
    found = call(compiled, program, x, b)[0]
    expected = np.append(b[:-1], x[-1:])
    if reads:
        expected = x.copy()
        for _ in range(3):
            expected[:-1] = expected[1:].copy()
    np.testing.assert_array_equal(found, expected)


def test_states_that_change_places_are_patched_apart(compiled, assembler):
    a = assembler
    A, B = Memory("A", (30,), "int32"), Memory("B", (30,), "int32")

    def sweep(t, p, q):
        def body(i, x, y):
            return put(a, x, part(a, y, i), i), put(a, y, const(a, (), 5), times(i, 2))

        return a.loop((10,), body, [q, p], kind=Parallel)

    p, q = a.loop((3,), sweep, [a.load(A), a.load(B)])
    a.store(p, A)
    a.store(q, B)
    x, y = integers(30), integers(30)
    found = call(compiled, a.program(A, B), x, y)
    for _ in range(3):
        p, q = y.copy(), x.copy()
        p[:10] = x[:10]
        q[0:20:2] = 5
        x, y = p, q
    np.testing.assert_array_equal(found[0], x)
    np.testing.assert_array_equal(found[1], y)
