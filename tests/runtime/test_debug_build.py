"""Debug builds: broken promises become errors with a place, and nothing is written beside an argument."""

import numpy as np
import pytest

from tvm_tile.bridges.runtime.arguments import place
from tvm_tile.bridges.runtime.debug import DebugExecutable, GuardedCopy
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError, IllegalError, UnsupportedError
from tvm_tile.frontend import ds, kernel, parallel
from tvm_tile.ir.dtypes import numpy_dtype
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Extern, Full, Number, Point, View
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.values import Memory, TileType, Value


@kernel
def shifted(X, Y, *, by):
    for i in parallel(3):
        Y[ds(i * 4, 4)] = X.at[ds(i * 4 + by, 4)].load(bounds="assume")


@kernel
def scattered(X, Y, *, by):
    for i in parallel(3):
        Y.at[ds(i * 4 + by, 4)].store(X[ds(i * 4, 4)], bounds="assume")


@kernel
def doubled(X, Y):
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] * 2.0


def numbers(n=12, dtype="float32"):
    return np.arange(n).astype(numpy_dtype(dtype))


def fill_bytes(start, count, reads=(), writes="B"):
    """Calls ``memset`` of the C library on B from its element ``start``; A is there to be changed by it."""
    A, B = Memory("A", (4,), "uint8"), Memory("B", (4,), "uint8")
    byte, size = Value(0, TileType((), "int32")), Value(1, TileType((), "int64"))
    memories = {"A": A, "B": B}
    call = Extern(
        "memset",
        (View(B, (Point(IndexConst(start)),)), byte, size),
        tuple(memories[name] for name in reads),
        tuple(memories[name] for name in writes),
    )
    body = (Full(byte, Number("7")), Full(size, Number(str(count))), call)
    return Program("fill", (A, B), Block(body))


@pytest.mark.parametrize("make", [shifted, scattered])
def test_a_kept_promise_gives_the_result_of_any_build(make):
    x, y, expected = numbers(), np.zeros(12, "float32"), np.zeros(12, "float32")
    program = make.trace(x, y, by=0)
    exe = build(program, debug=True)
    exe(x, y)
    build(program)(x, expected)
    np.testing.assert_array_equal(y, expected)
    assert "debug" not in str(exe.program)
    assert "define" in exe.source()


@pytest.mark.parametrize(("make", "memory", "words"), [(shifted, "X", "load"), (scattered, "Y", "store")])
@pytest.mark.parametrize("by", [-1, 1, 9])
def test_a_broken_promise_names_memory_and_line(make, memory, words, by):
    x, y = numbers(), np.full(12, 5, "float32")
    exe = build(make.trace(x, y, by=by), debug=True)
    with pytest.raises(IllegalError) as caught:
        exe(x, y)
    error = caught.value
    assert f"out of bounds of {memory}" in error.message
    assert error.span.file == __file__
    assert f".{words}(" in error.span.excerpt()
    assert "interpret" in error.suggestion
    # Nothing of a call that failed is visible.
    np.testing.assert_array_equal(y, np.full(12, 5))
    np.testing.assert_array_equal(x, numbers())


@pytest.mark.parametrize(("start", "count"), [(0, 4), (1, 3), (3, 1), (2, 0)])
def test_an_opaque_function_that_stays_inside_is_fine(start, count):
    exe = build(fill_bytes(start, count), debug=True)
    a, b = numbers(4, "uint8"), np.zeros(4, "uint8")
    exe(a, b)
    expected = np.zeros(4, "uint8")
    expected[start : start + count] = 7
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize(("start", "count"), [(0, 5), (3, 2), (3, 60_000)])
def test_an_opaque_function_that_writes_past_the_end_is_caught(start, count):
    exe = build(fill_bytes(start, count), debug=True)
    a, storage = numbers(4, "uint8"), np.zeros(70_000, "uint8")
    with pytest.raises(IllegalError, match=r"fill wrote outside of parameter B, .*shape \(4,\)") as caught:
        exe(a, storage[:4])
    assert caught.value.obligation == "accesses are in bounds"
    assert not storage.any()


def test_writing_a_parameter_that_is_not_declared_is_caught():
    program = fill_bytes(0, 4, reads=("B",), writes=("A",))
    exe = build(program, debug=True)
    a, b = numbers(4, "uint8"), np.zeros(4, "uint8")
    with pytest.raises(IllegalError, match="changed parameter B, which it does not write") as caught:
        exe(a, b)
    assert "writes=[...]" in caught.value.suggestion
    assert not b.any()
    np.testing.assert_array_equal(a, numbers(4, "uint8"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    ("shape", "strides"), [((4, 3), None), ((4, 3), (6, 2)), ((4, 3), (-3, 1)), ((0, 3), None), ((), None)]
)
def test_guarded_copies_hold_the_elements_and_see_every_byte_around_them(dtype, shape, strides):
    itemsize = numpy_dtype(dtype).itemsize
    memory = Memory("A", shape, dtype, strides)
    base = (np.arange(48) % 2).astype(numpy_dtype(dtype))
    array = np.lib.stride_tricks.as_strided(
        base[24:], shape, tuple(s * itemsize for s in memory.element_strides)
    )
    copy = GuardedCopy(place(memory, array, True), 16)
    assert copy.elements.tobytes() == array.tobytes()
    assert not copy.is_breached()
    assert not copy.is_changed()
    assert copy.elements.tobytes() == array.tobytes()
    first = copy.elements.__array_interface__["data"][0] - copy._storage.__array_interface__["data"][0]
    assert 0 in shape or (copy.elements.__array_interface__["data"][0] % 16) == 0
    elements = {
        first + sum(i * s for i, s in zip(index, copy.elements.strides, strict=True)) + byte
        for index in np.ndindex(shape)
        for byte in range(itemsize)
    }
    for position in range(first - 60, first + 60):
        copy._storage[position] ^= 1
        assert copy.is_breached() == (position not in elements)
        assert copy.is_changed() == (position in elements)
        copy._storage[position] ^= 1


def test_arguments_are_checked_as_in_any_build(copy_program):
    exe = build(copy_program((4, 3), a_strides=(6, 2)), debug=True)
    a, b = numbers(48).reshape(8, 6)[:4, ::2], np.zeros((4, 3), "float32")
    exe(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ArgumentError, match="expects strides"):
        exe(a.copy(), b)
    with pytest.raises(ArgumentError, match="by position"):
        exe(a, B=b)
    with pytest.raises(ArgumentError, match="read-only"):
        exe(a, np.broadcast_to(b, (4, 3)))


def test_unaligned_arguments_and_identical_views(accumulate_program):
    exe = build(accumulate_program(7), debug=True)
    storage = np.zeros(29, np.uint8)
    c = storage[1:].view("float32")
    c[...] = 1
    exe(numbers(7), c, c)
    np.testing.assert_array_equal(c, numbers(7) + 2)
    with pytest.raises(ArgumentError, match="share elements"):
        exe(numbers(7), c, storage[:28].view("float32"))


def test_run_time_scalars(scale_program):
    exe = build(scale_program(3, "float32"), debug=True)
    x, y = numbers(3), np.zeros(3, "float32")
    exe(x, 2.5, y)
    np.testing.assert_array_equal(y, x + 2.5)


def test_debug_builds_are_not_saved_and_not_for_devices(copy_program, tmp_path):
    with pytest.raises(UnsupportedError, match="debug=True") as caught:
        build(copy_program((4, 3)), debug=True).save(tmp_path / "a.so")
    assert "tt.build(program, target)" in caught.value.suggestion
    for target in ("cuda", "metal", "opencl"):
        with pytest.raises(UnsupportedError, match=f"no debug builds for {target}") as caught:
            build(copy_program((4, 3)), target, debug=True)
        assert "interpret" in caught.value.suggestion


def test_two_kernels_with_one_program_keep_their_own_lines():
    def make():
        @kernel
        def shifted(X, Y):
            Y[ds(0, 4)] = X.at[ds(9, 4)].load(bounds="assume")

        return shifted

    def make_again():
        @kernel
        def shifted(X, Y):
            Y[ds(0, 4)] = X.at[ds(9, 4)].load(bounds="assume")

        return shifted

    lines = []
    for kernel_of in (make(), make_again()):
        exe = build(kernel_of.trace(numbers(), numbers(4)), debug=True)
        assert isinstance(exe, DebugExecutable)
        with pytest.raises(IllegalError) as caught:
            exe(numbers(), numbers(4))
        lines.append(caught.value.span.line)
    assert lines[0] < lines[1]
