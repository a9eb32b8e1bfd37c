"""Scalar functions over elements against NumPy."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError, OperandError

X = np.arange(-6, 6, dtype="f4").reshape(3, 4)
Z = np.full((4,), 2, "f4")


def applied(function, *outputs):
    """What ``function(x, z, i)`` gives in a region over ``i``; outputs tell shapes and dtypes."""

    @tt.kernel
    def one(A, B, Y):
        for i in tt.parallel(1):
            Y[...] = function(A[...], B[...], i)

    @tt.kernel
    def two(A, B, Y, W):
        for i in tt.parallel(1):
            y, w = function(A[...], B[...], i)
            Y[...] = y
            W[...] = w

    program = (one, two)[len(outputs) - 1].trace(X, Z, *outputs)
    assert tt.parse(str(program)) == program
    results = [np.zeros_like(out) for out in outputs]
    tt.interpret(program, X, Z, *results)
    return results


def branches(a, b):
    result = a
    if a < b:
        result = a + 1.0
        if a < 0:
            result = result * 3.0
    else:
        result = b
    return result


def polynomial(a):
    s = tt.zeros((), "float32")
    for j in tt.serial(3):
        s = s * a + tt.cast(j, "float32")
        if s > 10.0:
            s = s - 1.0
    return s


def polynomial_of(x):
    s = np.zeros_like(x)
    for j in range(3):
        s = s * x + j
        s = np.where(s > 10, s - 1, s)
    return s


def with_tiles(a):
    t = tt.iota(5, "float32") * a
    t = tt.update(t, 0, a)
    return tt.sum(t) + tt.max(t[1:3]) + tt.sum(tt.concat((t[:, None], t[:, None]), axis=1).T[0])


def reduced(a):
    s = tt.zeros((), "float32")
    for j in tt.reduce(4):
        s = s + a * j
    return s


def with_uniform_branch(a):
    s = a
    for j in tt.serial(4):
        if j > 2:
            s = s + 1.0
    return s


def with_products(a):
    ones = tt.ones((2, 3), "float32")
    return tt.sum(tt.matmul(ones * a, ones.T)) + tt.einsum("ij,ij->", ones, ones * a)


def with_positions(a):
    t = tt.full((3,), a, "float32") * tt.iota(3, "float32")
    return tt.argmax(t).astype("float32") + tt.gather(t, tt.full((1,), tt.cast(a, "int32"), "int32"))[0]


MAPPED = [
    (lambda x, z, i: tt.map(lambda a, b: a - b if a < b else a * 2, x, z), np.where(X < Z, X - Z, X * 2)),
    (lambda x, z, i: tt.map(branches, x, z), np.where(X < Z, np.where(X < 0, (X + 1) * 3, X + 1), Z)),
    (lambda x, z, i: tt.map(polynomial, x), polynomial_of(X)),
    (lambda x, z, i: tt.map(with_tiles, x), 11 * X + np.maximum(X, 2 * X) + 11 * X),
    (lambda x, z, i: tt.map(reduced, x), X * 6),
    (lambda x, z, i: tt.map(with_uniform_branch, x), X + 1),
    (lambda x, z, i: tt.map(with_products, x), 18 * X),
    (
        lambda x, z, i: tt.map(with_positions, x),
        np.where(X > 0, 2, 0) + np.where((X >= 0) & (X < 3), X * X, 0),
    ),
    (lambda x, z, i: tt.map(lambda a: 1 if a < 0 else 2, x).astype("float32"), np.where(X < 0, 1, 2)),
    (lambda x, z, i: tt.map(lambda a: 5.0, x).astype("float32"), np.full_like(X, 5)),
    (lambda x, z, i: tt.map(lambda a: a + i + z[0], x), X + 2),
    (lambda x, z, i: tt.map(lambda a: tt.where(i < tt.cast(a, "int32"), a, 0.0), x), np.where(X > 0, X, 0)),
    (lambda x, z, i: tt.map(lambda a, b: a + b, x, 1.0), X + 1),
    (
        lambda x, z, i: tt.map(lambda a: (0.0 if a > 3 else a) if a > 0 else -a, x),
        np.where(X > 3, 0, np.abs(X)),
    ),
    (lambda x, z, i: tt.map(tt.exp, x * 0.0), np.ones_like(X)),
    (lambda x, z, i: tt.map(lambda a: tt.cumsum(z * a)[2], x), X * 6),
    (lambda x, z, i: tt.map(lambda a: tt.reduce_tile(z * a, 0, tt.max, seed=a, where=z > 3), x), X),
    (lambda x, z, i: tt.map(lambda a: a + tt.cumsum(z)[1], x), X + 4),
    (lambda x, z, i: tt.map(lambda a: tt.map(lambda b: b * a, a), x), X * X),
]


@pytest.mark.parametrize(("function", "expected"), MAPPED)
def test_map_applies_a_scalar_function_to_each_element(function, expected):
    (result,) = applied(function, np.zeros((3, 4), "f4"))
    np.testing.assert_allclose(result, np.broadcast_to(expected, X.shape))


def test_map_may_give_several_values():
    first, second = applied(
        lambda x, z, i: tt.map(lambda a: (a, a * 2) if a < 0 else (a + 1, a), x),
        *[np.zeros((3, 4), "f4")] * 2,
    )
    np.testing.assert_array_equal(first, np.where(X < 0, X, X + 1))
    np.testing.assert_array_equal(second, np.where(X < 0, X * 2, X))


def test_map_of_empty_and_scalar_tiles():
    (empty,) = applied(lambda x, z, i: tt.map(branches, x[:, 0:0], 1.0), np.zeros((3, 0), "f4"))
    assert empty.shape == (3, 0)
    (scalar,) = applied(lambda x, z, i: tt.map(polynomial, x[0, 1]), np.zeros((), "f4"))
    assert scalar == polynomial_of(X)[0, 1]


def test_both_arms_are_evaluated_and_python_conditions_are_not():
    seen = []

    def function(a):
        seen.append("here") if a is not None else seen.append("there")
        if a < 0:
            seen.append("then")
        else:
            seen.append("else")
        return a

    applied(lambda x, z, i: tt.map(function, x), np.zeros((3, 4), "f4"))
    assert seen == ["here", "then", "else"]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda x, z: tt.map(3, x), CaptureError, ("a function", "3")),
        (lambda x, z: tt.map(x, z), CaptureError, ("a function",)),
        (lambda x, z: tt.map(lambda a: a), CaptureError, ("no operands",)),
        (lambda x, z: tt.map(lambda a: None, x), CaptureError, ("None", "scalar")),
        (lambda x, z: tt.map(lambda a: tt.iota(3, "int32"), x), CaptureError, ("int32[3]",)),
        (lambda x, z: tt.map(lambda a, b: a, x), CaptureError, ("'b'",)),
        (lambda x, z: tt.map(lambda a, b: a, x[:, :3], z), OperandError, ("(3, 3)", "(4,)")),
        (
            lambda x, z: tt.map(lambda a: a if (a > 0 and a < 2) else 0, x),
            CaptureError,
            ("(a > 0) & (a < 2)",),
        ),
        (lambda x, z: x if x[0, 0] > 0 else z, CaptureError, ("tt.where",)),
        (lambda x, z: tt.map(lambda a: x[tt.cast(a, "int32"), 0], x), CaptureError, ("tt.gather",)),
        (
            lambda x, z: tt.map(lambda a: tt.reduce_tile(z * a, 0, tt.welford)[1], x),
            CaptureError,
            ("whole tile",),
        ),
    ],
)
def test_functions_that_map_cannot_take_are_refused(refused, make, kind, words):
    @tt.kernel
    def k(A, B):
        make(A[...], B[...])

    refused(kind, lambda: k.trace(X, Z), *words)


def test_map_has_no_loads_stores_or_data_dependent_loops(refused):
    @tt.kernel
    def loads(A, Y):
        Y[...] = tt.map(lambda a: a + A[0, 0], A[...])

    refused(CaptureError, lambda: loads.trace(X, X), "no loads", "operands", at="A[0, 0]")

    @tt.kernel
    def stores(A, Y):
        def function(a):
            Y[0, 0] = a
            return a

        tt.map(function, A[...])

    refused(CaptureError, lambda: stores.trace(X, X), "no stores", at="Y[0, 0]")

    @tt.kernel
    def loops(A, Y):
        def function(a):
            s = a
            for _ in tt.serial(tt.cast(a, "int32")):
                s = s + 1.0
            return s

        Y[...] = tt.map(function, A[...])

    refused(CaptureError, lambda: loops.trace(X, X), "as often as an element says", "static extent")
