"""Rows addressed by data: ids out of range, unsorted segments, counts that several instances add to."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib.kernels import reference_data as reference
from tvm_tile.contrib.kernels.indexing import embedding, histogram, segment_sum

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def whole_numbers(shape, dtype, least=-4, most=4, seed=0):
    """Sums of them are exact, whatever the order."""
    return np.random.default_rng(seed).integers(least, most, shape).astype(dtype)


UNKNOWN = np.array([-1, 0, 7, -7, 6])


@pytest.mark.parametrize(
    ("ids", "width"),
    [
        (np.arange(12).reshape(3, 4) % 7, 13),
        (np.array([6, 0, 6], "int8"), 13),
        (np.array(5), 13),
        (np.zeros((0, 2), "int32"), 13),
        (UNKNOWN, 13),
        (UNKNOWN, 1),
        (UNKNOWN, 0),
        (np.array([2**63, 2**64 - 1, 3], "uint64"), 5),
        (np.array([-(2**63), 2**63 - 1, 3]), 5),
    ],
    ids=str,
)
def test_embedding_looks_rows_up_and_gives_zeros_for_unknown_ids(execute, ids, width):
    table = whole_numbers((7, width), "float32", 1, 99)
    Y = np.full((*ids.shape, width), 7, "float32")
    execute(embedding, ids, table, Y, block=4)
    np.testing.assert_array_equal(Y, reference.embedding(ids, table))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", BFLOAT16, "float64", "bool"], ids=str)
def test_embedding_copies_any_dtype(execute, dtype):
    table = whole_numbers((5, 9), dtype)
    ids = np.array([4, 4, 9, 0])
    Y = np.ones((4, 9), dtype)
    execute(embedding, ids, table, Y)
    np.testing.assert_array_equal(Y, reference.embedding(ids, table))


def test_embedding_agrees_with_torch(execute):
    table, ids = whole_numbers((11, 6), "float32"), np.random.default_rng(1).integers(0, 11, (2, 5))
    Y = np.zeros((2, 5, 6), "float32")
    execute(embedding, ids, table, Y)
    expected = torch.nn.functional.embedding(torch.from_numpy(ids), torch.from_numpy(table))
    np.testing.assert_array_equal(Y, expected.numpy())


def test_embedding_of_an_empty_table_is_zero(execute):
    Y = np.full((3, 4), 7, "float32")
    execute(embedding, np.arange(3), np.zeros((0, 4), "float32"), Y)
    assert not Y.any()


@pytest.mark.parametrize(
    ("n", "d", "count"), [(20, 5, 4), (1, 1, 1), (33, 70, 9), (0, 3, 2), (5, 0, 2), (5, 3, 0), (2, 3, 40)]
)
def test_segment_sum_takes_unsorted_segments_and_drops_unknown_ones(execute, n, d, count):
    X = whole_numbers((n, d), "float32")
    segments = np.random.default_rng(n).integers(-2, count + 2, n)
    Y = np.full((count, d), 7, "float32")
    execute(segment_sum, X, segments, Y)
    np.testing.assert_array_equal(Y, reference.segment_sum(X, segments, count=count))


def test_a_segment_is_summed_in_row_order_to_the_last_bit(execute):
    rng = np.random.default_rng(3)
    X, segments = rng.standard_normal((90, 5)).astype("float32"), rng.integers(0, 3, 90)
    expected, other = np.zeros((3, 5), "float32"), np.zeros((3, 5), "float32")
    np.add.at(expected, segments, X)
    np.add.at(other, segments[::-1], X[::-1])
    assert (expected != other).any(), "the order makes no difference for these rows"
    Y = np.zeros((3, 5), "float32")
    execute(segment_sum, X, segments, Y)
    np.testing.assert_array_equal(Y, expected)


def test_a_nan_stays_in_its_segment(execute):
    X = np.ones((4, 3), "float32")
    X[1, 1] = np.nan
    Y = np.zeros((2, 3), "float32")
    execute(segment_sum, X, np.array([0, 1, 0, 1]), Y)
    np.testing.assert_array_equal(Y, [[2, 2, 2], [2, np.nan, 2]])


@pytest.mark.parametrize(
    ("dtype", "out"), [("float16", "float16"), (BFLOAT16, "float32"), ("int8", "int64"), ("uint8", "uint32")]
)
def test_segments_are_summed_wider_than_their_rows(execute, dtype, out):
    # 64 hundreds: past what int8 holds and past where bfloat16 counts in ones.
    X = np.full((64, 2), 100, dtype)
    X[0] = 101
    Y = np.zeros((1, 2), out)
    execute(segment_sum, X, np.zeros(64, "int32"), Y)
    expected = reference.segment_sum(X, np.zeros(64, "int32"), count=1)
    np.testing.assert_array_equal(Y, expected.astype(out))


@pytest.mark.parametrize(
    ("shape", "bins"), [((50,), 7), ((3, 40), 1), ((0,), 5), ((4, 0), 3), ((9,), 0), ((1,), 300)]
)
def test_histogram_counts_and_drops_what_is_out_of_range(execute, shape, bins):
    X = np.random.default_rng(bins).integers(-3, bins + 3, shape)
    Y = np.full(bins, 7, "int64")
    execute(histogram, X, Y, block=8)
    np.testing.assert_array_equal(Y, reference.histogram(X, bins=bins))
    assert Y.sum() == np.isin(X, np.arange(bins)).sum()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64"])
@pytest.mark.parametrize("out", ["int32", "uint32", "int64"])
def test_histogram_of_other_dtypes(execute, dtype, out):
    X = np.random.default_rng(1).integers(0, 100, 120).astype(dtype)
    Y = np.full(64, 7, out)
    execute(histogram, X, Y, block=32)
    np.testing.assert_array_equal(Y, np.bincount(X.astype("int64"), minlength=100)[:64])


@pytest.mark.parametrize("order", ["source", "reverse", 5])
def test_counts_of_several_instances_add_up_in_any_order(order):
    X = np.random.default_rng(2).integers(0, 6, (3, 50))
    Y = np.full(6, 7, "int32")
    tt.interpret(histogram.trace(X, Y, block=8), X, Y, order=order, debug=True)
    np.testing.assert_array_equal(Y, np.bincount(X.ravel(), minlength=6))


def spec(*shape, dtype="float32"):
    return tt.spec(shape, dtype)


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        (embedding, [spec(3), spec(5, 4), spec(3, 4)], "ids are float32"),
        (embedding, [spec(3, dtype="int64"), spec(5, 4), spec(3, 5)], r"not \(3, 4\)"),
        (embedding, [spec(3, dtype="int64"), spec(5), spec(3, 5)], r"not \(V, D\)"),
        (embedding, [spec(3, dtype="int64"), spec(5, 4), spec(3, 4, dtype="float16")], "Y is float16"),
        (segment_sum, [spec(6, 4), spec(6), spec(3, 4)], "segments are float32"),
        (segment_sum, [spec(6, 4), spec(5, dtype="int32"), spec(3, 4)], r"not \(6,\)"),
        (segment_sum, [spec(6, 4), spec(6, dtype="int32"), spec(3, 5)], "rows of 5 elements"),
        (segment_sum, [spec(6), spec(6, dtype="int32"), spec(3)], "must be"),
        (histogram, [spec(6), spec(3, dtype="int32")], "X is float32"),
        (histogram, [spec(6, dtype="int32"), spec(3)], "no row of counts"),
        (histogram, [spec(6, dtype="int32"), spec(3, dtype="uint8")], "no row of counts"),
        (histogram, [spec(6, dtype="int32"), spec(3, 2, dtype="int32")], "no row of counts"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, arguments, message):
    with pytest.raises(tt.ArgumentError, match=message):
        kernel.trace(*arguments)
