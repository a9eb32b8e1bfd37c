"""Partial updates of an outer tile by the instances of a parallel region."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm_tile as tt

part = st.tuples(st.integers(-2, 7), st.integers(0, 4))


@tt.kernel
def scattered(X, Y, *, parts, combine):
    T = Y[:]
    for i in tt.parallel(len(parts)):
        for k, (start, size) in enumerate(parts):
            if i == k:
                T = tt.update(T, (tt.ds(start, size),), X[tt.ds(4 * k, size)], combine=combine)
    Y[:] = T


def model(x, y, parts):
    """What each element gets: a list of the instances' values."""
    found = [[] for _ in y]
    for k, (start, size) in enumerate(parts):
        for lane in range(size):
            if 0 <= start + lane < len(y):
                found[start + lane].append(x[4 * k + lane])
    return found


@given(st.lists(part, max_size=4), st.integers(0, 9))
def test_patches_join_or_their_overlap_is_named(parts, order):
    x, y = np.arange(100, 116, dtype="i4"), np.arange(7, dtype="i4")
    wanted = model(x, y, parts)
    program = scattered.trace(x, y, parts=tuple(parts), combine=None)
    if max(map(len, wanted)) > 1:
        with pytest.raises(tt.IllegalError, match="update one element of T") as caught:
            tt.interpret(program, x, y, order=order)
        assert caught.value.obligation == "noninterference"
        assert "T[" in str(caught.value.counterexample)
        return
    expected = [v[0] if v else k for k, v in enumerate(wanted)]
    tt.interpret(program, x, y, order=order)
    assert y.tolist() == expected


@given(st.lists(part, max_size=4), st.integers(0, 9))
def test_a_combine_joins_the_values_of_the_instances_alone(parts, order):
    x, y = np.arange(100, 116, dtype="i4"), np.arange(7, dtype="i4")
    expected = [sum(map(int, v)) if v else k for k, v in enumerate(model(x, y, parts))]
    tt.interpret(scattered.trace(x, y, parts=tuple(parts), combine=tt.add), x, y, order=order)
    assert y.tolist() == expected


@tt.kernel
def shifted(X, Y, *, width):
    T = X[:]
    for i in tt.parallel(tt.cdiv(X.shape[0], width)):
        part = T[tt.ds(i * width + 1, width)]
        T = tt.update(T, (tt.ds(i * width, width),), part)
    Y[:] = T


@pytest.mark.parametrize("order", ["source", "reverse", 3])
@pytest.mark.parametrize("n", [1, 5, 8, 13])
def test_instances_read_the_value_from_before_the_region(n, order):
    x, y = np.arange(1, n + 1, dtype="i4"), np.zeros(n, "i4")
    tt.interpret(shifted.trace(x, y, width=3), x, y, order=order)
    assert y.tolist() == [*range(2, n + 1), 0]


@tt.kernel
def nested(X, Y, *, rows):
    T = X[:, :]
    for i in tt.parallel(rows):
        for j in tt.parallel(X.shape[1]):
            T = tt.update(T, (i, j), T[i, j] * 2)
        for k in tt.serial(2):
            T = tt.update(T, (i, 0), T[i, 0] + k + 1)
    Y[:, :] = T


def test_patches_go_through_nested_regions():
    x = np.arange(12, dtype="i4").reshape(4, 3)
    y = np.zeros_like(x)
    tt.interpret(nested.trace(x, y, rows=3), x, y)
    expected = x.copy()
    expected[:3] *= 2
    expected[:3, 0] += 3
    np.testing.assert_array_equal(y, expected)


def test_an_overlap_that_is_certain_is_refused_before_anything_runs():
    @tt.kernel
    def overlapping(Y, *, step):
        T = Y[:]
        for i in tt.parallel(3):
            T = tt.update(T, (tt.ds(step * i, 4),), tt.full((4,), 1, "int32"))
        Y[:] = T

    y = np.zeros(12, "i4")
    tt.build(overlapping.trace(y, step=4), "llvm")(y)
    assert y.tolist() == [1] * 12
    program = overlapping.trace(y, step=3)
    for refuse in (tt.verify, lambda p: tt.build(p, "llvm")):
        with pytest.raises(tt.IllegalError, match="update one element of T") as caught:
            refuse(program)
        assert "instance (i=" in str(caught.value.counterexample)
        assert "combine=" in caught.value.suggestion


def test_an_overlap_that_depends_on_data_is_found_by_the_interpreter():
    @tt.kernel
    def by_data(At, Y):
        T = Y[:]
        for i in tt.parallel(2):
            T = tt.update(T, (At[i],), 1)
        Y[:] = T

    y = np.zeros(4, "i4")
    program = by_data.trace(np.zeros(2, "i4"), y)
    tt.verify(program)
    tt.interpret(program, np.array([1, 3], "i4"), y)
    assert y.tolist() == [0, 1, 0, 1]
    with pytest.raises(tt.IllegalError, match=r"T\[2\]"):
        tt.interpret(program, np.array([2, 2], "i4"), y)


def test_many_updates_are_checked_in_little_time():
    """Pairs of updates grow with their square; those past a limit are left to the interpreter."""

    @tt.kernel
    def kernel(X, Y, *, count, period):
        T = Y[:]
        for i in tt.parallel(2):
            for k in range(count):
                T = tt.update(T, (i * period + k,), X[k] + i)
        Y[:] = T

    x, y = np.arange(150.0), np.zeros(300)
    program = kernel.trace(x, y, count=150, period=150)
    tt.verify(program)
    tt.interpret(program, x, y)
    np.testing.assert_array_equal(y, [*x, *(x + 1)])
    # The last update of the one instance meets the last but one of the other, past the limit.
    late = kernel.trace(x, y, count=150, period=149)
    with pytest.raises(tt.IllegalError, match="update one element"):
        tt.interpret(late, x, y)
