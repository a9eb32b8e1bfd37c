"""Explicit memory, atomics and opaque calls in the interpreter, and what a debug run says of them."""

import ctypes
import subprocess

import numpy as np
import pytest

import tvm_tile as tt


@tt.kernel
def through_memory(X, Y, *, layout, stored):
    for i in tt.parallel(X.shape[0]):
        m = tt.alloc((7,), X.dtype, layout=layout)
        m[tt.ds(0, stored)] = X[i, tt.ds(0, stored)]
        Y[i, :] = m[:] * 2


@pytest.mark.parametrize("layout", [None, (3,), lambda i: (6 - i) * 2, lambda i: i % 2 * 8 + i // 2])
def test_a_layout_is_placement_only(layout):
    x = np.arange(14, dtype="i4").reshape(2, 7)
    y = np.zeros_like(x)
    tt.interpret(through_memory.trace(x, y, layout=layout, stored=7), x, y, debug=True)
    np.testing.assert_array_equal(y, x * 2)


def test_a_read_of_what_was_never_written_is_named():
    x = np.zeros((2, 7), "i4")
    program = through_memory.trace(x, x, layout=None, stored=5)
    tt.interpret(program, x, np.zeros_like(x))
    with pytest.raises(tt.IllegalError, match=r"m\[5\] is read before anything is written to it") as caught:
        tt.interpret(program, x, np.zeros_like(x), debug=True)
    assert caught.value.obligation == "initialization"


@tt.kernel
def shared_memory(X, Y, *, private):
    m = tt.alloc((1,), "int32")
    for i in tt.parallel(3):
        k = tt.alloc((1,), "int32")
        if private:
            k[0] = X[i]
            Y[i] = k[0]
        else:
            m[0] = X[i]
            Y[i] = m[0]


def test_memory_of_an_instance_is_its_own_and_outer_memory_is_not():
    x, y = np.arange(3, dtype="i4"), np.zeros(3, "i4")
    tt.interpret(shared_memory.trace(x, y, private=True), x, y, debug=True)
    assert y.tolist() == [0, 1, 2]
    with pytest.raises(tt.IllegalError, match="one element of m"):
        tt.interpret(shared_memory.trace(x, y, private=False), x, y, debug=True)


@tt.kernel
def counting(X, Y, Old, *, plain):
    for i in tt.parallel(X.shape[0]):
        Old[i] = tt.atomic_add(Y.at[0], X[i])
        if plain:
            Y[0] = X[i]


@pytest.mark.parametrize("order", ["source", "reverse", 5])
def test_atomics_of_instances_do_not_conflict_with_each_other(order):
    x, y, old = np.array([3, 5, 7], "i4"), np.array([1], "i4"), np.zeros(3, "i4")
    tt.interpret(counting.trace(x, y, old, plain=False), x, y, old, order=order, debug=True)
    assert y[0] == 16
    assert len(set(old.tolist())) == 3
    assert 1 in old


def test_an_atomic_conflicts_with_a_plain_access_of_another_instance():
    x, y, old = np.array([3, 5, 7], "i4"), np.array([1], "i4"), np.zeros(3, "i4")
    with pytest.raises(tt.IllegalError, match=r"one element of Y") as caught:
        tt.interpret(counting.trace(x, y, old, plain=True), x, y, old, debug=True)
    assert "updates Y[0]" in str(caught.value.counterexample)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_atomic_extrema_propagate_nan(dtype):
    @tt.kernel
    def extrema(X, Y):
        for i in tt.parallel(X.shape[0]):
            tt.atomic_max(Y.at[0], X[i])
            tt.atomic_min(Y.at[1], X[i])

    x, y = np.array([1, np.nan, 2], dtype), np.zeros(2, dtype)
    tt.interpret(extrema.trace(x, y), x, y)
    assert np.isnan(y).all()


SOURCE = """
void tile_test_axpy(const float *x, float *y, long long n, float a) {
    for (long long i = 0; i < n; ++i) y[i] += a * x[i];
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extern")
    (folder / "axpy.c").write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "axpy.so", folder / "axpy.c"], check=True)
    return ctypes.CDLL(str(folder / "axpy.so"), ctypes.RTLD_GLOBAL)


@tt.kernel
def calling(X, Y, *, start, symbol):
    for i in tt.parallel(X.shape[0]):
        tt.extern(
            symbol,
            X.at[i, start],
            Y.at[i, start],
            X.shape[1] - 2,
            tt.full((), 2.0, "float32"),
            reads=[X, Y],
            writes=[Y],
        )


@pytest.mark.usefixtures("library")
def test_an_opaque_function_gets_addresses_and_scalars():
    x, y = np.arange(10, dtype="f4").reshape(2, 5), np.ones((2, 5), "f4")
    report = tt.interpret(calling.trace(x, y, start=1, symbol="tile_test_axpy"), x, y, debug=True)
    expected = np.ones((2, 5), "f4")
    expected[:, 1:4] += 2 * x[:, 1:4]
    np.testing.assert_array_equal(y, expected)
    assert "2 calls of opaque functions" in str(report)


@pytest.mark.usefixtures("library")
def test_an_address_out_of_bounds_is_refused():
    x = np.zeros((2, 5), "f4")
    with pytest.raises(tt.IllegalError, match="outside of its"):
        tt.interpret(calling.trace(x, x, start=5, symbol="tile_test_axpy"), x, x)


def test_a_symbol_that_no_library_has_is_named():
    x = np.zeros((2, 5), "f4")
    with pytest.raises(tt.UnsupportedError, match="'no_such_function_here'") as caught:
        tt.interpret(calling.trace(x, x.copy(), start=0, symbol="no_such_function_here"), x, x.copy())
    assert "RTLD_GLOBAL" in caught.value.suggestion
