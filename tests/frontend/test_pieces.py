"""Tiles joined, cut, picked from and updated, against NumPy."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError

RNG = np.random.default_rng(3)


def interpreted(kernel, *arrays, **constants):
    """Run a kernel's meaning on copies, debugging; the arrays afterwards."""
    copies = [array.copy() for array in arrays]
    program = kernel.trace(*copies, **constants)
    assert tt.parse(str(program)) == program
    tt.interpret(program, *copies, debug=True)
    return copies


def numbers(shape, dtype="f4"):
    return RNG.integers(-50, 50, shape).astype(dtype)


@tt.kernel
def joined(A, B, Y, *, axis):
    for _ in tt.parallel(1):
        Y[...] = tt.concat((A[...], B[...]), axis=axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("extents", [(3, 4), (1, 6), (0, 5), (7, 0)])
@pytest.mark.parametrize("dtype", ["f4", "i1", "?"])
def test_concat_joins_as_numpy_does(axis, extents, dtype):
    def shape(n):
        return (n, 5) if axis == 0 else (5, n)

    a, b = (numbers(shape(n), dtype) for n in extents)
    expected = np.concatenate((a, b), axis=axis)
    *_, y = interpreted(joined, a, b, np.zeros_like(expected), axis=axis)
    np.testing.assert_array_equal(y, expected)


def test_concat_promotes_and_takes_numbers_in_tiles():
    @tt.kernel
    def k(A, B, Y):
        for _ in tt.parallel(1):
            Y[...] = tt.concat([A[...], B[...], tt.full((2,), 7, "int8")])
            assert tt.concat((A[...],)).dtype == "int16"

    a, b = numbers(3, "i2"), numbers(4, "f4")
    expected = np.concatenate((a, b, [7, 7])).astype("f4")
    np.testing.assert_array_equal(interpreted(k, a, b, np.zeros(9, "f4"))[2], expected)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda x: tt.concat((x, x[:, :2]), axis=0), OperandError, ("(4, 2)", "axis 0")),
        (lambda x: tt.concat((x, x[0])), OperandError, ("(6,)",)),
        (lambda x: tt.concat(()), OperandError, ("no tiles",)),
        (lambda x: tt.concat(x), OperandError, ("sequence", "(a, b)")),
        (lambda x: tt.concat((x[0, 0], x[0, 0])), OperandError, ("scalar",)),
        (lambda x: tt.concat((x, x), axis=2), OperandError, ("no axis 2",)),
        (lambda x: tt.concat((x.astype("float16"), x.astype("bfloat16"))), OperandError, ("bfloat16",)),
        (lambda x: tt.split(x, 4, axis=1), OperandError, ("6 elements", "4", "[2, 5]")),
        (lambda x: tt.split(x, 0), OperandError, ("equal parts",)),
        (lambda x: tt.split(x, 2.0), OperandError, ("static ints", "2.0")),
        (lambda x: tt.split(x, [x[0, 0]]), OperandError, ("static ints",)),
        (lambda x: tt.split(x[0, 0], 1), OperandError, ("no axis",)),
        (lambda x: tt.gather(x, x), OperandError, ("integers", "astype")),
        (lambda x: tt.gather(x, tt.iota(4, "int32")), OperandError, ("1 axes", "[None, :]")),
        (lambda x: tt.gather(x, tt.zeros((3, 2), "int32"), axis=1), OperandError, ("other than 1",)),
        (lambda x: tt.gather(x, tt.zeros((4, 2), "int32"), axis=1, fill=x), OperandError, ("fill",)),
        (lambda x: tt.gather(x.astype("int8"), tt.zeros((4, 2), "int8"), 1, 300), OperandError, ("300",)),
        (lambda x: tt.update(x, (0, 0, 0), 1.0), OperandError, ("3 subscripts",)),
        (lambda x: tt.update(x, (slice(None), None), 1.0), OperandError, ("None",)),
        (lambda x: tt.update(x.astype("int32"), (0, 0), 1.5), OperandError, ("narrowing",)),
        (lambda x: tt.update(x, 0, x[:, 0]), OperandError, ("(4,)", "(6,)")),
        (lambda x: tt.update(x, 0, 1.0, combine=tt.argmax), CaptureError, ("tt.argmax_pair",)),
        (lambda x: tt.update(x, 0, 1.0, combine=max), CaptureError, ("built-in", "tt.add")),
        (lambda x: tt.update(x > 0, 0, True, combine=tt.add), CaptureError, ("bool", "tt.any")),
        (lambda x: tt.update(x, 0, 1.0, combine=tt.all), CaptureError, ("compare first",)),
    ],
)
def test_pieces_that_do_not_fit_are_refused(refused, make, kind, words):
    @tt.kernel
    def k(X):
        make(X[...])

    refused(kind, lambda: k.trace(np.zeros((4, 6), "f4")), *words)


@pytest.mark.parametrize("sections", [1, 2, 6, [2], [2, 5], [0, 3], [], [4, 9], [-1], [5, 2]])
def test_split_cuts_as_numpy_does(sections):
    expected = np.split(x := numbers((3, 6)), sections, axis=1)

    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            parts = tt.split(X[...], sections, axis=-1)
            assert [part.shape for part in parts] == [part.shape for part in expected]
            Y[...] = tt.concat(parts, axis=1)

    whole = np.concatenate(expected, axis=1)
    np.testing.assert_array_equal(interpreted(k, x, np.zeros_like(whole))[1], whole)


@pytest.mark.parametrize("dtype", ["f4", "u1", "?"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_gather_is_take_along_axis_with_a_fill(dtype, axis):
    x = numbers((5, 7), dtype)
    index = RNG.integers(-2, 9, (5, 4) if axis == 1 else (3, 7)).astype("i8")
    inside = (index >= 0) & (index < x.shape[axis])
    expected = np.where(inside, np.take_along_axis(x, np.where(inside, index, 0), axis), x.dtype.type(1))

    @tt.kernel
    def k(X, I, Y):
        for _ in tt.parallel(1):
            Y[...] = tt.gather(X[...], I[...], axis, fill=1)

    np.testing.assert_array_equal(interpreted(k, x, index, np.zeros_like(expected))[2], expected)


def test_gather_broadcasts_both_ways_and_takes_empty_tiles():
    @tt.kernel
    def k(X, Y, Z, E):
        for _ in tt.parallel(1):
            Y[...] = tt.gather(X[...], tt.iota(2, "int32")[None, :], axis=1)
            Z[...] = tt.gather(X[0:1, :], tt.zeros((3, 4), "uint8"), axis=1)
            E[...] = tt.gather(X[:, 0:0], tt.zeros((5, 2), "int8"), axis=1, fill=9)

    x = numbers((5, 7))
    _, y, z, e = interpreted(k, x, np.zeros((5, 2), "f4"), np.zeros((3, 4), "f4"), np.zeros((5, 2), "f4"))
    np.testing.assert_array_equal(y, x[:, :2])
    np.testing.assert_array_equal(z, np.full((3, 4), x[0, 0]))
    np.testing.assert_array_equal(e, np.full((5, 2), 9))


def test_update_replaces_a_part_and_leaves_the_tile():
    @tt.kernel
    def k(X, Y, Z):
        for i in tt.parallel(1):
            x = X[...]
            y = tt.update(x, (1, tt.ds(2 + i, 3)), 5)
            y = tt.update(y, (slice(None), -1), x[:, 0])
            y = tt.update(y, (slice(0, 5, 2), 0), tt.zeros((3,), "float32"))
            # What lies outside is dropped.
            y = tt.update(y, (tt.ds(-1, 2), tt.ds(5, 4)), 8)
            Y[...] = tt.update(y, (7, 0), 99)
            Z[...] = x

    x = numbers((5, 7))
    expected = x.copy()
    expected[1, 2:5] = 5
    expected[:, -1] = x[:, 0]
    expected[0:5:2, 0] = 0
    expected[0, 5:] = 8
    _, y, z = interpreted(k, x, np.zeros_like(x), np.zeros_like(x))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, x)


def test_instances_patch_an_outer_tile():
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            T = tt.full((12,), 3.0, "float32")
            for i in tt.parallel(3):
                # Every instance reads the value from before the region.
                T = tt.update(T, tt.ds(4 * i, 3), T[4 * i + 3] + X[i])
                if X[i] > 1.0:
                    T = tt.update(T, 4 * i, 0.0)
            Y[...] = T

    _, y = interpreted(k, np.array([1, 2, 3], "f4"), np.zeros(12, "f4"))
    assert y.tolist() == [4, 4, 4, 3, 0, 5, 5, 3, 0, 6, 6, 3]


@pytest.mark.parametrize(
    ("combine", "expected"), [(tt.add, 15), (tt.sum, 15), (tt.maximum, 5), (tt.min, 1), (tt.prod, 120)]
)
def test_combine_joins_what_instances_write(combine, expected):
    @tt.kernel
    def k(Y):
        for _ in tt.parallel(1):
            T = tt.full((2,), 100, "int32")
            for i in tt.parallel(5):
                T = tt.update(T, 0, tt.cast(i + 1, "int32"), combine=combine)
            Y[...] = T

    assert interpreted(k, np.zeros(2, "i4"))[0].tolist() == [expected, 100]


def test_two_instances_may_not_patch_one_element():
    @tt.kernel
    def k(Y):
        for _ in tt.parallel(1):
            T = tt.zeros((4,), "float32")
            for i in tt.parallel(3):
                T = tt.update(T, i // 2, 1.0)
            Y[...] = T

    with pytest.raises(IllegalError):
        interpreted(k, np.zeros(4, "f4"))


@pytest.mark.parametrize(
    "whole", ["T = T * 2.0", "T = tt.update(T + 1.0, i, 2.0)", "T = tt.zeros((4,), 'float32') + T[i]"]
)
def test_patches_do_not_mix_with_whole_assignments(refused, whole):
    source = (
        "def k(Y):\n    T = tt.zeros((4,), 'float32')\n    for i in tt.parallel(4):\n"
        f"        T = tt.update(T, i, 1.0)\n        {whole}\n"
        "    for _ in tt.parallel(1):\n        Y[...] = T\n"
    )
    namespace = {"tt": tt}
    exec(source, namespace)
    k = tt.kernel(namespace["k"], source=source)
    error = refused(IllegalError, lambda: k.trace(np.zeros(4, "f4")), "'T'", "T = tt.update(T, ...)")
    assert error.obligation == "patches of an outer tile"


def test_a_local_tile_may_be_updated_and_assigned_freely():
    @tt.kernel
    def k(Y):
        for i in tt.parallel(4):
            T = tt.zeros((4,), "float32")
            T = tt.update(T, i, 1.0)
            T = T * 2.0
            Y[i] = tt.sum(T)

    assert interpreted(k, np.zeros(4, "f4"))[0].tolist() == [2, 2, 2, 2]
