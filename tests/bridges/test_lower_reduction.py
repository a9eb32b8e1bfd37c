"""Reductions of tiles: axes, orders, masks, empty fibres, ties and NaN."""

import numpy as np
import pytest

import tvm_tile.frontend as tt

RNG = np.random.default_rng(3)
POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@tt.kernel
def over_axes(A, last, first, middle, everything, *, policy):
    x = A[:, :, :]
    last[:, :] = tt.sum(x, axis=2, policy=policy)
    first[:, :] = tt.sum(x, axis=0, policy=policy)
    middle[:] = tt.max(x, axis=(0, 2), policy=policy)
    everything[0] = tt.sum(x, policy=policy)
    everything[1] = tt.prod(x[0, 0, :], policy=policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(3, 5, 70), (1, 2, 200), (2, 2, 1), (2, 3, 0)])
def test_every_order_over_every_axis(agrees, policy, shape):
    arrays = [floats(*shape), floats(*shape[:2]), floats(*shape[1:]), floats(shape[1]), floats(2)]
    exact = policy == "fold_left"
    agrees(
        over_axes.trace(*arrays, policy=policy), *arrays, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-5
    )


@tt.kernel
def folds(A, C):
    x = A[:, :]
    C[0, :] = tt.sum(x, axis=1, policy="fold_left")
    C[1, :] = tt.sum(x, axis=1, policy="fold_right")


def test_folds_take_the_contributions_in_order(run):
    A = (floats(5, 67) * 10.0 ** RNG.integers(-6, 6, (5, 67))).astype("float32")
    left, right = np.zeros((2, 5), "float32")
    for column in range(67):
        left = left + A[:, column]
        right = A[:, 66 - column] + right
    assert (left != right).any()
    C = run(folds.trace(A, floats(2, 5)), A, floats(2, 5))[1]
    np.testing.assert_array_equal(C, [left, right])


@tt.kernel
def omitting(A, M, C, D):
    x, m = A[:, :], M[:, :]
    C[:] = tt.sum(x, axis=1, where=m)
    D[:] = tt.max(x, axis=0, where=m)


def test_where_omits_contributions(agrees):
    A, M = floats(7, 50), RNG.random((7, 50)) > 0.5
    M[2] = False
    M[:, 9] = False
    A[~M] = np.nan
    arrays = [A, M, floats(7), floats(50)]
    C, D = agrees(omitting.trace(*arrays), *arrays, rtol=1e-5, atol=1e-6)[2:]
    assert C[2] == 0
    assert D[9] == -np.inf


@tt.kernel
def sum_and_min(A, C, D):
    x = A[:, :]
    C[:] = tt.sum(x, axis=1)
    D[:] = tt.min(x, axis=1)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float64"]
)
def test_accumulation_is_wider_than_the_elements(agrees, dtype):
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    wide = {"int8": "int32", "int16": "int32"}.get(dtype, kind)
    A = RNG.integers(0 if dtype == "uint8" else -100, 100, (5, 150)).astype(kind)
    arrays = [A, np.zeros(5, wide), np.zeros(5, kind)]
    agrees(sum_and_min.trace(*arrays), *arrays, rtol=1e-2 if "float16" in dtype else 0)


@tt.kernel
def extrema(A, C, D, E, F, G):
    x = A[:, :]
    C[:] = tt.argmax(x, axis=1)
    D[:] = tt.argmin(x, axis=0)
    E[:] = tt.argmax(x, axis=1, where=x < 0)
    F[:] = tt.max(x, axis=1)
    G[:] = tt.min(x, axis=0)


def extrema_arrays(A):
    rows, columns = A.shape
    integers = [np.zeros(n, "int32") for n in (rows, columns, rows)]
    return [A, *integers, np.zeros(rows, A.dtype), np.zeros(columns, A.dtype)]


def test_nan_propagates_and_the_first_one_is_found(agrees):
    A = floats(9, 70)
    A[2, 5] = A[2, 60] = np.nan
    A[3], A[4, 7], A[5], A[6, 69] = 1, np.inf, -np.inf, np.nan
    arrays = extrema_arrays(A)
    C, _, _, F, _ = agrees(extrema.trace(*arrays), *arrays)[1:]
    assert C[2] == 5
    assert C[3] == 0
    assert C[5] == 0
    assert C[6] == 69
    assert np.isnan(F[[2, 6]]).all()
    assert np.isnan(F).sum() == 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float64"])
def test_ties_go_to_the_first(agrees, dtype):
    arrays = extrema_arrays(RNG.integers(0, 4, (6, 33)).astype(dtype))
    agrees(extrema.trace(*arrays), *arrays)


@tt.kernel
def truths(A, C, D):
    x = A[:, :] > 0
    C[:] = tt.any(x, axis=1)
    D[:] = tt.all(x, axis=0)


def test_any_and_all(agrees):
    arrays = [floats(6, 33) + 1.5, np.zeros(6, bool), np.zeros(33, bool)]
    agrees(truths.trace(*arrays), *arrays)


@tt.kernel
def softmax(X, Y):
    for i in tt.parallel(X.shape[0]):
        x = X[i, :]
        e = tt.exp(x - tt.max(x))
        Y[i, :] = e / tt.sum(e)


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 64, 1000])
def test_softmax(agrees, columns):
    X = floats(7, columns) * 20
    X[1, 0] = -np.inf
    Y = agrees(softmax.trace(X, X), X, np.zeros_like(X), rtol=3e-6, atol=1e-30)[1]
    with np.errstate(invalid="ignore"):
        wide = np.exp(X.astype("float64") - X.max(1, keepdims=True).astype("float64"))
        np.testing.assert_allclose(Y, wide / wide.sum(1, keepdims=True), rtol=1e-5, atol=1e-30)
