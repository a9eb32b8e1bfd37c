"""Creation, shape, contraction and reduction of tiles, by the interpreter against NumPy."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError
from tvm_tile.ir.dtypes import numpy_dtype
from tvm_tile.ir.ops import ArgReduce, Mma, ReduceTile
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.interpreter import interpret


def computed(fn, *arrays):
    """The value of a tile function of arrays (two at most), by the interpreter, and its program."""
    got = []

    @tt.kernel
    def k(A, B, Y, *, store):
        tile = fn(*(t[...] for t in (A, B)[: len(arrays)]))
        got.append(tile)
        if store:
            Y[...] = tile

    inputs = (*arrays, *[np.zeros(1)] * (2 - len(arrays)))
    k.trace(*inputs, tt.spec((), "bool"), store=False)
    out = np.zeros(got[0].shape, numpy_dtype(got[0].dtype))
    program = k.trace(*inputs, out, store=True)
    interpret(program, *inputs, out)
    return out, program


def random(*shape, dtype="f4", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_creation():
    for fn, expected in (
        (lambda: tt.zeros((2, 3), "int8"), np.zeros((2, 3), "i1")),
        (lambda: tt.ones(3, "float16"), np.ones(3, "f2")),
        (lambda: tt.full((2, 0), 7, np.float64), np.full((2, 0), 7.0)),
        (lambda: tt.full((), True, "bool"), np.array(True)),
        (lambda: tt.iota(5, "uint8"), np.arange(5, dtype="u1")),
        (lambda: tt.iota(4, "float16"), np.arange(4, dtype="f2")),
        (lambda: tt.iota(0, "int64"), np.arange(0)),
        (lambda: tt.eye(3, "float32"), np.eye(3, dtype="f4")),
    ):
        value, _ = computed(fn)
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value, expected)


def test_full_of_a_tile_or_an_index():
    value, _ = computed(lambda a: tt.full((2, 2), a[1], "float16"), np.array([1.0, 2.5], "f4"))
    np.testing.assert_array_equal(value, np.full((2, 2), 2.5, "f2"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tt.full((), 1.5, "int32"), ("1.5", "int32")),
        (lambda: tt.full((), -1, "uint8"), ("-1", "uint8", "0..255")),
        (lambda: tt.full((), float("nan"), "int32"), ("nan",)),
        (lambda: tt.full((), 2, "bool"), ("bool",)),
        (lambda: tt.zeros((-1,), "float32"), ("negative",)),
        (lambda: tt.zeros((2.5,), "float32"), ("2.5",)),
        (lambda: tt.zeros((2,), "nothing"), ("nothing",)),
        (lambda: tt.full((2,), "x", "float32"), ("'x'",)),
    ],
)
def test_creation_refuses(refused, call, words):
    refused(CaptureError, lambda: computed(call), *words)


def test_shape_is_static(refused):
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[0] = tt.sum(tt.zeros((i, 2), "float32"))

    refused(
        CaptureError,
        lambda: k.trace(tt.spec((4,), "float32")),
        "index i",
        "static",
        at='tt.zeros((i, 2), "float32")',
    )


def test_shape_functions():
    a = random(2, 3, 4)
    for fn, expected in (
        (lambda x: x.T, a.T),
        (lambda x: tt.transpose(x, (1, -1, 0)), a.transpose(1, 2, 0)),
        (lambda x: tt.reshape(x, (6, -1)), a.reshape(6, 4)),
        (lambda x: tt.reshape(x, -1), a.reshape(-1)),
        (lambda x: tt.broadcast_to(x[:, :1], (5, 2, 3, 4)), np.broadcast_to(a[:, :1], (5, 2, 3, 4))),
        (lambda x: tt.broadcast_to(x[0, 0, 0], 3), np.full(3, a[0, 0, 0])),
        (lambda x: x[:, None, 0, ::2, None], a[:, None, 0, ::2, None]),
    ):
        np.testing.assert_array_equal(computed(fn, a)[0], expected)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: tt.reshape(x, (5, 5)), ("24 elements", "(5, 5)")),
        (lambda x: tt.reshape(x, (-1, -1)), ("24 elements",)),
        (lambda x: tt.reshape(x, (-1, 5)), ("24 elements",)),
        (lambda x: tt.transpose(x, (0, 0, 1)), ("does not permute",)),
        (lambda x: tt.transpose(x, (0, 3, 1)), ("no axis 3",)),
        (lambda x: tt.broadcast_to(x, (3, 4)), ("(3, 4)",)),
        (lambda x: tt.broadcast_to(x, (2, 3, 5)), ("(2, 3, 5)",)),
    ],
)
def test_shape_functions_refuse(refused, fn, words):
    refused(OperandError, lambda: computed(fn, random(2, 3, 4)), *words)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((3, 0), (0, 2)),
        ((1, 4), (4, 0)),
    ],
)
def test_matmul_has_the_shapes_of_numpy(a, b):
    x, y = random(*a), random(*b, seed=1)
    expected = np.matmul(x.astype("f8"), y.astype("f8"))
    for fn in (tt.matmul, lambda p, q: p @ q):
        value, _ = computed(fn, x, y)
        assert value.shape == expected.shape
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "dtype", "accumulator", "result"),
    [
        ("f2", "f2", None, "float32", "float16"),
        ("f2", "f2", "float32", "float32", "float32"),
        ("i1", "i1", None, "int32", "int32"),
        ("u1", "u1", None, "uint8", "uint8"),
        ("f4", "f8", None, "float64", "float64"),
        ("i4", "i4", "int64", "int64", "int64"),
        ("i1", "f4", None, "float32", "float32"),
    ],
)
def test_matmul_accumulates_and_rounds_once(a, b, dtype, accumulator, result):
    x, y = np.ones((2, 3), a), np.ones((3, 2), b)
    value, program = computed(lambda p, q: tt.matmul(p, q, dtype=dtype), x, y)
    (mma,) = [s for s in walk(program) if isinstance(s, Mma)]
    assert mma.acc.dtype == accumulator
    assert value.dtype == result
    np.testing.assert_array_equal(value, 3)


def test_mma_policy():
    for policy, ordered in ((None, False), (tt.MmaPolicy(), False), (tt.MmaPolicy(ordered=True), True)):
        _, program = computed(
            lambda p, q, policy=policy: tt.mma(p, q, tt.ones((2, 2), "float32"), policy=policy),
            random(2, 3),
            random(3, 2),
        )
        assert [s.ordered for s in walk(program) if isinstance(s, Mma)] == [ordered]


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: tt.mma(x, x, tt.zeros((3, 4), "float32")), ("inner extents differ", "(3, 4)")),
        (lambda x: tt.mma(x, x.T, tt.zeros((3, 4), "float32")), ("(3, 3)", "(3, 4)")),
        (lambda x: tt.mma(x[0], x.T, tt.zeros((3,), "float32")), ("matrices",)),
        (lambda x: tt.mma(x, x.T, tt.zeros((3, 3), "float16")), ("narrow", "float16")),
        (lambda x: tt.mma(x, x.T.astype("float64"), tt.zeros((3, 3), "float32")), ("narrow", "float64")),
        (lambda x: x @ x, ("inner extents differ",)),
        (lambda x: x @ x[0, 0], ("needs axes",)),
        (lambda x: (x > 0) @ (x.T > 0), ("bool",)),
        (lambda x: tt.matmul(x.astype("float64"), x.T, dtype="float32"), ("narrow", "float64")),
        (lambda x: tt.broadcast_to(x, (2, 3, 4)) @ tt.broadcast_to(x.T, (3, 4, 3)), ("batch",)),
    ],
)
def test_contraction_refuses(refused, fn, words):
    refused(OperandError, lambda: computed(fn, random(3, 4)), *words)


def test_mma_needs_its_own_policy(refused):
    refused(
        CaptureError, lambda: computed(lambda x: tt.mma(x, x, x, policy="ordered"), random(3, 3)), "MmaPolicy"
    )


NUMPY = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "mean": np.mean,
}


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(NUMPY)),
    st.sampled_from(["f4", "f8", "i4", "i8", "u1", "bool"]),
    st.sampled_from([None, 0, 1, -1, (0, 2), (1,), (), (2, 1, 0), [0, 1]]),
    st.booleans(),
    st.booleans(),
)
def test_reductions_are_those_of_numpy(name, dtype, axis, keepdims, masked):
    x = np.random.default_rng(0).integers(0, 4, (2, 3, 4)).astype(dtype)
    where = np.random.default_rng(1).integers(0, 2, (3, 4)).astype(bool)
    axis_of_numpy = tuple(axis) if isinstance(axis, list) else axis
    options = {"axis": axis_of_numpy, "keepdims": keepdims}
    if masked and name in ("max", "min"):
        low, high = (0, 4) if dtype != "bool" else (False, True)
        expected = NUMPY[name](np.where(where, x, low if name == "max" else high), **options)
        if not np.broadcast_to(where, x.shape).any(axis=axis_of_numpy).all():
            return
    elif masked:
        masked_x = x.astype("f8") if name == "mean" else x
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            expected = NUMPY[name](masked_x, where=np.broadcast_to(where, x.shape), **options)
    else:
        expected = NUMPY[name](x, **options)
    if masked and name == "mean" and np.isnan(expected).any():
        return

    def fn(t, m):
        return getattr(tt, name)(t, axis=axis, keepdims=keepdims, where=m if masked else None)

    value, _ = computed(fn, x, where)
    assert value.shape == np.shape(expected)
    np.testing.assert_allclose(
        value.astype("f8"), np.asarray(expected, "f8") % (256 if value.dtype == "u1" else np.inf), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "dtype", "given", "result"),
    [
        ("sum", "int8", None, "int32"),
        ("prod", "int16", None, "int32"),
        ("sum", "uint8", None, "uint8"),
        ("sum", "int32", None, "int32"),
        ("sum", "bool", None, "int64"),
        ("sum", "float16", None, "float16"),
        ("sum", "float16", "float32", "float32"),
        ("sum", "int32", "float64", "float64"),
        ("sum", "int8", "float32", "float32"),
        ("max", "int8", None, "int8"),
        ("max", "float16", "float32", "float32"),
        ("any", "float32", None, "bool"),
        ("mean", "float16", None, "float16"),
        ("mean", "int8", None, "float64"),
        ("mean", "int8", "float32", "float32"),
        ("argmax", "float32", None, "int32"),
        ("argmin", "int8", "int64", "int64"),
    ],
)
def test_result_dtypes(name, dtype, given, result):
    x = np.ones((3, 2), dtype)
    value, _ = computed(lambda t: getattr(tt, name)(t, axis=0, dtype=given), x)
    assert (value.dtype, value.shape) == (result, (2,))


def test_half_precision_accumulates_in_single_and_rounds_once():
    x = np.full(4096, 0.1, "f2")
    assert computed(lambda t: tt.sum(t), x)[0] == np.float16(x.astype("f8").sum())
    value, program = computed(lambda t: tt.mean(t), x)
    assert value == np.float16(x.astype("f8").mean())
    assert [s.result.dtype for s in walk(program) if isinstance(s, ReduceTile)] == ["float32"]


def test_mean_counts_beyond_the_precision_of_the_float():
    x = np.ones(2**12, "f2")
    assert computed(lambda t: tt.mean(t, where=t > 0), x)[0] == 1.0


def test_empty_fibres():
    x = np.zeros((0, 2), "f4")
    assert computed(lambda t: tt.sum(t, axis=0), x)[0].tolist() == [0.0, 0.0]
    assert computed(lambda t: tt.prod(t, axis=0), x)[0].tolist() == [1.0, 1.0]
    assert computed(lambda t: tt.max(t, axis=0), x)[0].tolist() == [-np.inf] * 2
    assert np.isnan(computed(lambda t: tt.mean(t, axis=0), x)[0]).all()
    assert computed(lambda t: tt.argmax(t, axis=1, keepdims=True), x)[0].shape == (0, 1)


def test_argmax_of_an_empty_axis_is_illegal(refused):
    refused(
        IllegalError, lambda: computed(lambda t: tt.argmax(t, axis=0), np.zeros((0, 2), "f4")), "empty axis 0"
    )
    refused(IllegalError, lambda: computed(lambda t: tt.argmin(t), np.zeros((0, 2), "f4")), "empty axis")


@pytest.mark.parametrize(("axis", "keepdims"), [*itertools.product([None, 0, 1, -1], [False, True])])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_those_of_numpy(name, axis, keepdims):
    x = np.random.default_rng(0).integers(0, 3, (4, 5)).astype("f4")
    x[2, 3] = np.nan
    value, program = computed(lambda t: getattr(tt, name)(t, axis=axis, keepdims=keepdims), x)
    np.testing.assert_array_equal(value, getattr(np, name)(x, axis=axis, keepdims=keepdims))
    assert sum(isinstance(s, ArgReduce) for s in walk(program)) == 1


def test_positions_leave_masked_elements_out():
    x = np.array([[1.0, 9.0, 3.0], [4.0, 2.0, 8.0]], "f4")
    value, _ = computed(lambda t: tt.argmax(t, axis=1, where=t < 8), x)
    assert value.tolist() == [2, 0]


def test_scalars_reduce():
    x = np.array(3.0, "f4")
    for fn in (tt.sum, tt.max, tt.mean, tt.prod):
        assert computed(fn, x)[0] == 3.0
    assert computed(tt.argmax, x)[0] == 0
    assert computed(lambda t: tt.sum(t, where=t > 5), x)[0] == 0.0


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree", "fold_left", "fold_right"])
def test_policy_goes_to_the_operation(policy):
    _, program = computed(lambda t: tt.sum(t, policy=policy), random(5))
    assert [s.policy for s in walk(program) if isinstance(s, ReduceTile)] == [policy]


@pytest.mark.parametrize(
    ("fn", "kind", "words"),
    [
        (lambda t: tt.sum(t, axis=2), OperandError, ("2 axes", "no axis 2")),
        (lambda t: tt.sum(t, axis=(0, -2)), OperandError, ("twice",)),
        (lambda t: tt.sum(t, axis=0.5), OperandError, ("0.5",)),
        (lambda t: tt.sum(t, dtype="float16"), OperandError, ("narrow", "float16")),
        (lambda t: tt.sum(t, where=t[0, :2] > 0), OperandError, ("(3, 4)",)),
        (lambda t: tt.sum(t, policy="tree"), CaptureError, ("'tree'", "unordered_tree")),
        (lambda t: tt.argmax(t, axis=(0, 1)), OperandError, ("(0, 1)",)),
        (lambda t: tt.sum(t.astype("float8_e5m2")), OperandError, ("float8_e5m2",)),
        (lambda t: tt.argmax(t, policy="tree"), CaptureError, ("'tree'",)),
    ],
)
def test_reductions_refuse(refused, fn, kind, words):
    refused(kind, lambda: computed(fn, random(3, 4)), *words)


def test_norm_of_a_row_in_one_kernel():
    @tt.kernel
    def rmsnorm(X, Y, *, eps=1e-6):
        for i in tt.parallel(X.shape[0]):
            x = X[i, :]
            scale = tt.rsqrt(tt.mean(x * x) + eps)
            Y[i, :] = x * scale

    x = random(5, 7)
    y = np.zeros_like(x)
    interpret(rmsnorm.trace(x, y), x, y)
    wide = x.astype("f8")
    np.testing.assert_allclose(y, wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6), rtol=1e-5)


@pytest.mark.parametrize("policy", [None, tt.MmaPolicy(), tt.MmaPolicy(ordered=True)])
def test_matmul_takes_the_policy_of_mma(policy):
    @tt.kernel
    def k(A, B):
        _product = tt.matmul(A[...], B[...], policy=policy)

    program = k.trace(np.zeros((2, 3, 4), "f4"), np.zeros((4, 5), "f4"))
    (product,) = [op for op in walk(program) if isinstance(op, Mma)]
    assert product.ordered == bool(policy and policy.ordered)


def test_matmul_takes_no_other_policy(refused):
    @tt.kernel
    def k(A):
        tt.matmul(A[...], A[...], policy="ordered")

    refused(CaptureError, lambda: k.trace(np.zeros((3, 3), "f4")), "policy='ordered'", "MmaPolicy")
