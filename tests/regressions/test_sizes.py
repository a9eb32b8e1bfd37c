"""Extents and strides near the limits of 32 and 64 bits."""

import numpy as np
import pytest

import tvm_tile as tt


@tt.kernel
def increment(X, Y, *, tile):
    for i in tt.parallel(tt.cdiv(X.shape[0], tile)):
        Y[tt.ds(i * tile, tile)] = X[tt.ds(i * tile, tile)] + 1


@pytest.mark.parametrize("extent", [2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**40])
@pytest.mark.parametrize("tile", [1, 16])
def test_a_loop_of_any_extent_builds(extent, tile):
    """A loop of exactly 2**31 iterations failed inside TVM, which had narrowed its variable to 32 bits."""
    big = tt.spec((extent,), "int8")
    assert tt.build(increment.trace(big, big, tile=tile), "llvm").program.tensors[0].shape == (extent,)


@tt.kernel
def last_index(Y, *, n):
    for _ in tt.parallel(1):
        s = tt.zeros((), "int64")
        for i in tt.serial(n, where=lambda i: i >= n - 3):
            s = s * 2 + (i - (n - 3)) + 1
        Y[0] = s


def test_a_loop_of_two_to_the_31_iterations_ends_at_the_right_one():
    y = np.zeros(1, "i8")
    tt.build(last_index.trace(y, n=2**31), "llvm")(y)
    assert y[0] == (1 * 2 + 2) * 2 + 3


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2**62,), None), ((4,), (2**62,)), ((4,), (-(2**63),)), ((2**70,), None)],
)
def test_an_array_beyond_the_address_space_is_refused_by_name(shape, strides):
    with pytest.raises(tt.TileError, match=r"X.*bytes"):
        increment.trace(tt.spec(shape, "float32", strides), tt.spec((4,), "float32"), tile=4)


@tt.kernel
def enormous_tile(Y, *, n):
    for _ in tt.parallel(1):
        Y[0] = tt.sum(tt.zeros((n,), "float32"))


def test_a_tile_beyond_the_address_space_is_refused():
    with pytest.raises(tt.TileError, match="64 bits"):
        enormous_tile.trace(np.zeros(1, "f4"), n=2**70)
    with pytest.raises(tt.TileError, match="bytes"):
        enormous_tile.trace(np.zeros(1, "f4"), n=2**61)
