"""Arguments: what is accepted and viewed in place, and what is refused, by name."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from tvm_tile.errors import ArgumentError
from tvm_tile.semantics.interpreter import interpret


@pytest.fixture
def add_one(builder):
    """``Y[i] = X[i] + c`` on four elements."""
    b = builder()
    X, Y, c = b.tensor("X", (4,)), b.tensor("Y", (4,)), b.scalar("c", "float32")
    with b.loop("parallel", 4) as p:
        b.store(Y, [p.indices[0]], b.apply("add", b.load(X, p.indices[0]), c))
    return b.program(X, Y, c, name="add_one")


def ones(n=4, dtype=np.float32):
    return np.ones(n, dtype)


def test_results_are_written_in_place(add_one):
    x, y = ones(), np.zeros(4, np.float32)
    assert interpret(add_one, x, y, 2.5) is None
    assert y.tolist() == [3.5] * 4
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize("count", [0, 2, 4])
def test_the_number_of_arguments_is_checked(add_one, count):
    with pytest.raises(ArgumentError, match=rf"add_one takes 3 arguments \(X, Y, c\), not {count}"):
        interpret(add_one, *([ones()] * count))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (ones(5), r"X expects shape \(4,\), got \(5,\)"),
        (ones((2, 2)), r"X expects shape \(4,\), got \(2, 2\)"),
        (ones(dtype=np.float64), "X expects dtype float32, got float64"),
        (ones(dtype=">f4"), "X expects dtype float32, got >f4"),
        (ones(dtype=np.int32), "X expects dtype float32, got int32"),
        ([1.0] * 4, r"X expects a float32 array of shape \(4,\), got .*list"),
        (3.0, r"X expects a float32 array.*float"),
        (None, "X expects a float32 array.*NoneType"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_by_name(add_one, x, message):
    y = np.zeros(4, np.float32)
    with pytest.raises(ArgumentError, match=message):
        interpret(add_one, x, y, 1.0)
    assert y.tolist() == [0] * 4


@pytest.mark.parametrize("stride", [1, 2, -1, 3])
def test_strides_need_not_match(add_one, stride):
    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    span = slice(None, None, -1) if stride == -1 else slice(0, 4 * stride, stride)
    view, target = x[:4][span] if stride == -1 else x[span], y[:4][span] if stride == -1 else y[span]
    interpret(add_one, view, target, 1.0)
    np.testing.assert_array_equal(target, view + 1)


def test_unaligned_arrays_are_fine(add_one):
    raw = np.zeros(17, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = 1
    y = np.zeros(4, np.float32)
    interpret(add_one, x, y, 1.0)
    assert y.tolist() == [2] * 4


def test_a_read_only_array_may_be_read_but_not_written(add_one):
    x, y = ones(), np.zeros(4, np.float32)
    x.flags.writeable = y.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"Y is written .* read-only"):
        interpret(add_one, x, y, 1.0)
    y = np.zeros(4, np.float32)
    interpret(add_one, x, y, 1.0)
    assert y.tolist() == [2] * 4


def test_an_array_whose_elements_share_memory_may_be_read_but_not_written(add_one):
    base = np.arange(6, dtype=np.float32)
    same = np.lib.stride_tricks.as_strided(base, (4,), (0,))
    y = np.zeros(4, np.float32)
    interpret(add_one, same, y, 1.0)
    assert y.tolist() == [1] * 4
    with pytest.raises(ArgumentError, match="Y is written, but elements of the array share memory"):
        interpret(add_one, ones(), same, 1.0)


@pytest.mark.parametrize(
    ("shape", "strides", "fine"),
    [
        ((2, 3), (12, 4), True),
        ((3, 2), (4, 12), True),
        ((2, 3), (8, 4), False),
        ((3, 3), (20, 8), True),
        ((2, 3), (12, 8), True),
    ],
)
def test_interleaved_axes_share_memory_only_where_addresses_meet(builder, shape, strides, fine):
    b = builder()
    Y = b.tensor("Y", shape)
    b.store(Y, [(0, n) for n in shape], b.full(shape, 1.0))
    y = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), shape, strides)
    if fine:
        interpret(b.program(Y), y)
        assert (y == 1).all()
    else:
        with pytest.raises(ArgumentError, match="share memory"):
            interpret(b.program(Y), y)


def test_identical_arrays_are_accepted(add_one):
    x = ones()
    interpret(add_one, x, x, 1.0)
    assert x.tolist() == [2] * 4
    interpret(add_one, x, x[:], 1.0)
    assert x.tolist() == [3] * 4


def test_partial_overlap_with_a_written_array_is_refused(add_one):
    base = np.zeros(8, np.float32)
    with pytest.raises(ArgumentError, match="X and Y overlap without being the same array, and Y is written"):
        interpret(add_one, base[:4], base[2:6], 1.0)
    with pytest.raises(ArgumentError, match="overlap"):
        interpret(add_one, base[:4], base[3::-1], 1.0)
    interpret(add_one, base[:4], base[4:], 1.0)
    assert base.tolist() == [0] * 4 + [1] * 4


def test_interleaved_arrays_do_not_overlap(add_one):
    base = np.zeros(8, np.float32)
    interpret(add_one, base[::2], base[1::2], 1.0)
    assert base.tolist() == [0, 1] * 4


def test_overlapping_arrays_that_are_only_read_are_fine(builder):
    b = builder()
    X, Z, Y = b.tensor("X", (4,)), b.tensor("Z", (4,)), b.tensor("Y", (4,))
    b.store(Y, [(0, 4)], b.apply("add", b.load(X, (0, 4)), b.load(Z, (0, 4))))
    base, y = np.arange(6, dtype=np.float32), np.zeros(4, np.float32)
    interpret(b.program(X, Z, Y), base[:4], base[2:], y)
    assert y.tolist() == [2, 4, 6, 8]


class Foreign:
    """An array of another library: DLPack, and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Legacy(Foreign):
    """DLPack before 1.0, which cannot say that memory is writable, and NumPy's own protocol."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __array__(self, dtype=None, copy=None):
        return self.array


class Copying(Legacy):
    def __array__(self, dtype=None, copy=None):
        return self.array.copy()


class OnDevice(Foreign):
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **keywords):
        raise BufferError("memory of device cuda:0")


@pytest.mark.parametrize("kind", [Foreign, Legacy])
def test_dlpack_arrays_are_viewed_without_a_copy(add_one, kind):
    x, y = ones(), np.zeros(4, np.float32)
    interpret(add_one, kind(x), kind(y), 1.0)
    assert y.tolist() == [2] * 4


def test_the_same_foreign_array_is_the_same_memory(add_one):
    x = ones()
    report = interpret(add_one, Foreign(x), x, 1.0, debug=True)
    assert report.aliases == (frozenset({"X", "Y"}),)
    with pytest.raises(ArgumentError, match="overlap"):
        interpret(add_one, Foreign(x[::-1]), x, 1.0)


def test_foreign_arrays_that_cannot_be_viewed_in_place_are_refused(add_one):
    with pytest.raises(ArgumentError, match=r"Y is written .* read-only"):
        interpret(add_one, ones(), Copying(np.zeros(4, np.float32)), 1.0)
    with pytest.raises(ArgumentError, match=r"X expects .* without a copy: memory of device cuda:0"):
        interpret(add_one, OnDevice(ones()), np.zeros(4, np.float32), 1.0)


@pytest.fixture
def store_scalar(builder):
    def make(dtype):
        b = builder()
        c, Y = b.scalar("c", dtype), b.tensor("Y", (), dtype)
        b.store(Y, [], c)
        return b.program(c, Y)

    return make


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 2),
        ("float32", np.float64(0.5)),
        ("float32", np.int8(-3)),
        ("bfloat16", 1.5),
        ("float32", ml_dtypes.bfloat16(1.5)),
        ("float64", 1e300),
        ("int8", -128),
        ("uint64", 2**64 - 1),
        ("int64", np.int32(7)),
        ("int32", np.array(7)),
        ("bool", True),
        ("bool", np.bool_(False)),
    ],
)
def test_scalars_are_python_or_numpy_numbers(store_scalar, dtype, value):
    y = np.zeros((), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    interpret(store_scalar(dtype), value, y)
    assert y.astype(object) == value


def test_a_scalar_beyond_its_dtype_is_infinite_without_a_warning(store_scalar):
    y = np.zeros((), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interpret(store_scalar("float32"), 1e300, y)
    assert y == np.inf


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int8", 128, "c expects int8, which does not hold 128"),
        ("uint8", -1, "does not hold -1"),
        ("int32", 1.0, "c expects a int32 scalar, got 1.0"),
        ("int32", True, "got True"),
        ("bool", 1, "c expects a bool scalar, got 1"),
        ("float32", "1", "c expects a float32 scalar, got '1'"),
        ("float32", 1j, "got 1j"),
        ("float32", np.complex64(1), "complex64"),
        ("float32", np.str_("1"), "str_"),
        ("float32", None, "got None"),
        ("float64", 10**400, "does not hold 1000"),
        ("float32", np.ones(1), "ndarray"),
        ("float32", True, "got True"),
    ],
)
def test_scalars_of_another_kind_are_refused(store_scalar, dtype, value, message):
    with pytest.raises(ArgumentError, match=message):
        interpret(store_scalar(dtype), value, np.zeros((), dtype))


def test_a_masked_array_is_refused_since_its_mask_would_be_lost(add_one):
    with pytest.raises(ArgumentError, match="argument X is a masked array"):
        interpret(add_one, np.ma.masked_array(ones(), [0, 1, 0, 0]), ones(), 1.0)
