"""Reductions of tiles with merges, and scans, against NumPy."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.structure import walk

RNG = np.random.default_rng(11)
ORDERS = ("source", "reverse", 5)

#: Composition of the maps ``t -> a t + b``: associative, not commutative.
AFFINE = tt.Merge(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), identity=(1, 0))


def interpreted(kernel, *arrays, reduction="source", **constants):
    copies = [array.copy() for array in arrays]
    program = kernel.trace(*copies, **constants)
    assert tt.parse(str(program)) == program
    tt.interpret(program, *copies, reduction=reduction)
    return copies


@tt.kernel
def reduced(X, Y, *, merge, axis, options):
    for _ in tt.parallel(1):
        Y[...] = tt.reduce_tile(X[...], axis, merge, **dict(options))


@tt.kernel
def scanned(X, Y, *, merge, axis, options):
    for _ in tt.parallel(1):
        Y[...] = tt.scan(X[...], axis, merge, **dict(options))


FUNCTIONS = [
    (tt.sum, np.add),
    (tt.add, np.add),
    (tt.prod, np.multiply),
    (tt.max, np.maximum),
    (tt.maximum, np.maximum),
    (tt.min, np.minimum),
    (tt.minimum, np.minimum),
]


@pytest.mark.parametrize(("merge", "ufunc"), FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, (0, 1), None, ()])
@pytest.mark.parametrize("dtype", ["i4", "f4"])
def test_functions_of_the_language_are_merges(merge, ufunc, axis, dtype):
    x = RNG.integers(-4, 5, (5, 7)).astype(dtype)
    expected = ufunc.reduce(x, axis=axis)
    y = interpreted(reduced, x, np.zeros_like(expected), merge=merge, axis=axis, options=())[1]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("merge", "ufunc"), [(tt.any, np.logical_or), (tt.all, np.logical_and)])
def test_logic_merges_bool(merge, ufunc):
    x = RNG.random((5, 7)) < 0.7
    y = interpreted(reduced, x, np.zeros(5, bool), merge=merge, axis=1, options=())[1]
    np.testing.assert_array_equal(y, ufunc.reduce(x, axis=1))


@pytest.mark.parametrize(
    ("dtype", "result"), [("i1", "i4"), ("i2", "i4"), ("?", "i8"), ("u1", "u1"), ("f2", "f2")]
)
def test_sums_have_the_dtypes_of_tt_sum(dtype, result):
    x = np.full((3000,), 1, dtype)
    for merge in (tt.sum, tt.add):
        y = interpreted(reduced, x, np.zeros((), result), merge=merge, axis=0, options=())[1]
        # In float16 the sum would stop at 2048.
        assert y == np.array(3000).astype(result)


def test_seeds_join_on_the_left_and_masks_omit():
    x = np.array([[1, 2, 3], [4, 5, 6]], "i4")
    options = (("seed", 10), ("where", None))
    assert interpreted(reduced, x, np.zeros(2, "i4"), merge=tt.add, axis=1, options=options)[1].tolist() == [
        16,
        25,
    ]

    @tt.kernel
    def k(X, Y, Z):
        for _ in tt.parallel(1):
            x = X[...]
            Y[...] = tt.reduce_tile(x, 1, tt.max, where=x % 2 == 0, seed=x[:, 0] * 0 - 9)
            a, b = tt.reduce_tile((x, x), 1, AFFINE, policy="fold_left", seed=(2, 3), where=x > 1)
            Z[0] = a[0]
            Z[1] = b[0]

    _, y, z = interpreted(k, x, np.zeros(2, "i4"), np.zeros(2, "i4"))
    assert y.tolist() == [2, 6]
    # (2, 3), then x -> 2x + 2, then x -> 3x + 3.
    assert z.tolist() == [12, (3 * 2 + 2) * 3 + 3]


def test_an_empty_fibre_gives_the_seed_or_the_identity():
    x = np.zeros((2, 0), "f4")
    plain = interpreted(reduced, x, np.zeros(2, "f4"), merge=tt.max, axis=1, options=())[1]
    assert plain.tolist() == [-np.inf, -np.inf]
    seeded = interpreted(reduced, x, np.zeros(2, "f4"), merge=tt.max, axis=1, options=(("seed", 4.0),))[1]
    assert seeded.tolist() == [4, 4]


@pytest.mark.parametrize("policy", ["ordered_tree", "fold_left", "fold_right"])
@pytest.mark.parametrize("reduction", ORDERS)
def test_a_merge_that_does_not_commute_keeps_the_order(policy, reduction):
    x = RNG.integers(-3, 4, (4, 6)).astype("i8")

    @tt.kernel
    def k(X, A, B):
        for _ in tt.parallel(1):
            a, b = tt.reduce_tile((X[...], X[...]), 1, AFFINE, policy=policy)
            A[...] = a
            B[...] = b

    a, b = np.ones(4, "i8"), np.zeros(4, "i8")
    # A right fold goes from the last contribution to the first; the total stays on the left.
    for column in x.T[::-1] if policy == "fold_right" else x.T:
        a, b = a * column, b * column + column
    _, found_a, found_b = interpreted(k, x, np.zeros(4, "i8"), np.zeros(4, "i8"), reduction=reduction)
    np.testing.assert_array_equal(found_a, a)
    np.testing.assert_array_equal(found_b, b)


def test_a_tree_that_permutes_needs_a_merge_that_commutes():
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            a, b = tt.reduce_tile((X[...], X[...]), 0, AFFINE)
            Y[0] = a + b

    with pytest.raises(IllegalError, match="ordered_tree"):
        interpreted(k, np.ones(3, "f4"), np.zeros(1, "f4"))


def test_lift_makes_a_state_of_the_elements_of_each_operand():
    norm = tt.Merge(lambda a, b: a + b, 0.0, lift=lambda x, w: x * x * w.astype("float32"), commutative=True)

    @tt.kernel
    def k(X, W, Y, Z):
        for _ in tt.parallel(1):
            Y[...] = tt.reduce_tile((X[...], W[...]), 0, norm)
            Z[...] = tt.scan((X[...], W[...]), 0, norm)

    x, w = RNG.integers(0, 5, (6, 3)).astype("f4"), RNG.integers(0, 5, (6, 1)).astype("i4")
    _, _, y, z = interpreted(k, x, w, np.zeros(3, "f4"), np.zeros((6, 3), "f4"))
    np.testing.assert_array_equal(y, (x * x * w).sum(0))
    np.testing.assert_array_equal(z, (x * x * w).cumsum(0))


@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4"])
def test_welford_gives_count_mean_and_squares(dtype, reduction):
    x = (RNG.standard_normal((4, 9)) * 3 + 5).astype(dtype)
    working = {"f4": "f4", "f8": "f8", "f2": "f4", "i4": "f8"}[dtype]

    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            states = tt.reduce_tile(X[...], 1, tt.welford, where=X[...] != 0)
            for place, state in enumerate(states):
                Y[place, :] = state

    x[2, :] = 0
    y = interpreted(k, x, np.zeros((3, 4), working), reduction=reduction)[1]
    kept = [row[row != 0].astype("f8") for row in x]
    expected = [
        [len(r), r.mean() if len(r) else 0, ((r - r.mean()) ** 2).sum() if len(r) else 0] for r in kept
    ]
    np.testing.assert_allclose(y.T, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ORDERS)
def test_logsumexp_is_right_for_infinities_and_empty_fibres(reduction):
    inf = np.inf
    x = np.array(
        [[1, 2, 3], [-inf, -inf, -inf], [-inf, 0, -inf], [inf, 0, -inf], [1000, 1000, -1000], [np.nan, 1, 2]],
        "f4",
    )

    @tt.kernel
    def k(X, Y, E):
        for _ in tt.parallel(1):
            m, s = tt.reduce_tile(X[...], 1, tt.logsumexp)
            Y[...] = m + tt.log(s)
            m, s = tt.reduce_tile(X[:, 0:0], 1, tt.logsumexp)
            E[0, :] = m
            E[1, :] = s

    _, y, e = interpreted(k, x, np.zeros(6, "f4"), np.zeros((2, 6), "f4"), reduction=reduction)
    with np.errstate(all="ignore"):
        expected = np.logaddexp.reduce(x.astype("f8"), axis=1)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert e.tolist() == [[-inf] * 6, [0] * 6]


@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("dtype", ["f4", "i1", "?", "u8"])
def test_argmax_pair_finds_the_first_largest_in_any_order(dtype, reduction):
    x = RNG.integers(0, 3, (20, 6)).astype(dtype)
    if dtype == "f4":
        x[RNG.random(x.shape) < 0.2] = np.nan
        x[0, :] = -np.inf

    @tt.kernel
    def k(X, V, I):
        for _ in tt.parallel(1):
            places = tt.broadcast_to(tt.iota(X.shape[1], "int32"), X.shape)
            v, i = tt.reduce_tile((X[...], places), 1, tt.argmax_pair)
            V[...] = v
            I[...] = i

    _, v, i = interpreted(k, x, np.zeros(20, dtype), np.zeros(20, "i4"), reduction=reduction)
    np.testing.assert_array_equal(i, x.argmax(1))
    np.testing.assert_array_equal(v, x.max(1))


def test_the_sentinel_of_argmax_pair_is_beyond_all_positions():
    @tt.kernel
    def k(X, I):
        for _ in tt.parallel(1):
            _, i = tt.reduce_tile((X[...], tt.iota(3, "int16")), 0, tt.argmax_pair, where=X[...] > 9.0)
            I[0] = i

    assert interpreted(k, np.zeros(3, "f4"), np.zeros(1, "i2"))[1][0] == np.iinfo("i2").max


def test_merges_of_the_language_merge_states_of_a_region():
    @tt.kernel
    def k(X, Y, Z, W):
        for _ in tt.parallel(1):
            count = tt.zeros((), "float32")
            mean = tt.zeros((), "float32")
            m2 = tt.zeros((), "float32")
            for r in tt.reduce(X.shape[0], merge=tt.welford):
                count = count + 1.0
                delta = X[r] - mean
                mean = mean + delta / count
                m2 = m2 + delta * (X[r] - mean)
            Y[0] = count
            Y[1] = mean
            Y[2] = m2
            best = tt.full((), -1.0, "float32")
            total = tt.zeros((), "float32")
            for r in tt.reduce(X.shape[0], merge=tt.max):
                if X[r] > best:
                    best = X[r]
            Z[0] = best
            for r in tt.reduce(X.shape[0], merge=tt.sum):
                total = tt.add(total, X[r])
            W[0] = total

    x = RNG.standard_normal(11).astype("f4")
    arrays = (np.zeros(3, "f4"), np.zeros(1, "f4"), np.zeros(1, "f4"))
    for reduction in ORDERS:
        _, y, z, w = interpreted(k, x, *arrays, reduction=reduction)
        np.testing.assert_allclose(y, [11, x.mean(), ((x - x.mean()) ** 2).sum()], rtol=1e-5)
        assert z[0] == max(x.max(), -1)
        np.testing.assert_allclose(w[0], x.sum(), rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["f4", "i4", "i1", "?", "u2"])
def test_running_sums_and_maxima_are_numpys(axis, dtype):
    x = RNG.integers(-5, 6, (5, 7)).astype(dtype)
    result = {"i1": "i4", "?": "i8"}.get(dtype, dtype)

    @tt.kernel
    def k(X, S, M):
        for _ in tt.parallel(1):
            S[...] = tt.cumsum(X[...], axis=axis)
            M[...] = tt.cummax(X[...], axis=axis)

    sums = np.cumsum(x, axis=axis, dtype=result)
    tops = np.maximum.accumulate(x if axis is not None else x.reshape(-1), axis=axis or 0)
    _, s, m = interpreted(k, x, np.zeros_like(sums), np.zeros_like(tops))
    np.testing.assert_array_equal(s, sums)
    np.testing.assert_array_equal(m, tops)


def test_each_running_sum_of_sixteen_bits_is_rounded_once():
    @tt.kernel
    def k(X, Y, Z, W):
        for _ in tt.parallel(1):
            Y[...] = tt.cumsum(X[...])
            Z[...] = tt.cumsum(X[...], dtype="float32")
            W[...] = tt.cumsum(X[...].astype("int8"), dtype="int8")

    x = np.full(3000, 1, "f2")
    _, y, z, w = interpreted(k, x, np.zeros(3000, "f2"), np.zeros(3000, "f4"), np.zeros(3000, "i1"))
    np.testing.assert_array_equal(y, np.arange(1, 3001).astype("f2"))
    np.testing.assert_array_equal(z, np.arange(1, 3001))
    np.testing.assert_array_equal(w, np.arange(1, 3001).astype("i1"))


def test_nan_propagates_along_scans():
    @tt.kernel
    def k(X, Y, Z):
        for _ in tt.parallel(1):
            Y[...] = tt.cummax(X[...])
            Z[...] = tt.cumsum(X[...])

    x = np.array([1, np.nan, 3, 2], "f4")
    _, y, z = interpreted(k, x, x, x)
    np.testing.assert_array_equal(y, [1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(z, [1, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("policy", ["ordered_tree", "fold_left"])
@pytest.mark.parametrize("reduction", ORDERS)
def test_scans_hold_every_prefix(n, policy, reduction):
    x = RNG.integers(-3, 4, (3, n)).astype("i4")

    @tt.kernel
    def k(X, Y, Z):
        for _ in tt.parallel(1):
            a, b = tt.scan((X[...], X[...]), 1, AFFINE, policy=policy)
            Y[0, :, :] = a
            Y[1, :, :] = b
            a, b = tt.scan((X[...], X[...]), 1, AFFINE, exclusive=True, seed=(2, X[:, 0]), policy=policy)
            Z[0, :, :] = a
            Z[1, :, :] = b

    _, y, z = interpreted(k, x, np.zeros((2, 3, n), "i4"), np.zeros((2, 3, n), "i4"), reduction=reduction)
    a, b = np.ones(3, "i4"), np.zeros(3, "i4")
    c, d = np.full(3, 2, "i4"), (x[:, 0] if n else np.zeros(3, "i4"))
    for column in range(n):
        np.testing.assert_array_equal(z[:, :, column], [c, d])
        a, b = a * x[:, column], b * x[:, column] + x[:, column]
        c, d = c * x[:, column], d * x[:, column] + x[:, column]
        np.testing.assert_array_equal(y[:, :, column], [a, b])


def test_known_merges_say_so_in_the_program():
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            Y[...] = tt.cumsum(X[...]) + tt.reduce_tile(X[...], 0, tt.max)
            _moments = tt.reduce_tile(X[...], 0, tt.welford)
            _first = tt.reduce_tile(X[...], 0, tt.Merge(lambda a, b: a, 0.0), policy="fold_left")

    program = k.trace(np.zeros(4, "f4"), np.zeros(4, "f4"))
    merges = [op.merge for op in walk(program) if isinstance(op, (MergeReduce, Scan))]
    assert [(m.builtin, m.provenance, m.exact) for m in merges] == [
        (("add",), "known", False),
        (("maximum",), "known", True),
        (None, "known", False),
        (None, "declared", False),
    ]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda x: tt.reduce_tile(x, 0, tt.argmax), CaptureError, ("tt.argmax", "tt.argmax_pair")),
        (lambda x: tt.scan(x, 0, tt.argmin), CaptureError, ("tt.argmin", "tt.argmax_pair")),
        (lambda x: tt.reduce_tile(x, 0, max), CaptureError, ("no tt.Merge",)),
        (lambda x: tt.reduce_tile(x, 0, None), CaptureError, ("None",)),
        (lambda x: tt.reduce_tile(x, 0, tt.sum, policy="any"), CaptureError, ("'any'",)),
        (lambda x: tt.reduce_tile(x, 2, tt.sum), OperandError, ("no axis 2",)),
        (lambda x: tt.reduce_tile((), 0, tt.sum), OperandError, ("no operand",)),
        (lambda x: tt.reduce_tile((x, x[:, :3]), 0, AFFINE), OperandError, ("broadcast",)),
        (lambda x: tt.reduce_tile(x, 0, AFFINE), CaptureError, ("2 states", "the 1 of")),
        (lambda x: tt.reduce_tile(x, 0, tt.argmax_pair), OperandError, ("2 operands", "tt.iota")),
        (lambda x: tt.reduce_tile((x, x), 0, tt.welford), OperandError, ("1 operand,", "not 2")),
        (lambda x: tt.reduce_tile(x, 0, tt.any), CaptureError, ("bool", "compare first")),
        (lambda x: tt.reduce_tile(x, 0, tt.sum, seed=(1.0, 2.0)), OperandError, ("2 seeds", "1 states")),
        (lambda x: tt.reduce_tile(x.astype("int32"), 0, tt.max, seed=1.5), OperandError, ("narrowing",)),
        (lambda x: tt.reduce_tile(x, 0, tt.max, seed=tt.zeros((3,), "float32")), OperandError, ("(3,)",)),
        (
            lambda x: tt.reduce_tile(x.astype("float8_e5m2"), 0, tt.max),
            CaptureError,
            ("float8_e5m2", "astype"),
        ),
        (
            lambda x: tt.reduce_tile(x, 0, tt.Merge(lambda a, b: (a + b).astype("float64"), 0.0)),
            OperandError,
            ("float64[6]", "float32[6]"),
        ),
        (
            lambda x: tt.scan(
                x, 0, tt.Merge(lambda a, b: a + b, 0.0, lift=lambda e: tt.zeros((9,), e.dtype))
            ),
            OperandError,
            ("broadcast",),
        ),
        (
            lambda x: tt.scan(x, 0, tt.sum, policy="unordered_tree"),
            CaptureError,
            ("ordered_tree", "permutes"),
        ),
        (lambda x: tt.scan(x, None, tt.sum), OperandError, ("no int",)),
        (lambda x: tt.cumsum(x, axis=2), OperandError, ("no axis 2",)),
        (lambda x: tt.cumsum(x.astype("int64"), dtype="int32"), OperandError, ("narrow",)),
    ],
)
def test_reductions_and_scans_that_do_not_fit_are_refused(refused, make, kind, words):
    @tt.kernel
    def k(X):
        make(X[...])

    refused(kind, lambda: k.trace(np.zeros((4, 6), "f4")), *words)


@pytest.mark.parametrize("merge", [tt.argmax, max, "sum", tt.exp])
def test_a_region_takes_only_merges(refused, merge):
    @tt.kernel
    def k(X):
        s = tt.zeros((), "float32")
        for r in tt.reduce(4, merge=merge):
            s = s + X[r]

    refused(CaptureError, lambda: k.trace(np.zeros(4, "f4")))


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
def test_a_body_that_combines_in_another_way_than_the_merge_is_refused(refused, policy):
    @tt.kernel
    def k(X, Y, *, merge):
        s = tt.full((), 10, "int32")
        for r in tt.reduce(X.shape[0], merge=merge, policy=policy):
            s = tt.maximum(s, X[r])
        Y[0] = s

    x, y = np.array([3, -4, 50], "i4"), np.zeros(1, "i4")
    assert interpreted(k, x, y, merge=tt.max)[1][0] == 50
    refused(IllegalError, lambda: k.trace(x, y, merge=tt.sum), "updates s by maximum", "combines by add")


@pytest.mark.parametrize("reduction", ORDERS)
def test_a_body_of_another_form_is_what_one_contribution_does(reduction):
    @tt.kernel
    def k(X, Y):
        s = tt.full((), 10, "int32")
        for r in tt.reduce(X.shape[0], merge=tt.sum):
            s = s - X[r]
        Y[0] = s

    # A contribution is the body run from 0, the identity of the sum.
    y = interpreted(k, np.array([3, -4, 5], "i4"), np.zeros(1, "i4"), reduction=reduction)[1]
    assert y[0] == 10 - 3 + 4 - 5


def test_a_merge_that_has_other_states_than_the_region_is_refused(refused):
    @tt.kernel
    def k(X):
        s = tt.zeros((), "float32")
        for r in tt.reduce(4, merge=tt.welford):
            s = s + X[r]

    refused(CaptureError, lambda: k.trace(np.zeros(4, "f4")), "tt.welford has 3 states", "1 of")


def test_a_merge_of_no_function_points_at_the_users_line(refused):
    refused(CaptureError, lambda: tt.Merge(3, 0), "fn=3", at="tt.Merge(3, 0)")
