"""Tiles of Python numbers alone take the dtype of what they meet, as the numbers themselves do."""

import types

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import OperandError
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.interpreter import interpret

FUNCTIONS = {
    "stored": lambda x, i: tt.where(x > 0, 1.0, -0.5),
    "mixed": lambda x, i: x * tt.where(x > 0, 1.5, 0.5),
    "integers": lambda x, i: x * tt.where(x > 0, 3, 2),
    "an_index": lambda x, i: x + tt.where(x > 0, i, 7),
    "nested": lambda x, i: x + tt.where(x > 0, tt.where(x > 1, 1.0, 2), 0.25),
    "computed": lambda x, i: x + (tt.where(x > 0, 1.0, 0.5) * 2.0 + 1),
    "function": lambda x, i: x * tt.exp(1.0) + tt.sqrt(2),
    "index_times_number": lambda x, i: x * (i * 0.5),
    "reshaped": lambda x, i: tt.sum(x[:, None] * tt.where(x > 0, 1.5, 0.5)[:, None], axis=1),
    "transposed": lambda x, i: x * tt.transpose(tt.where(x > 0, 1.5, 0.5)),
    "part": lambda x, i: x * tt.where(x > 0, 1.5, 0.5)[tt.ds(0, 5)],
    "broadcast": lambda x, i: x * tt.broadcast_to(tt.where(i > 0, 1.5, 0.5), (5,)),
    "count": lambda x, i: x * tt.sum(tt.where(x > 0, 1.0, 0.0)),
    "matmul": lambda x, i: x * tt.matmul(x, tt.where(x > 0, 1.0, 0.0)),
}


class Oracle:
    """The same names in NumPy, in float64."""

    where = staticmethod(lambda c, a, b: np.where(c, np.float64(a), np.float64(b)))
    exp, sqrt, sum, transpose = np.exp, np.sqrt, np.sum, np.transpose
    broadcast_to, matmul = np.broadcast_to, np.matmul
    ds = staticmethod(lambda start, size: slice(start, start + size))


def expected(function, x, i):

    inner = types.FunctionType(function.__code__, {"tt": Oracle})
    return np.broadcast_to(inner(x.astype("f8"), i), x.shape)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_weak_tiles_take_the_dtype_of_what_they_meet(name, dtype):
    function = FUNCTIONS[name]

    @tt.kernel
    def k(X, Y):
        for i in tt.serial(3):
            Y[i] = function(X[:], i)

    x = np.array([-2, -0.5, 0, 1, 3], dtype)
    y = np.zeros((3, 5), dtype)
    interpret(k.trace(x, y), x, y)
    tolerance = 1e-5 if dtype == "float32" else 5e-3
    for i in range(3):
        wanted = expected(function, x, i)
        np.testing.assert_allclose(y[i].astype("f8"), wanted, rtol=tolerance, atol=tolerance)


def test_a_selection_leaves_no_double_precision_behind():
    @tt.kernel
    def k(X, Y):
        Y[:] = X[:] * tt.where(X[:] > 0, 1.5, 0.5)[None][0]

    program = k.trace(tt.spec((5,), "float32"), tt.spec((5,), "float32"))
    assert not [s for s in walk(program) if any(v.dtype == "float64" for v in s.results)]


def test_what_the_user_made_in_double_precision_stays():
    @tt.kernel
    def k(X):
        _zeros = tt.zeros((5,), "float64")
        _chosen = tt.where(X[:] > 0, 1.5, 0.5)
        X[:] = X[:] * 2.0

    program = k.trace(tt.spec((5,), "float32"))
    doubles = [type(s).__name__ for s in walk(program) if any(v.dtype == "float64" for v in s.results)]
    assert doubles == ["Full"]


def test_alone_a_weak_tile_is_of_the_numbers_own_dtype():
    seen = []

    @tt.kernel
    def k(X):
        seen.append(tt.where(X[:] > 0, 1.0, 0))
        seen.append(tt.where(X[:] > 0, 1, 0))
        seen.append(tt.where(X[:] > 0, True, False))
        seen.append(tt.exp(1.0))

    k.trace(tt.spec((5,), "float32"))
    assert [tile.dtype for tile in seen] == ["float64", "int64", "bool", "float64"]


def test_carried_state_starts_from_the_concrete_dtype_and_then_keeps_it():
    @tt.kernel
    def k(X, Y, Z):
        first = tt.where(X[0] > 0, 1.0, 2.0)
        last = tt.zeros((), "float32")
        for i in tt.serial(5):
            first = first + X[i]
            last = tt.where(X[i] > 0, 1.0, 2.0)
            if X[i] > 2:
                last = tt.where(X[i] > 10, 8.0, 9.0)
        Y[...] = first
        Z[...] = last

    x = np.array([-2, -0.5, 0, 1, 3], "f4")
    y, z = np.zeros((), "f8"), np.zeros((), "f4")
    interpret(k.trace(x, y, z), x, y, z)
    assert (y, z) == (2.0 + x.sum(), 9.0)


def test_numbers_beyond_the_dtype_are_refused(refused):
    @tt.kernel
    def mixed(X):
        X[:] = X[:] + tt.where(X[:] > 0, 300, 0)

    @tt.kernel
    def stored(X):
        X[:] = tt.where(X[:] > 0, 300, 0)

    for kernel in (mixed, stored):
        refused(OperandError, lambda kernel=kernel: kernel.trace(np.zeros(3, "i1")), "300 does not fit int8")


def test_a_conversion_of_a_weak_tile_is_a_cast():
    @tt.kernel
    def k(X):
        X[:] = tt.where(X[:] > 0, 300, 0).astype("int8")

    x = np.array([1, 0, -1], "i1")
    interpret(k.trace(x), x)
    assert x.tolist() == [300 - 256, 0, 0]


def test_weak_floats_are_not_narrowed_to_integers(refused):
    @tt.kernel
    def k(X):
        X[:] = tt.where(X[:] > 0, 1.0, 0.0)

    refused(OperandError, lambda: k.trace(np.zeros(3, "i4")), "float64", "tensor 'X'", "int32")


def test_numpy_scalars_are_not_weak(refused):
    @tt.kernel
    def k(X):
        X[:] = tt.where(X[:] > 0, np.float64(1.0), 0.0)

    refused(OperandError, lambda: k.trace(np.zeros(3, "f4")), "float64", 'astype("float32")')
