"""Nearest neighbours: ties, missing neighbours, NaN."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference


@pytest.mark.parametrize(
    ("queries", "points", "dim", "k"),
    [(32, 64, 8, 1), (13, 50, 3, 3), (5, 2, 4, 3), (1, 1, 1, 1), (0, 7, 2, 1), (3, 0, 2, 2)],
)
def test_knn_equals_the_oracle_ties_included(execute, queries, points, dim, k):
    # Small integers make distances exact and ties frequent.
    rng = np.random.default_rng(10)
    Q = rng.integers(0, 4, (queries, dim)).astype("float32")
    P = rng.integers(0, 4, (points, dim)).astype("float32")
    distances, indices = np.full((queries, k), 7, "float32"), np.full((queries, k), 7, "int64")
    execute(kernels.knn, Q, P, distances, indices, bq=8, bp=16)
    expected = reference.knn(Q, P, k)
    np.testing.assert_array_equal(distances, expected[0])
    np.testing.assert_array_equal(indices, expected[1])


def test_knn_with_one_neighbour_takes_vectors_and_int32(execute):
    rng = np.random.default_rng(11)
    Q, P = rng.integers(0, 9, (9, 5)).astype("float64"), rng.integers(0, 9, (20, 5)).astype("float64")
    P[3] = np.nan
    distances, indices = np.zeros(9), np.zeros(9, "int32")
    execute(kernels.knn, Q, P, distances, indices, bq=4, bp=8)
    expected = reference.knn(Q, P, 1)
    np.testing.assert_array_equal(distances, expected[0][:, 0])
    np.testing.assert_array_equal(indices, expected[1][:, 0])


def test_knn_refuses_outputs_of_different_shapes():
    with pytest.raises(tt.ArgumentError, match="differ"):
        kernels.knn.trace(
            tt.spec((4, 2), "float32"),
            tt.spec((5, 2), "float32"),
            tt.spec((4, 1), "float32"),
            tt.spec((4,), "int64"),
        )
