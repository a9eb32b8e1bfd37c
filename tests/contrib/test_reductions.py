"""Sums over rows and columns, and transposition: sizes, dtypes, special values, what is refused."""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import normal, unwritten

MATRICES = [(32, 64), (37, 19), (2, 3, 13, 21), (1, 1), (1, 50), (50, 1), (0, 5), (5, 0), (2, 0, 3)]
matrices = pytest.mark.parametrize("shape", MATRICES)


@pytest.mark.parametrize("shape", [*MATRICES, (13,), (1,), (0,), (3, 1500)])
def test_row_sums_equal_the_oracle(execute, shape):
    X, y = normal(np.random.default_rng(1), shape, "float32"), unwritten(shape[:-1], "float32")
    execute(kernels.row_sum, X, y, block=16)
    np.testing.assert_allclose(y, reference.row_sum(X), rtol=2e-5, atol=2e-5)


@matrices
def test_column_sums_equal_the_oracle(execute, shape):
    X = normal(np.random.default_rng(2), shape, "float32")
    y = unwritten((*shape[:-2], shape[-1]), "float32")
    execute(kernels.col_sum, X, y, bm=8, bn=16)
    np.testing.assert_allclose(y, reference.col_sum(X), rtol=2e-5, atol=2e-5)


@matrices
def test_a_transposed_matrix_is_its_swapped_axes(execute, shape):
    X = normal(np.random.default_rng(3), shape, "float32")
    Y = unwritten((*shape[:-2], shape[-1], shape[-2]), "float32")
    execute(kernels.transpose, X, Y, bm=8, bn=16)
    np.testing.assert_array_equal(Y, reference.transpose(X))


@pytest.mark.parametrize("kernel", [kernels.row_sum, kernels.col_sum, kernels.transpose])
def test_default_blocks_fit_every_size(execute, kernel):
    for shape in ((1, 1), (3, 5), (70, 150)):
        X = np.random.default_rng(4).integers(-9, 9, shape).astype("float32")
        expected = getattr(reference, kernel.__name__)(X)
        y = unwritten(expected.shape, "float32")
        execute(kernel, X, y)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("int8", "int32"),
        ("int8", "int64"),
        ("int8", "int8"),
        ("uint8", "float32"),
        ("int32", "int64"),
        ("float16", "float16"),
        (ml_dtypes.bfloat16, "float32"),
        ("float32", "float64"),
    ],
)
def test_sums_are_kept_in_the_wider_dtype_and_cast_once(execute, dtype, out):
    X = np.full((600, 600), 100, dtype)
    y, z = np.zeros(600, out), np.zeros(600, out)
    execute(kernels.row_sum, X, y)
    execute(kernels.col_sum, X, z)
    expected = np.asarray([60000]).astype(out)[0]
    assert (y == expected).all()
    assert (z == expected).all()


def test_nan_and_opposite_infinities_spoil_their_sum_only(execute):
    X = np.ones((20, 20), "float32")
    X[3, 5], X[7, 11], X[9, 11], X[9, 2] = np.nan, np.inf, -np.inf, np.inf
    y, z = np.zeros(20, "float32"), np.zeros(20, "float32")
    execute(kernels.row_sum, X, y, block=8)
    execute(kernels.col_sum, X, z, bm=4, bn=8)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, X.sum(axis=1))
        np.testing.assert_array_equal(z, X.sum(axis=0))


def test_transposition_copies_bits(execute):
    """Signaling NaNs, negative zeros and truth values arrive as they are."""
    words = np.random.default_rng(5).integers(0, 2**32, (9, 17), "uint32")
    words[0, :2] = 0x7F800001, 0x80000000
    Y = np.zeros((17, 9), "float32")
    execute(kernels.transpose, words.view("float32"), Y)
    np.testing.assert_array_equal(Y.view("uint32"), words.T)
    flags, Z = words > 2**31, np.zeros((17, 9), bool)
    execute(kernels.transpose, flags, Z)
    np.testing.assert_array_equal(Z, flags.T)


@pytest.mark.parametrize(
    ("kernel", "shapes", "out", "message"),
    [
        (kernels.row_sum, [(4, 5), (5,)], "float32", r"y has shape \(5,\), not \(4,\)"),
        (kernels.row_sum, [(), ()], "float32", "at least one axis"),
        (kernels.col_sum, [(4, 5), (4,)], "float32", r"y has shape \(4,\), not \(5,\)"),
        (kernels.col_sum, [(5,), ()], "float32", r"not \(..., M, N\)"),
        (kernels.transpose, [(4, 5), (4, 5)], "float32", r"Y has shape \(4, 5\), not \(5, 4\)"),
        (kernels.transpose, [(5,), (5,)], "float32", r"not \(..., M, N\)"),
        (kernels.transpose, [(4, 5), (5, 4)], "float64", "Y is float64"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, shapes, out, message):
    with pytest.raises(tt.ArgumentError, match=message):
        kernel.trace(tt.spec(shapes[0], "float32"), tt.spec(shapes[1], out))
