"""Regions: order, carried state, branches, parallel instances, anchored updates and reductions."""

import numpy as np
import pytest

import tvm_tile.frontend as tt

RNG = np.random.default_rng(11)
ALL_POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-9, 9, shape).astype("int32")


@tt.kernel
def fibonacci(A, C, *, n):
    a, b = A[0, :], A[1, :]
    for _ in tt.serial(n):
        a, b = b, a + b
    C[0, :] = a
    C[1, :] = b


@tt.kernel
def rotation(A, C, *, n):
    a, b, c = A[0, :], A[1, :], A[2, :]
    for _ in tt.serial(n):
        a, b, c = b, c, a
    C[0, :] = a
    C[1, :] = b
    C[2, :] = c


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("kernel", [fibonacci, rotation])
def test_states_change_all_at_once(agrees, kernel, n):
    A, C = integers(3, 33), integers(3, 33)
    agrees(kernel.trace(A, C, n=n), A, C)


@tt.kernel
def transposing_state(A, C):
    a = A[:, :]
    s = tt.full((), 1, "int32")
    for _ in tt.pipeline(3):
        old = a
        a = tt.transpose(a, (1, 0)) * s + A[:, :]
        s = s + a[2, 1] + old[0, 3]
        a = a + tt.sum(old, axis=1)[:, None]
    C[:, :] = a + s


def test_a_state_that_is_read_elsewhere_is_not_overwritten_early(agrees):
    A, C = integers(9, 9), integers(9, 9)
    agrees(transposing_state.trace(A, C), A, C)


@tt.kernel
def products_of_state(A, C):
    p, q = A[:, :], A[:, :] + 1
    for _ in tt.serial(2):
        for _ in tt.serial(2):
            p = tt.mma(p, q, p)
            q = tt.mma(A[:, :], p, q)
        p, q = q, p
    C[:, :] = p - q


def test_a_contraction_does_not_read_what_it_overwrites(agrees):
    A, C = integers(7, 7), integers(7, 7)
    agrees(products_of_state.trace(A, C), A, C)


@tt.kernel
def branches(A, C):
    for i in tt.parallel(A.shape[0]):
        acc = tt.zeros((8,), "float32")
        other = tt.full((8,), 1.0, "float32")
        count = tt.full((), 0, "int32")
        for j in tt.serial(A.shape[1]):
            v = A[i, j]
            if v > 0:
                acc = acc + v
                count = count + 1
                if count > 2:
                    acc, other = other, acc
            else:
                acc = acc * 0.5
                C[i, 9] = v
        C[i, 0:8] = acc + other
        C[i, 8] = count.astype("float32")


def test_branches_carry_state_and_store(agrees):
    A, C = floats(6, 9), floats(6, 10)
    A[3, 2] = np.nan
    agrees(branches.trace(A, C), A, C, rtol=1e-6)


@tt.kernel
def triangle(A, C):
    n = A.shape[0]
    for i, j in tt.parallel(n, n, where=lambda i, j: j <= i):
        s = tt.full((), 0.0, "float32")
        for k in tt.serial(j + 1):
            s = s + A[i, k]
        C[i, j] = s


@pytest.mark.parametrize("n", [0, 1, 7])
def test_predicates_and_extents_that_depend_on_indices(agrees, n):
    A, C = floats(n, n), floats(n, n)
    agrees(triangle.trace(A, C), A, C, rtol=1e-6)


@tt.kernel
def ragged(A, lengths, C):
    for i in tt.parallel(lengths.shape[0]):
        n = lengths[i]
        s = tt.full((), 0.0, "float32")
        for j, k in tt.serial(n, 2):
            s = s * 0.5 + A[i, 2 * j + k]
        C[i] = s


def test_run_time_extents_may_be_negative(agrees):
    A, C, lengths = floats(5, 12), floats(5), np.array([3, 0, -4, 6, 1], "int32")
    agrees(ragged.trace(A, lengths, C), A, lengths, C, rtol=1e-6)


@tt.kernel
def nested(A, C):
    for i in tt.parallel(3):
        t = A[i, :] + i
        for j in tt.parallel(4):
            C[i, tt.ds(j * 8, 8)] = t[tt.ds(j * 8, 8)] * 3 + j
        for j in tt.serial(2):
            for q in tt.parallel(2):
                C[i + 3, tt.ds((2 * j + q) * 8, 8)] = t[tt.ds((2 * j + q) * 8, 8)] + 1
    for k in tt.serial(2):
        row = C[k, :]
        for i in tt.parallel(2):
            C[tt.ds(6 + i, 1), :] = (row * (k + 1) + i)[None, :]


def test_parallel_regions_nest_and_follow_one_another(agrees):
    A, C = floats(3, 32), floats(8, 32)
    agrees(nested.trace(A, C), A, C, rtol=1e-6)


@tt.kernel
def anchored(A, C, *, n, limit):
    t, u = A[0, :], A[1, :]
    for i in tt.parallel(n, where=lambda i: i > limit):
        C[i, :] = t * 2
        t, u = t * 2 + u, t
    C[n, :] = t
    C[n + 1, :] = u


@pytest.mark.parametrize(("n", "limit"), [(4, -1), (4, 1), (4, 9), (1, -1), (0, -1)])
def test_an_anchored_update_happens_once_or_never(agrees, n, limit):
    A, C = floats(2, 40), floats(n + 2, 40)
    agrees(anchored.trace(A, C, n=n, limit=limit), A, C, rtol=1e-6)


@tt.kernel
def derived(A, C, *, policy):
    s = tt.full((), 3, "int32")
    m = tt.full((4,), -100, "int32")
    for r in tt.reduce(A.shape[0], policy=policy):
        s = s + A[r, 0] * 2
        m = tt.maximum(m, A[r, 0:4])
    C[0] = s
    C[1:5] = m


@pytest.mark.parametrize("policy", ALL_POLICIES)
@pytest.mark.parametrize("n", [0, 1, 9])
def test_derived_reductions(agrees, policy, n):
    A, C = integers(n, 5), integers(5)
    agrees(derived.trace(A, C, policy=policy), A, C)


@tt.kernel
def joined_digits(A, C, *, policy):
    merge = tt.Merge(lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]), (0, 1))
    number, weight = tt.full((), 5, "int64"), tt.full((), 10, "int64")
    for r in tt.reduce(A.shape[0], policy=policy, merge=merge):
        number = number * 10 + A[r]
        weight = weight * 10
    C[0] = number
    C[1] = weight


@pytest.mark.parametrize("policy", ["ordered_tree", "fold_left", "fold_right"])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_declared_merges_keep_the_order_and_the_seed_on_the_left(agrees, policy, n):
    A, C = RNG.integers(0, 10, n), np.zeros(2, "int64")
    got = agrees(joined_digits.trace(A, C, policy=policy), A, C)[1][0]
    digits = A if policy != "fold_right" else A[::-1]
    assert got == int("5" + "".join(map(str, digits)))


@tt.kernel
def lifted(A, C):
    merge = tt.Merge(lambda a, b: tt.maximum(a, b), -(10**6), lift=lambda i, j: A[i, j] * 2, commutative=True)
    s = tt.full((), 7, "int32")
    for i, j in tt.reduce(A.shape[0], A.shape[1], merge=merge, where=lambda i, j: i + j > 2):
        s = tt.maximum(s, A[i, j] * 2)
    C[0] = s


@pytest.mark.parametrize("shape", [(4, 5), (1, 2), (0, 3)])
def test_lifts_and_active_coordinates(agrees, shape):
    A, C = integers(*shape), integers(1)
    agrees(lifted.trace(A, C), A, C)


@tt.kernel
def matrices(A, C, *, policy):
    identity = tt.eye(3, "int32")
    merge = tt.Merge(lambda a, b: tt.mma(a, b, tt.zeros((3, 3), "int32")), lambda: tt.eye(3, "int32"))
    s = identity + 1
    for r in tt.reduce(A.shape[0], policy=policy, merge=merge):
        s = tt.mma(s, A[r, :, :], tt.zeros((3, 3), "int32"))
    C[:, :] = s


@pytest.mark.parametrize("policy", ["ordered_tree", "fold_left", "fold_right"])
def test_a_reduction_that_does_not_commute(agrees, policy):
    A, C = integers(5, 3, 3), integers(3, 3)
    agrees(matrices.trace(A, C, policy=policy), A, C)


@tt.kernel
def scaled(
    A,
    alpha: tt.Scalar["float32"],  # noqa: F821
    n: tt.Scalar["int32"],  # noqa: F821
    C,
    flag: tt.Scalar["bool"],
    h: tt.Scalar["float16"],  # noqa: F821
):
    for i in tt.serial(n):
        if flag:
            C[tt.ds(i * n - 3, 8)] = A[tt.ds(i, 8)] * alpha + i
        else:
            C[tt.ds(i * 8, 8)] = A[tt.ds(i, 8)] + h.astype("float32")


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("n", [0, 3, 5])
def test_run_time_scalars(agrees, flag, n):
    A, C = floats(10), floats(40)
    agrees(scaled.trace(A, 0.0, 0, C, False, 0.0), A, 1.5, n, C, flag, 0.1, rtol=1e-6, atol=1e-6)


@tt.kernel
def views(A, C, D):
    t = A[:, :] + 1
    C[:, :] = tt.reshape(t, (5, 12)) * 2
    D[:, :, :] = tt.reshape(tt.transpose(A[:, :], (1, 0)) + 1, (5, 3, 4))[:, :, None].reshape(5, 3, 4)
    for j in tt.serial(5):
        C[j, :] = C[j, :] + t[:, tt.ds(j * 4 - 5, 12)][j % 6, :]


def test_views_of_tiles(agrees):
    A, C, D = integers(6, 10), integers(5, 12), integers(5, 3, 4)
    agrees(views.trace(A, C, D), A, C, D)
