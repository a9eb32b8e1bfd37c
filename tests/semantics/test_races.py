"""Races that are certain are refused before anything is built; others are left to a debug run."""

import numpy as np
import pytest

import tvm_tile as tt


@tt.kernel
def one_cell(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[0] = Y[0] + X[i]


@tt.kernel
def neighbour(X, Y):
    for i in tt.parallel(X.shape[0] - 1):
        Y[i + 1] = Y[i]


@tt.kernel
def overlapping_tiles(X, Y):
    for i in tt.parallel(3):
        Y[tt.ds(3 * i, 4)] = X[tt.ds(3 * i, 4)]


@tt.kernel
def lost_axis(X, Y):
    for i, j in tt.parallel(3, 2):
        Y[i] = X[i] * (j + 1)


@tt.kernel
def outer_memory(X, Y):
    m = tt.alloc((1,), "int32")
    for i in tt.parallel(X.shape[0]):
        m[0] = X[i]
        Y[i] = m[0]


RACES = (one_cell, neighbour, overlapping_tiles, lost_axis, outer_memory)


@pytest.mark.parametrize("kernel", RACES, ids=lambda k: k.__name__)
def test_a_certain_race_is_refused_with_both_instances(kernel):
    x, y = np.arange(12, dtype="i4"), np.zeros(12, "i4")
    program = kernel.trace(x, y)
    refusals = (
        tt.verify,
        lambda p: tt.lower(p, "llvm"),
        lambda p: tt.build(p, "opencl"),
        lambda p: kernel(x, y),
    )
    for refuse in refusals:
        with pytest.raises(tt.IllegalError, match="touch one element of") as caught:
            refuse(program)
        assert caught.value.obligation == "noninterference"
        assert str(caught.value.counterexample).count("instance (i=") == 2
        assert "tt.atomic_add" in caught.value.suggestion
    # Its meaning in one order can still be looked at, and a debug run names the race too.
    tt.interpret(program, x, y)
    with pytest.raises(tt.IllegalError, match="touch one element of"):
        tt.interpret(program, x, y, debug=True)


@tt.kernel
def own_tiles(X, Y):
    for i in tt.parallel(tt.cdiv(X.shape[0], 5)):
        Y[tt.ds(5 * i, 5)] = Y[tt.ds(5 * i, 5)] + X[tt.ds(5 * i, 5)]


@tt.kernel
def reversed_parts(X, Y):
    for i in tt.parallel(6):
        Y[11 - 2 * i] = X[i]
        Y[10 - 2 * i] = X[i]


@tt.kernel
def private_memory(X, Y):
    for i in tt.parallel(X.shape[0]):
        m = tt.alloc((1,), "int32")
        m[0] = X[i]
        Y[i] = m[0]


@tt.kernel
def atomics(X, Y):
    for i in tt.parallel(X.shape[0]):
        tt.atomic_add(Y.at[0], X[i])


@tt.kernel
def one_instance_of_many(X, Y):
    for i in tt.parallel(X.shape[0]):
        if i == 3:
            Y[0] = X[i]


@tt.kernel
def beyond_the_end(X, Y):
    for i in tt.parallel(4):
        Y[12 + i // 2] = X[i]


@tt.kernel
def by_data(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[X[i]] = i


FREE = (own_tiles, reversed_parts, private_memory, atomics, one_instance_of_many, beyond_the_end, by_data)


@pytest.mark.parametrize("kernel", FREE, ids=lambda k: k.__name__)
def test_what_does_not_certainly_race_is_built(kernel):
    x, y, z = np.arange(12, dtype="i4"), np.zeros(12, "i4"), np.zeros(12, "i4")
    program = kernel.trace(x, y)
    tt.verify(program)
    tt.interpret(program, x, y, debug=True)
    tt.build(program, "llvm")(x, z)
    np.testing.assert_array_equal(y, z)


def test_a_race_for_some_run_time_scalars_only_is_left_to_the_caller():
    @tt.kernel
    def cyclic(X, Y, n: tt.Scalar["int32"]):  # noqa: F821
        for i in tt.parallel(n):
            Y[i % 4] = X[i]

    x, y = np.arange(8, dtype="i4"), np.zeros(4, "i4")
    program = cyclic.trace(x, y, 4)
    tt.build(program, "llvm")(x, y, 4)
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(tt.IllegalError, match="touch one element of Y"):
        tt.interpret(program, x, y, 5, debug=True)


def test_patches_that_meet_for_some_run_time_scalars_only_are_left_to_the_interpreter():
    @tt.kernel
    def cyclic(X, Y, n: tt.Scalar["int32"]):  # noqa: F821
        T = Y[:]
        for i in tt.parallel(n):
            T = tt.update(T, (i % 4,), X[i])
        Y[:] = T

    x, y = np.arange(8, dtype="i4"), np.zeros(4, "i4")
    program = cyclic.trace(x, y, 4)
    tt.build(program, "llvm")(x, y, 4)
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(tt.IllegalError, match="update one element of T"):
        tt.interpret(program, x, y, 5)
