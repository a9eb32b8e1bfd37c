"""Explicit memory: names, lifetime, layouts, and what is refused."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError, UnsupportedError
from tvm_tile.frontend.tensor import Tensor
from tvm_tile.ir.ops import Alloc
from tvm_tile.ir.structure import walk

F = np.arange(35, dtype="f4").reshape(5, 7)


def memories(program):
    return [op.memory for op in walk(program) if isinstance(op, Alloc)]


def interpreted(kernel, *arrays):
    copies = [array.copy() for array in arrays]
    program = kernel.trace(*copies)
    assert tt.parse(str(program)) == program
    tt.interpret(program, *copies, debug=True)
    return copies


LAYOUTS = [
    None,
    (1, 5),
    (8, 1),
    [7, 1],
    lambda i, j: i * 8 + (j + i) % 8,
    lambda i, j: (4 - i) * 7 + j,
    lambda i, j: tt.minimum(i, 2) * 7 + tt.maximum(i - 2, 0) * 100 + j,
    lambda i, j: (i * 7 + j) // 5 * 6 + (i * 7 + j) % 5,
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "i1", "?"])
def test_memory_holds_what_is_stored_in_any_layout(layout, dtype):
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            m = tt.alloc((5, 7), X.dtype, layout=layout)
            assert isinstance(m, Tensor)
            assert (m.shape, m.dtype) == ((5, 7), X.dtype)
            m[...] = X[...]
            m[tt.ds(1, 2), 3] = X[0, tt.ds(0, 2)]
            Y[...] = m[...]

    x = F.astype(dtype)
    expected = x.copy()
    expected[1:3, 3] = x[0, :2]
    np.testing.assert_array_equal(interpreted(k, x, np.zeros_like(x))[1], expected)


def test_memory_is_fresh_for_each_instance_and_stores_in_loops_are_effects():
    @tt.kernel
    def k(Y):
        for i in tt.parallel(3):
            sums = tt.alloc((2,), "int32")
            sums[:] = 0
            for j in tt.serial(4):
                sums[j % 2] = sums[j % 2] + tt.cast(i + j, "int32")
                if j > 2:
                    sums.at[0].store(sums[0] + 100)
            Y[i, :] = sums[:]

    program = k.trace(np.zeros((3, 2), "i4"))
    (loop,) = [s for s in walk(program) if type(s).__name__ == "Serial"]
    assert loop.args == ()
    (y,) = interpreted(k, np.zeros((3, 2), "i4"))
    assert y.tolist() == [[102 + 2 * i, 4 + 2 * i] for i in range(3)]


def test_memories_are_named_after_variables_and_unique():
    def helper(n):
        buffer = tt.alloc((n,), "float32")
        buffer[:] = 0.0
        return buffer

    @tt.kernel
    def inner(X):
        X = tt.alloc((2,), "float32")
        X[:] = 0.0

    @tt.kernel
    def k(X):
        first, second = tt.alloc((3,), "int8"), tt.alloc((3,), "int8", memory="shared")
        scratch: tt.Scalar = tt.alloc(4, "float64", "global")
        helper(2)
        named = helper(3)
        if (late := tt.alloc((), "bool")) is not None:
            tt.alloc((1,), "float16")
        inner(X)
        for memory in (first, second, scratch, named, late):
            assert memory.dtype

    found = memories(k.trace(F))
    assert [m.name for m in found] == [
        "first",
        "second",
        "scratch",
        "buffer",
        "buffer_2",
        "late",
        "memory",
        "X_2",
    ]
    assert [m.scope for m in found[:4]] == ["local", "shared", "global", "local"]
    assert [m.shape for m in found[2:6]] == [(4,), (2,), (3,), ()]


def test_strides_and_functions_are_kept_in_the_program():
    @tt.kernel
    def k(X):
        dense = tt.alloc((5, 7), "float32", layout=(7, 1))
        padded = tt.alloc((5, 7), "float32", layout=(8, 1))
        mapped = tt.alloc((5, 7), "float32", layout=lambda i, j: i * 9 + j + 2)
        empty = tt.alloc((0, 7), "float32", layout=lambda i, j: 0)
        one = tt.alloc((1, 1), "float32", layout=(0, 0))
        for memory in (dense, padded, mapped, empty, one):
            assert memory.dtype

    dense, padded, mapped, empty, one = memories(k.trace(F))
    assert [m.strides for m in (dense, one)] == [None, None]
    assert padded.strides == (8, 1)
    assert mapped.layout.size == 4 * 9 + 6 + 2 + 1
    assert empty.layout.size == 0


def test_large_memory_with_nested_strides_needs_no_enumeration():
    @tt.kernel
    def k(X):
        m = tt.alloc((1 << 20, 1 << 20), "int8", layout=lambda i, j: j * (1 << 20) + i)
        assert m.size == 1 << 40

    assert memories(k.trace(F))[0].layout.size == 1 << 40


@pytest.mark.parametrize(
    ("shape", "layout", "kind", "words"),
    [
        ((16,), lambda i: i % 8, IllegalError, ("'m'", "16 elements", "8 addresses", "(0,)", "(8,)")),
        ((4, 4), (2, 1), IllegalError, ("'m'", "16 elements", "10 addresses")),
        ((4, 4), (0, 1), IllegalError, ("16 elements", "4 addresses")),
        ((4,), (-1,), IllegalError, ("'m'", "negative address -3", "offset")),
        ((4, 4), lambda i, j: (i * 4 + j) % 5 - 7 + i * 10 + j * 50, IllegalError, ("negative address -7",)),
        ((4,), lambda i: 2 - i, IllegalError, ("negative address -1",)),
        ((4,), (1 << 62,), IllegalError, ("'m'", "64 bits")),
        ((4, 4), (4,), CaptureError, ("'m'", "(4, 4)", "one stride an axis")),
        ((4, 4), 4, CaptureError, ("one stride an axis",)),
        ((4, 4), (4.0, 1), CaptureError, ("one stride an axis",)),
        ((4,), lambda i: i ^ 1, CaptureError, ("'m'", "tt.minimum")),
        ((4,), lambda i: None, CaptureError, ("None",)),
        ((4,), lambda i: i * 1.5, CaptureError, ("'m'",)),
        ((4, 4), lambda i: i, CaptureError, ("positional argument",)),
        ((1 << 12, 1 << 12), lambda i, j: (i * 4096 + j) % (1 << 24), UnsupportedError, ("'m'", "16777216")),
    ],
)
def test_layouts_that_are_no_one_to_one_maps_are_refused(refused, shape, layout, kind, words):
    @tt.kernel
    def k(X):
        m = tt.alloc(shape, "float32", layout=layout)
        m[...] = 0.0

    refused(kind, lambda: k.trace(F), *words)


def test_a_layout_reads_no_loop_variable(refused):
    @tt.kernel
    def k(X):
        for r in tt.serial(4):
            m = tt.alloc((4,), "float32", layout=lambda i: i + r)  # noqa: B023 the reading is refused
            m[...] = 0.0

    refused(CaptureError, lambda: k.trace(F), "'m'", "change while the program runs")


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (((-1,), "float32"), CaptureError, ("negative",)),
        (((2.5,), "float32"), CaptureError, ("2.5",)),
        (((2,), "float31"), OperandError, ("float31", "did you mean")),
        (((2,), None), OperandError, ("dtype None",)),
        (((2,), "float32", "param"), CaptureError, ("'param'", "doctor")),
        (((2,), "float32", 3), CaptureError, ("3",)),
        (((2,), "float32", "two words"), CaptureError, ("two words",)),
    ],
)
def test_arguments_that_make_no_memory_are_refused(refused, arguments, kind, words):
    @tt.kernel
    def k(X):
        tt.alloc(*arguments)

    refused(kind, lambda: k.trace(F), *words)


def test_memory_ends_with_its_block(refused):
    @tt.kernel
    def k(X):
        kept = []
        for _ in tt.parallel(2):
            kept.append(tt.alloc((2,), "float32"))
        X[0, 0] = kept[0][0]

    refused(
        CaptureError, lambda: k.trace(F), "lives in a parallel body", "before the region", at="kept[0][0]"
    )

    @tt.kernel
    def outside(X):
        for _ in tt.parallel(2):
            m = tt.alloc((2,), "float32")
            m[:] = 0.0
        X[0, 0] = m[0]

    refused(CaptureError, lambda: outside.trace(F), "'m'")


def test_memory_outside_of_a_kernel_is_refused(refused):
    refused(CaptureError, lambda: tt.alloc((2,), "float32"), "tt.alloc", "captured")


@pytest.mark.parametrize("where", ["merge", "map", "reduce"])
def test_pure_functions_allocate_nothing(refused, where):
    def allocate(x, y=None):
        tt.alloc((2,), "float32")
        return x

    @tt.kernel
    def k(X):
        if where == "merge":
            tt.reduce_tile(X[...], 0, tt.Merge(allocate, 0.0), policy="fold_left")
        elif where == "map":
            tt.map(allocate, X[...])
        else:
            allocated = tt.zeros((), "float32")
            for i in tt.reduce(2, merge=tt.Merge(allocate, 0.0)):
                allocated = allocated + X[0, i]

    refused(CaptureError, lambda: k.trace(F), "no stores")


def test_load_is_a_function_too():
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            m = tt.alloc((5, 7), "float32")
            m[...] = tt.load(X)
            part = tt.load(m.at[tt.ds(3, 5), :], fill=9, mask=tt.iota(7, "int32") < 3)
            Y[...] = part

    expected = np.full((5, 7), 9, "f4")
    expected[:2, :3] = F[3:, :3]
    np.testing.assert_array_equal(interpreted(k, F, np.zeros_like(F))[1], expected)


def test_load_takes_memory_and_paths_alone(refused, tmp_path):
    @tt.kernel
    def k(X):
        tt.load(X[...])

    refused(CaptureError, lambda: k.trace(F), "A.at[idx]", at="tt.load(X[...])")
    with pytest.raises(tt.TileError):
        tt.load(tmp_path / "missing.so")
