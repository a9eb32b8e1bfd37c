"""Index arithmetic in generated code: every operator, sign and zero, against the interpreter."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile as tt
from tvm_tile.ir.index import apply_integer

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": tt.minimum,
    "max": tt.maximum,
}

leaves = st.sampled_from(["i", "j"]) | st.integers(-8, 8)
trees = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(sorted(BINARY)), inner, inner), max_leaves=8
)


def evaluate(tree, i, j):
    """The index expression of a tree; Python's own division of constants by zero takes our meaning."""
    if not isinstance(tree, tuple):
        return {"i": i, "j": j}.get(tree, tree)
    op, a, b = tree[0], evaluate(tree[1], i, j), evaluate(tree[2], i, j)
    if isinstance(a, int) and isinstance(b, int):
        return apply_integer(op, a, b)
    return BINARY[op](a, b)


@tt.kernel
def indices(Y, Z, *, value, position):
    for i, j in tt.parallel(5, 7, where=lambda i, j: (i + j) // -2 > -5):
        Y[i, j] = tt.full((), 0, "int64") + evaluate(value, i - 2, j - 3)
        Z[i, tt.ds(j, 1), tt.ds(evaluate(position, i - 2, j - 3), 2)] = tt.full((1, 2), 5, "int64")


@given(trees, trees)
@settings(max_examples=40)
def test_random_index_expressions_agree_with_the_interpreter(value, position):
    y, z = np.zeros((5, 7), "i8"), np.zeros((5, 7, 9), "i8")
    program = indices.trace(y, z, value=value, position=position)
    expected = y.copy(), z.copy()
    tt.interpret(program, *expected)
    tt.build(program, "llvm")(y, z)
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(z, expected[1])


@tt.kernel
def loaded(N, Y):
    for i in tt.parallel(N.shape[0]):
        n = N[i]
        Y[tt.ds((n // -1) % 5, 1), i] = tt.full((1,), 3, "int64")
        Y[tt.ds(n // n, 1), i] = tt.full((1,), 4, "int64")
        Y[tt.ds((n % n) + 2, 1), i] = tt.full((1,), 5, "int64")


def test_no_divisor_traps_the_processor():
    """TVM took a guard off a divisor where the condition of a Select implied it, and divided anyway."""
    n = np.array([np.iinfo("i8").min, -1, 0, 1, 5, np.iinfo("i8").max])
    y, expected = np.zeros((5, 6), "i8"), np.zeros((5, 6), "i8")
    program = loaded.trace(n, y)
    tt.interpret(program, n, expected)
    tt.build(program, "llvm")(n, y)
    np.testing.assert_array_equal(y, expected)
    assert (y[2] == 5).all()


@tt.kernel
def nested_predicate(Y):
    for i, j in tt.parallel(5, 5, where=lambda i, j: ((i // j) // (j - i)) % (i - 2) == 0):
        Y[i, j] = 1.0


def test_a_predicate_with_too_many_divisions_is_refused():
    with pytest.raises(tt.UnsupportedError, match="nests more than 2 divisions") as caught:
        tt.build(nested_predicate.trace(np.zeros((5, 5), "f4")), "llvm")
    assert "tile scalar" in caught.value.suggestion


@tt.kernel
def gather(X, Y, *, at):
    for i in tt.parallel(8):
        Y[i] = X[at(i)]


@pytest.mark.parametrize("shift", [1, 3, 7, 8])
@pytest.mark.parametrize("divisor", [2, 3, 4, 8])
def test_a_division_of_a_negated_index_addresses_the_right_element(shift, divisor):
    """In a buffer offset TVM loses the constant of ``(1 - i) % 2``, and read and wrote out of bounds."""
    x = np.arange(10, 26)
    for at in (
        lambda i: (shift - i) // divisor + 8,
        lambda i: (shift - i) % divisor,
        lambda i: (shift - i) // divisor * divisor + (shift - i) % divisor,
        lambda i: tt.cdiv(shift + 1 - i, divisor),
    ):
        y, expected = np.zeros(8, "i8"), np.zeros(8, "i8")
        program = gather.trace(x, y, at=at)
        tt.interpret(program, x, expected)
        tt.build(program, "llvm")(x, y)
        np.testing.assert_array_equal(y, expected)
