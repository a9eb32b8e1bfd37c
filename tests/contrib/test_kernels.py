"""Every kernel against its float64 oracle: the interpreter, then generated code, on awkward sizes."""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def interpreted(kernel, *arrays, **constants):
    tt.interpret(kernel.trace(*arrays, **constants), *arrays)


def built(kernel, *arrays, **constants):
    tt.build(kernel.trace(*arrays, **constants), "llvm")(*arrays)


EXECUTORS = [pytest.param(interpreted, id="interpreter"), pytest.param(built, id="llvm")]


def close(actual, expected, scale=1.0):
    tolerance = scale * TOLERANCE[actual.dtype.name]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def normal(rng, shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (64, 64, 64, (32, 32, 32)),
        (37, 29, 53, (16, 16, 16)),
        (1, 1, 1, (8, 8, 8)),
        (0, 5, 3, (8, 8, 8)),
        (5, 0, 3, (8, 8, 8)),
        (5, 3, 0, (8, 8, 8)),
        (128, 128, 33, (64, 64, 32)),
        (7, 130, 5, (3, 48, 2)),
    ],
)
def test_gemm_equals_the_oracle(execute, m, n, k, blocks):
    rng = np.random.default_rng(m * 100 + n + k)
    A, B, C = normal(rng, (m, k)), normal(rng, (k, n)), np.full((m, n), 7, "float32")
    execute(kernels.gemm, A, B, C, bm=blocks[0], bn=blocks[1], bk=blocks[2])
    close(C, reference.gemm(A, B))


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float64", "float16", BFLOAT16], ids=str)
def test_gemm_of_other_floats_accumulates_wider_and_rounds_once(execute, dtype):
    rng = np.random.default_rng(3)
    A, B = normal(rng, (19, 40), dtype), normal(rng, (40, 21), dtype)
    C = np.zeros((19, 21), dtype)
    execute(kernels.gemm, A, B, C, bm=16, bn=16, bk=16)
    close(C, reference.gemm(A, B), scale=4)


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("int8", "int32"),
        ("int32", "int32"),
        ("int64", "int64"),
        ("uint8", "uint8"),
        ("uint8", "int32"),
        ("uint16", "uint32"),
    ],
)
def test_gemm_of_integers_is_exact_modulo_the_width(execute, dtype, out):
    rng = np.random.default_rng(4)
    info = np.iinfo(dtype)
    A = rng.integers(max(info.min, -1000), min(info.max, 1000), (9, 33), dtype)
    B = rng.integers(max(info.min, -1000), min(info.max, 1000), (33, 10), dtype)
    C = np.zeros((9, 10), out)
    execute(kernels.gemm, A, B, C, bm=8, bn=8, bk=16)
    np.testing.assert_array_equal(C, reference.gemm(A, B).astype(out))


def test_gemm_refuses_shapes_that_do_not_fit():
    with pytest.raises(tt.ArgumentError, match="inner extents differ") as caught:
        kernels.gemm.trace(*(np.zeros(s, "f4") for s in ((4, 5), (6, 7), (4, 7))))
    assert caught.value.span is not None
    assert caught.value.span.file.endswith("matmul.py")
    with pytest.raises(tt.ArgumentError, match="C has shape"):
        kernels.gemm.trace(*(np.zeros(s, "f4") for s in ((4, 5), (5, 7), (4, 8))))
    with pytest.raises(tt.ArgumentError, match="cast one of them"):
        kernels.gemm.trace(np.zeros((4, 5), "f4"), np.zeros((5, 7), "f8"), np.zeros((4, 7), "f4"))


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (2, 3, 101), (5, 1), (1,), (13,), (0, 5), (3, 0)])
def test_softmax_equals_the_oracle(execute, shape):
    X = normal(np.random.default_rng(5), shape) * 4
    Y = np.full(shape, 7, "float32")
    execute(kernels.softmax, X, Y, block=32)
    close(Y, reference.softmax(X))


@pytest.mark.parametrize("execute", EXECUTORS)
def test_softmax_of_masked_infinite_and_nan_rows(execute):
    inf, nan = np.inf, np.nan
    X = np.array(
        [[-inf] * 5, [-inf, 0, 1, -inf, 2], [0, nan, 1, 2, 3], [inf, 0, 0, 0, 0], [3e38, -3e38, 0, 0, 0]],
        "f4",
    )
    Y = np.full(X.shape, 7, "float32")
    execute(kernels.softmax, X, Y, block=2)
    assert Y[0].tolist() == [0] * 5
    close(Y[[1, 4]], reference.softmax(X[[1, 4]]))
    assert np.isnan(Y[2]).all()
    assert np.isnan(Y[3, 0])


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float64", "float16", BFLOAT16], ids=str)
def test_softmax_of_other_floats(execute, dtype):
    X = normal(np.random.default_rng(6), (3, 50), dtype)
    Y = np.zeros_like(X)
    execute(kernels.softmax, X, Y, block=16)
    close(Y, reference.softmax(X))


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (2, 3, 101), (5, 1), (13,), (0, 5), (3, 0)])
def test_layernorm_equals_the_oracle(execute, shape):
    rng = np.random.default_rng(7)
    X, gamma, beta = normal(rng, shape) + 3, normal(rng, shape[-1:]), normal(rng, shape[-1:])
    Y = np.full(shape, 7, "float32")
    execute(kernels.layernorm, X, gamma, beta, Y, block=32)
    close(Y, reference.layernorm(X, gamma, beta), scale=5)


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "heads", "key_heads", "dim", "dim_v"),
    [
        (32, 32, 2, 2, 16, 16),
        (21, 37, 2, 1, 8, 5),
        (1, 1, 1, 1, 1, 1),
        (5, 0, 1, 1, 4, 4),
        (0, 5, 1, 1, 4, 4),
        (33, 17, 4, 2, 3, 8),
    ],
)
def test_attention_equals_the_oracle(execute, causal, queries, keys, heads, key_heads, dim, dim_v):
    rng = np.random.default_rng(8)
    Q = normal(rng, (2, heads, queries, dim))
    K, V = normal(rng, (2, key_heads, keys, dim)), normal(rng, (2, key_heads, keys, dim_v))
    O = np.full((2, heads, queries, dim_v), 7, "float32")
    execute(kernels.attention, Q, K, V, O, causal=causal, bq=16, bk=16)
    expected = reference.attention(Q, K, V, causal=causal) if keys else np.zeros(O.shape)
    close(O, expected)


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_attention_of_other_floats_and_another_scale(execute, dtype):
    rng = np.random.default_rng(9)
    Q, K, V = (normal(rng, (1, 2, 11, 8), dtype) for _ in range(3))
    O = np.zeros_like(Q)
    execute(kernels.attention, Q, K, V, O, scale=0.7, bq=8, bk=8)
    close(O, reference.attention(Q, K, V, scale=0.7), scale=2)


@pytest.mark.parametrize("execute", EXECUTORS)
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


@pytest.mark.parametrize("execute", EXECUTORS)
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


def test_a_kernel_may_work_in_place():
    X = normal(np.random.default_rng(12), (6, 70))
    expected = reference.softmax(X)
    kernels.softmax(X, X, block=32)
    close(X, expected)
