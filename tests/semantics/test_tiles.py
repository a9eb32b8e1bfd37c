"""Tile operations: shapes, matrix products and reductions."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tvm_tile.ir.dtypes import FLOATS, numpy_dtype
from tvm_tile.semantics.interpreter import interpret

POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")
ORDERS = ("source", "reverse", 0, 1, 17)


def evaluate(builder, make, *inputs, **options):
    """Run a program that loads the inputs, applies ``make(builder, *tiles)`` and stores the result."""
    b = builder()
    params = [b.tensor(f"X{k}", x.shape, x.dtype.name) for k, x in enumerate(inputs)]
    tile = make(b, *(b.load(p, *((0, n) for n in p.shape)) for p in params))
    out = b.tensor("out", tile.shape, tile.dtype)
    b.store(out, [(0, n) for n in tile.shape], tile)
    result = np.full(tile.shape, 7).astype(numpy_dtype(tile.dtype))
    before = [x.copy() for x in inputs]
    interpret(b.program(*params, out), *inputs, result, **options)
    for x, saved in zip(inputs, before, strict=True):
        assert x.tobytes() == saved.tobytes()
    return result


def test_shape_operations(builder):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(builder, lambda b, t: b.transpose(t, 1, 0), x), x.T)
    np.testing.assert_array_equal(evaluate(builder, lambda b, t: b.reshape(t, (3, 2)), x), x.reshape(3, 2))
    np.testing.assert_array_equal(
        evaluate(builder, lambda b, t: b.reshape(b.transpose(t, 1, 0), (6,)), x), x.T.reshape(6)
    )
    np.testing.assert_array_equal(
        evaluate(builder, lambda b, t: b.broadcast(t, (4, 2, 3)), x), np.broadcast_to(x, (4, 2, 3))
    )
    assert evaluate(builder, lambda b: b.iota(4, "float32")).tolist() == [0, 1, 2, 3]
    assert evaluate(builder, lambda b: b.iota(0)).tolist() == []
    assert evaluate(builder, lambda b: b.full((2,), -3, "int8")).tolist() == [-3, -3]
    assert evaluate(builder, lambda b: b.from_index(2**63 - 1)).tolist() == 2**63 - 1


@pytest.mark.parametrize("shape", [(5, 3, 4), (1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (7, 33, 2)])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("reduction", ORDERS)
def test_a_matrix_product_of_integers_wraps_the_same_in_every_order(builder, shape, ordered, reduction):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    c = rng.integers(-128, 128, (k, n)).astype(np.int8)
    acc = rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z, ordered), a, c, acc, reduction=reduction)
    want = (a.astype(np.int64) @ c.astype(np.int64) + acc).astype(np.int32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float32", "float32"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float64", "float64"),
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("reduction", ORDERS)
def test_a_matrix_product_of_floats_is_near_float64(builder, dtypes, ordered, reduction):
    operand, accumulator = map(numpy_dtype, dtypes)
    rng = np.random.default_rng(0)
    a, c = rng.standard_normal((2, 5, 9)).astype(operand), rng.standard_normal((2, 9, 3)).astype(operand)
    acc = rng.standard_normal((2, 5, 3)).astype(accumulator)
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z, ordered), a, c, acc, reduction=reduction)
    wide = [v.astype(np.float64) for v in (a, c, acc)]
    bound = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    error = np.abs(got.astype(np.float64) - (wide[0] @ wide[1] + wide[2]))
    eps = float(ml_dtypes.finfo(accumulator).eps)
    assert (error <= 11 * eps * bound).all()
    assert got.dtype == accumulator


def test_an_ordered_product_adds_one_product_after_the_other_to_the_accumulator(builder):
    a = np.array([[1.0, 1.0, 1.0]], np.float32)
    c = np.array([[2.0**24], [1.0], [1.0]], np.float32)
    acc = np.array([[1.0]], np.float32)
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z, True), a, c, acc)
    one = np.float32(1)
    assert got.item() == ((one + np.float32(2**24)) + one) + one == 2.0**24
    # The other way round, the small products add up before they meet the large one.
    other = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z), a, c, acc, reduction="reverse")
    assert other.item() == one + ((one + one) + np.float32(2**24)) == 2.0**24 + 4


def test_float32_is_not_accumulated_in_float64(builder):
    a, c = np.array([[1.0, 1.0]], np.float32), np.array([[2.0**24], [1.0]], np.float32)
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z), a, c, np.array([[-(2.0**24)]], np.float32))
    assert got.item() == 0.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_short_accumulator_accumulates_in_its_own_dtype(builder, dtype, ordered):
    big = 2048.0 if dtype == "float16" else 256.0
    a = np.ones((1, 5)).astype(numpy_dtype(dtype))
    c = np.array([[big], [1], [1], [1], [1]]).astype(numpy_dtype(dtype))
    acc = np.zeros((1, 1), numpy_dtype(dtype))
    assert float(evaluate(builder, lambda b, x, y, z: b.mma(x, y, z, ordered), a, c, acc).item()) == big


def test_float16_operands_are_not_multiplied_in_float16(builder):
    q = np.full((1, 256), 16, np.float16)
    acc = np.zeros((1, 1), np.float32)
    assert evaluate(builder, lambda b, x, y, z: b.mma(x, y, z), q, q.T.copy(), acc).item() == 65536.0


@pytest.mark.parametrize("shape", [(1, 2, 1), (8, 8, 8), (1, 8, 8), (8, 8, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_zero_times_infinity_is_nan(builder, shape, dtype):
    m, k, n = shape
    a, c = np.zeros((m, k), dtype), np.ones((k, n), dtype)
    c[0] = np.inf
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z), a, c, np.zeros((m, n), dtype))
    assert np.isnan(got).all()


def test_batch_axes_broadcast(builder):
    a, c = np.arange(12).reshape(3, 1, 2, 2), np.arange(8).reshape(2, 2, 2)
    acc = np.zeros((3, 2, 2, 2), np.int64)
    got = evaluate(builder, lambda b, x, y, z: b.mma(x, y, z), a, c, acc)
    np.testing.assert_array_equal(got, np.matmul(a, c))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (2, 0), (0, 1, 2)])
def test_integer_reductions_are_the_same_in_every_order(builder, policy, reduction, axes):
    x = np.random.default_rng(2).integers(-100, 100, (3, 5, 4)).astype(np.int32)
    oracles = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}
    for combiner, oracle in oracles.items():
        for keep in (False, True):
            got = evaluate(
                builder,
                lambda b, t, c=combiner, k=keep: b.reduce_tile(t, axes, c, policy=policy, keepdims=k),
                x,
                reduction=reduction,
            )
            wide = {"dtype": np.int32} if combiner in ("add", "multiply") else {}
            np.testing.assert_array_equal(got, oracle(x, axis=axes, keepdims=keep, **wide))


@pytest.mark.parametrize("combiner", ["and", "or"])
def test_logical_reductions(builder, combiner):
    x = np.array([[True, True], [True, False], [False, False]])
    got = evaluate(builder, lambda b, t: b.reduce_tile(t, (1,), combiner), x)
    assert got.tolist() == {"and": [True, False, False], "or": [True, True, False]}[combiner]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("reduction", ORDERS)
def test_an_empty_fibre_gives_the_identity(builder, policy, reduction):
    x = np.zeros((2, 0, 4), np.float32)
    for combiner, identity in {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}.items():
        got = evaluate(
            builder, lambda b, t, c=combiner: b.reduce_tile(t, (1,), c, policy=policy), x, reduction=reduction
        )
        np.testing.assert_array_equal(got, np.full((2, 4), identity))
    masked = evaluate(
        builder,
        lambda b, t: b.reduce_tile(t, (0,), policy=policy, where=b.full((3,), False, "bool")),
        np.array([np.nan, -0.0, 5], np.float32),
        reduction=reduction,
    )
    assert masked.item() == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("reduction", ORDERS)
def test_nan_propagates_from_every_place(builder, dtype, policy, reduction):
    for place, combiner in itertools.product((0, 3, 7), ("maximum", "minimum", "add", "multiply")):
        x = np.arange(8).astype(numpy_dtype(dtype))
        x[place] = np.nan
        got = evaluate(
            builder, lambda b, t, c=combiner: b.reduce_tile(t, (0,), c, policy=policy), x, reduction=reduction
        )
        assert np.isnan(got.astype(np.float64))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("reduction", ORDERS)
def test_masked_contributions_are_omitted(builder, policy, reduction):
    x = np.array([[1, np.nan, 2], [np.inf, 3, -np.inf], [np.nan] * 3], np.float32)
    m = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], bool)
    for combiner, want in {"add": [3, 3, 0], "multiply": [2, 3, 1], "maximum": [2, 3, -np.inf]}.items():
        got = evaluate(
            builder,
            lambda b, t, w, c=combiner: b.reduce_tile(t, (1,), c, policy=policy, where=w),
            x,
            m,
            reduction=reduction,
        )
        assert got.tolist() == want


def test_a_masked_contribution_does_not_turn_a_negative_zero(builder):
    x, m = np.array([-0.0, 5.0], np.float32), np.array([True, False])
    got = evaluate(builder, lambda b, t, w: b.reduce_tile(t, (0,), where=w), x, m)
    assert np.signbit(got)


def sequential(values, start_from_the_right=False):
    total, *rest = values[::-1] if start_from_the_right else values
    for v in rest:
        total = np.float32(total + v)
    return total


def test_folds_are_strictly_sequential_in_float32(builder):
    scales = 10.0 ** np.arange(-5, 5).repeat(100)
    x = (np.random.default_rng(3).standard_normal(1000) * scales).astype(np.float32)
    for reduction in ORDERS:
        left, right = (
            evaluate(builder, lambda b, t, p=p: b.reduce_tile(t, (0,), policy=p), x, reduction=reduction)
            for p in ("fold_left", "fold_right")
        )
        assert left == sequential(x)
        assert right == sequential(x, True)
    assert left != right


def test_several_axes_fold_in_lexicographic_order_whatever_order_they_are_named_in(builder):
    x = (np.random.default_rng(4).standard_normal((4, 3, 5)) * 1000).astype(np.float32)
    for axes in ((0, 2), (2, 0)):
        got = evaluate(builder, lambda b, t, a=axes: b.reduce_tile(t, a, policy="fold_left"), x)
        want = [sequential([x[i, j, k] for i in range(4) for k in range(5)]) for j in range(3)]
        assert got.tolist() == want


@pytest.mark.parametrize("reduction", ORDERS)
def test_tree_sums_stay_near_float64_and_source_is_the_left_fold(builder, reduction):
    x = np.random.default_rng(5).standard_normal(257).astype(np.float32)
    for policy in ("unordered_tree", "ordered_tree"):
        got = evaluate(
            builder, lambda b, t, p=policy: b.reduce_tile(t, (0,), policy=p), x, reduction=reduction
        )
        exact = x.astype(np.float64).sum()
        assert abs(float(got) - exact) <= 257 * 2.0**-24 * np.abs(x).sum()
        if reduction == "source":
            assert got == sequential(x)


def test_an_ordered_tree_keeps_the_order_and_an_unordered_one_may_not(builder):
    # Neighbours cancel; any tree that keeps the order gives one of few values.
    x = np.array([1e8, 1, -1e8, 1], np.float32)

    def outcomes(policy):
        return {
            float(evaluate(builder, lambda b, t: b.reduce_tile(t, (0,), policy=policy), x, reduction=seed))
            for seed in range(40)
        }

    f = np.float32
    a, b, c, d = x
    groupings = {
        ((a + b) + c) + d,
        (a + (b + c)) + d,
        (a + b) + (c + d),
        a + ((b + c) + d),
        a + (b + (c + d)),
    }
    assert outcomes("ordered_tree") <= {float(f(v)) for v in groupings}
    assert len(outcomes("ordered_tree")) > 1
    assert 2.0 in outcomes("unordered_tree") - outcomes("ordered_tree")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_accumulate_in_float32_and_round_once(builder, dtype):
    big = 2048.0 if dtype == "float16" else 256.0
    x = np.array([big, 1, 1, 1, 1]).astype(numpy_dtype(dtype))
    got = evaluate(builder, lambda b, t: b.reduce_tile(t, (0,), policy="fold_left"), x)
    assert float(got) == big + 4


def test_a_sum_into_a_wider_result_is_accumulated_there(builder):
    x = np.array([100, 100, 100], np.int8)
    assert evaluate(builder, lambda b, t: b.reduce_tile(t, (0,), dtype="int32"), x).item() == 300
    y = np.array([2.0**24, 1], np.float32)
    wide = evaluate(builder, lambda b, t: b.reduce_tile(t, (0,), dtype="float64"), y)
    assert wide.item() == 2.0**24 + 1


def test_reducing_no_axes_and_scalars(builder):
    x = np.array([[1, 2]], np.int32)
    np.testing.assert_array_equal(evaluate(builder, lambda b, t: b.reduce_tile(t, ()), x), x)
    assert evaluate(builder, lambda b, t: b.reduce_tile(t, (), "maximum"), np.array(3.0)).item() == 3.0


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", *FLOATS])
def test_argmax_and_argmin_take_the_first_extremum(builder, dtype):
    raw = np.random.default_rng(6).integers(0, 2 if dtype == "bool" else 5, (3, 4, 5))
    x = raw.astype(numpy_dtype(dtype))
    for kind, axis, keep in itertools.product(("argmax", "argmin"), range(3), (False, True)):
        got = evaluate(builder, lambda b, t, k=kind, a=axis, d=keep: b.arg_reduce(t, a, k, d), x)
        assert got.dtype == np.int32
        want = getattr(np, kind)(raw, axis=axis, keepdims=keep)
        np.testing.assert_array_equal(got, want)


def brute_arg(values, mask, kind):
    counted = [k for k, m in enumerate(mask) if m]
    nans = [k for k in counted if np.isnan(values[k])]
    if nans or not counted:
        return nans[0] if nans else 0
    best = (max if kind == "argmax" else min)(values[k] for k in counted)
    return next(k for k in counted if values[k] == best)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_masked_positions_and_nan_in_argmax(builder, kind):
    rng = np.random.default_rng(7)
    values = rng.choice([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, 2.0], (60, 5))
    x, m = values.astype(np.float32), rng.random((60, 5)) < 0.5
    got = evaluate(builder, lambda b, t, w: b.arg_reduce(t, 1, kind, where=w), x, m)
    assert got.tolist() == [brute_arg(v, w, kind) for v, w in zip(x, m, strict=True)]


def test_argmax_of_an_empty_axis_is_position_zero(builder):
    assert evaluate(builder, lambda b, t: b.arg_reduce(t, 1), np.zeros((2, 0), np.float32)).tolist() == [0, 0]
