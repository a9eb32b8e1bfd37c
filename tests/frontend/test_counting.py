"""Sums of truth values in a dtype that the caller chooses."""

import numpy as np
import pytest

import tvm_tile as tt


@tt.kernel
def counts(X, Y, Z, *, dtype):
    for _ in tt.parallel(1):
        Y[:] = tt.sum(X[:, :] > 0, axis=1, dtype=dtype)
        Z[:, :] = tt.cumsum(X[:, :] > 0, axis=1, dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64", "float32", "float16"])
def test_truth_values_count_in_any_dtype(dtype):
    x = np.random.default_rng(0).integers(-2, 3, (3, 7)).astype("f4")
    y, z = np.zeros(3, dtype), np.zeros((3, 7), dtype)
    program = counts.trace(x, y, z, dtype=dtype)
    for run in (lambda *a: tt.interpret(program, *a), tt.build(program, "llvm")):
        run(x, y, z)
        np.testing.assert_array_equal(y, (x > 0).sum(1).astype(dtype))
        np.testing.assert_array_equal(z, (x > 0).cumsum(1).astype(dtype))


def test_numbers_do_not_count_in_a_narrower_dtype():
    @tt.kernel
    def narrowed(X, Y):
        for _ in tt.parallel(1):
            Y[()] = tt.sum(X[:], dtype="int32")

    with pytest.raises(tt.TileError, match="narrow"):
        narrowed.trace(np.zeros(4, "i8"), np.zeros((), "i4"))
