"""Running sums and maxima: block ends, NaN, infinities, dtypes."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib.kernels import reference_data as reference
from tvm_tile.contrib.kernels.scans import cummax, cumsum

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SHAPES = [(2, 16), (3, 37), (2, 3, 21), (5, 1), (1,), (13,), (0, 5), (3, 0)]


def whole_numbers(shape, dtype="float32", seed=0):
    """Sums of them are exact, whatever the grouping."""
    return np.random.default_rng(seed).integers(-4, 4, shape).astype(dtype)


@pytest.mark.parametrize("block", [4, 256])
@pytest.mark.parametrize("shape", SHAPES)
def test_running_sums_go_on_across_blocks(execute, shape, block):
    X, Y = whole_numbers(shape), np.full(shape, 7, "float32")
    execute(cumsum, X, Y, block=block)
    np.testing.assert_array_equal(Y, reference.cumsum(X))


@pytest.mark.parametrize("block", [4, 256])
@pytest.mark.parametrize("shape", SHAPES)
def test_running_maxima_go_on_across_blocks(execute, shape, block):
    X, Y = whole_numbers(shape) - 9, np.full(shape, 7, "float32")
    execute(cummax, X, Y, block=block)
    np.testing.assert_array_equal(Y, reference.cummax(X))


def test_running_sums_of_many_fractions_stay_close(execute):
    X = np.random.default_rng(1).standard_normal((2, 1500)).astype("float32")
    Y = np.zeros_like(X)
    execute(cumsum, X, Y)
    np.testing.assert_allclose(Y, reference.cumsum(X), rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("int8", "int32"),
        ("int8", "int8"),
        ("uint8", "int64"),
        ("int32", "int64"),
        ("int64", "int64"),
        ("int16", "float32"),
        ("float16", "float16"),
        (BFLOAT16, BFLOAT16),
        ("float32", "float64"),
        ("float64", "float32"),
    ],
)
def test_running_sums_are_kept_in_the_wider_dtype_and_cast_once(execute, dtype, out):
    X = np.full((2, 40), 100, dtype)
    Y = np.zeros(X.shape, out)
    execute(cumsum, X, Y, block=16)
    np.testing.assert_array_equal(Y, reference.cumsum(X).astype(out))


def test_a_wide_output_does_not_wrap_where_the_input_would(execute):
    X, Y = np.full(3, 2**31 - 1, "int32"), np.zeros(3, "int64")
    execute(cumsum, X, Y)
    np.testing.assert_array_equal(Y, (2**31 - 1) * np.arange(1, 4))
    Z = np.zeros(3, "int32")
    execute(cumsum, X, Z)
    np.testing.assert_array_equal(Z, ((2**31 - 1) * np.arange(1, 4)).astype("int32"))


def test_nan_and_infinities_stay_in_running_sums(execute):
    X = np.array([[1, np.inf, 2, -np.inf, 1, 1], [1, 1, np.nan, 1, 1, 1]], "float32")
    Y = np.zeros_like(X)
    execute(cumsum, X, Y, block=2)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(Y, reference.cumsum(X))


def test_nan_stays_in_running_maxima(execute):
    X = np.array([[1, 3, np.nan, 9, 1], [-np.inf, -np.inf, -5, -7, np.inf]], "float32")
    Y = np.zeros_like(X)
    execute(cummax, X, Y, block=2)
    np.testing.assert_array_equal(Y, reference.cummax(X))
    np.testing.assert_array_equal(Y, torch.cummax(torch.from_numpy(X), dim=1).values.numpy())


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "uint64", "float16", BFLOAT16, "float64"], ids=str
)
def test_running_maxima_of_other_dtypes(execute, dtype):
    X = np.random.default_rng(2).integers(0, 100, (2, 23)).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        X[:, :2] = np.iinfo(dtype).min
    Y = np.full(X.shape, 7, dtype)
    execute(cummax, X, Y, block=4)
    np.testing.assert_array_equal(Y, reference.cummax(X).astype(dtype))


@pytest.mark.parametrize("kernel", [cumsum, cummax])
def test_a_row_may_be_scanned_in_place(execute, kernel):
    X = whole_numbers((3, 30))
    expected = getattr(reference, kernel.__name__)(X)
    execute(kernel, X, X, block=8)
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize(
    ("kernel", "shapes", "out", "message"),
    [
        (cumsum, [(2, 5), (2, 6)], "float32", r"Y has \(2, 6\)"),
        (cumsum, [(), ()], "float32", "at least one axis"),
        (cummax, [(2, 5), (5, 2)], "float32", r"Y has \(5, 2\)"),
        (cummax, [(2, 5), (2, 5)], "float64", "Y is float64"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, shapes, out, message):
    with pytest.raises(tt.ArgumentError, match=message):
        kernel.trace(tt.spec(shapes[0], "float32"), tt.spec(shapes[1], out))
