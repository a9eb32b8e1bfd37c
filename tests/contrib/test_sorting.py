"""Sorted rows, the largest elements and the position of the largest: ties, NaN, widths, dtypes."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib.kernels import reference_data as reference
from tvm_tile.contrib.kernels.sorting import argmax, sort, topk

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SHAPES = [(2, 16), (3, 37), (2, 3, 101), (5, 1), (1,), (13,), (2, 64), (0, 5), (3, 2)]


def few_values(shape, dtype, seed=0):
    """Small integers: most elements are tied with others."""
    return np.random.default_rng(seed).integers(0, 5, shape).astype(dtype)


def extremes(dtype, shape):
    """Integers from the whole range, both ends among them."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, shape, dtype, endpoint=True)
    x[..., 0], x[..., -1] = info.max, info.min
    return x


SPECIAL = np.array(
    [
        [np.nan, 1, -np.inf, np.nan, np.inf, -0.0, 0.0, 1, np.inf],
        [np.nan] * 9,
        [-np.inf] * 9,
        [np.inf] * 8 + [np.nan],
        [0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 1e-45],
    ],
    "float32",
)


@pytest.mark.parametrize("shape", [*SHAPES, (3, 0)])
def test_sort_is_stable_at_all_widths(execute, shape):
    X = few_values(shape, "float32")
    Y, indices = np.full(shape, 7, "float32"), np.full(shape, 7, "int64")
    execute(sort, X, Y, indices)
    values, order = reference.sort(X)
    np.testing.assert_array_equal(Y, values)
    np.testing.assert_array_equal(indices, order)


def test_sort_puts_nan_last_in_its_order(execute):
    Y, indices = np.zeros_like(SPECIAL), np.zeros(SPECIAL.shape, "int32")
    execute(sort, SPECIAL, Y, indices)
    values, order = reference.sort(SPECIAL)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(Y, values)
    np.testing.assert_array_equal(np.signbit(Y[4]), np.signbit(values[4]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_sort_of_integers_reaches_both_ends(execute, dtype):
    X = extremes(dtype, (2, 21))
    Y, indices = np.zeros_like(X), np.zeros(X.shape, "int32")
    execute(sort, X, Y, indices)
    np.testing.assert_array_equal(Y, np.sort(X))
    np.testing.assert_array_equal(indices, np.argsort(X, kind="stable"))


@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float64"], ids=str)
def test_sort_of_other_floats(execute, dtype):
    X = np.random.default_rng(2).standard_normal((3, 25)).astype(dtype)
    Y, indices = np.zeros_like(X), np.zeros(X.shape, "int32")
    execute(sort, X, Y, indices)
    values, order = reference.sort(X)
    np.testing.assert_array_equal(Y, values)
    np.testing.assert_array_equal(indices, order)


def test_a_row_may_be_sorted_in_place(execute):
    X = few_values((3, 19), "float32")
    expected, order = reference.sort(X)
    indices = np.zeros(X.shape, "int32")
    execute(sort, X, X, indices)
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(indices, order)


@pytest.mark.parametrize(("k", "block"), [(1, 4), (5, 4), (5, 1), (2, 32)])
@pytest.mark.parametrize("shape", [(2, 16), (3, 37), (2, 2, 70), (5,), (0, 6)])
def test_topk_breaks_ties_by_position(execute, shape, k, block):
    X = few_values(shape, "float32")
    values, indices = np.full((*shape[:-1], k), 7, "float32"), np.full((*shape[:-1], k), 7, "int64")
    execute(topk, X, values, indices, k=k, block=block)
    best, order = reference.topk(X, k=k)
    np.testing.assert_array_equal(values, best)
    np.testing.assert_array_equal(indices, order)


def test_topk_of_distinct_values_agrees_with_torch(execute):
    X = np.random.default_rng(3).permutation(120).reshape(3, 40).astype("float32")
    values, indices = np.zeros((3, 7), "float32"), np.zeros((3, 7), "int64")
    execute(topk, X, values, indices, k=7, block=8)
    best, order = torch.topk(torch.from_numpy(X), 7)
    np.testing.assert_array_equal(values, best.numpy())
    np.testing.assert_array_equal(indices, order.numpy())


@pytest.mark.parametrize("k", [1, 3, 9])
def test_topk_counts_nan_as_the_largest_and_finds_infinities(execute, k):
    values, indices = np.zeros((5, k), "float32"), np.zeros((5, k), "int32")
    execute(topk, SPECIAL, values, indices, k=k, block=2)
    best, order = reference.topk(SPECIAL, k=k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, best)
    # Which of the tied elements torch names is its own choice; the values agree.
    np.testing.assert_array_equal(values, torch.topk(torch.from_numpy(SPECIAL), k).values.numpy())


@pytest.mark.parametrize("dtype", ["int8", "uint64"])
def test_topk_of_integers_reaches_the_least(execute, dtype):
    X = extremes(dtype, (2, 11))
    values, indices = np.zeros((2, 11), dtype), np.zeros((2, 11), "int32")
    execute(topk, X, values, indices, k=11, block=4)
    best, order = reference.topk(X, k=11)
    np.testing.assert_array_equal(values, best)
    np.testing.assert_array_equal(indices, order)


@pytest.mark.parametrize("shape", [(3, 0), (3, 8)])
def test_topk_of_none_writes_nothing(execute, shape):
    values, indices = np.zeros((3, 0), "float32"), np.zeros((3, 0), "int32")
    execute(topk, np.zeros(shape, "float32"), values, indices, k=0)


@pytest.mark.parametrize("lanes", [4, 128])
@pytest.mark.parametrize("shape", SHAPES)
def test_argmax_takes_the_first_of_the_largest(execute, shape, lanes):
    X = few_values(shape, "float32")
    Y = np.full(shape[:-1], 7, "int32")
    execute(argmax, X, Y, lanes=lanes)
    np.testing.assert_array_equal(Y, reference.argmax(X))


@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_argmax_takes_the_first_nan(execute, lanes):
    Y = np.full(5, 7, "int64")
    execute(argmax, SPECIAL, Y, lanes=lanes)
    np.testing.assert_array_equal(Y, np.argmax(SPECIAL, axis=1))
    assert Y[3] == 8


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "float16", BFLOAT16, "float64"], ids=str)
def test_argmax_of_other_dtypes(execute, dtype):
    X = few_values((4, 33), dtype)
    Y = np.full(4, 7, "int32")
    execute(argmax, X, Y, lanes=8)
    np.testing.assert_array_equal(Y, reference.argmax(X))
    if np.dtype(dtype).kind in "iu":
        X[:] = np.iinfo(dtype).min
        execute(argmax, X, Y, lanes=8)
        assert not Y.any()


def spec(*shape, dtype="float32"):
    return tt.spec(shape, dtype)


INT = "int32"


@pytest.mark.parametrize(
    ("kernel", "arguments", "constants", "message"),
    [
        (sort, [spec(2, 5), spec(2, 6), spec(2, 5, dtype=INT)], {}, "must have one shape"),
        (sort, [spec(2, 5), spec(2, 5, dtype="float64"), spec(2, 5, dtype=INT)], {}, "Y is float64"),
        (sort, [spec(2, 5), spec(2, 5), spec(2, 5)], {}, "indices are float32"),
        (topk, [spec(2, 5), spec(2, 6), spec(2, 6, dtype=INT)], {"k": 6}, "k=6 of rows of 5"),
        (topk, [spec(2, 5), spec(2, 3), spec(2, 3, dtype=INT)], {"k": 2}, r"must have shape \(2, 2\)"),
        (topk, [spec(2, 5), spec(2, 2), spec(2, 2)], {"k": 2}, "indices are float32"),
        (argmax, [spec(2, 0), spec(2, dtype=INT)], {}, "no largest element"),
        (argmax, [spec(2, 5), spec(5, dtype=INT)], {}, r"Y has shape \(5,\)"),
        (argmax, [spec(2, 5), spec(2)], {}, "Y is float32"),
        (argmax, [spec(), spec(dtype=INT)], {}, "at least one axis"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, arguments, constants, message):
    with pytest.raises(tt.ArgumentError, match=message):
        kernel.trace(*arguments, **constants)
