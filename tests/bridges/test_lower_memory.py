"""Loads and stores: bounds on all sides, masks, steps, strides, snapshots and aliasing."""

import numpy as np
import pytest

import tvm_tile.frontend as tt

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@tt.kernel
def shifted_windows(A, C, *, size, row, column, at):
    for i in tt.parallel(3):
        x = A.at[tt.ds(i * 5 + row, 6), tt.ds(i * 4 + column, size)].load(fill=7)
        C[tt.ds(i * 6 - 1, 6), tt.ds(at, size)] = x + 1


@pytest.mark.parametrize(
    ("size", "row", "column", "at"),
    [
        (20, -3, -9, -4),
        (20, 0, 0, 0),
        (33, 2, -40, 3),
        (16, -2, 25, 10),
        (1, 0, 0, 0),
        (0, 0, 0, 0),
        (70, -1, -20, -25),
    ],
)
def test_windows_over_every_edge(agrees, size, row, column, at):
    agrees(shifted_windows.trace(floats(13, 30), floats(16, 37), size=size, row=row, column=column, at=at),
           floats(13, 30), floats(16, 37))  # fmt: skip


@tt.kernel
def steps(A, C):
    C[0:10, 0:14] = A[1:21:2, 0:42:3]
    C.at[tt.ds(10, 4), tt.ds(-5, 24)].store(A.at[tt.ds(-2, 4), tt.ds(-7, 24)].load(fill=-1))


def test_steps_and_fills(agrees):
    A, C = floats(25, 43), floats(13, 20)
    agrees(steps.trace(A, C), A, C)


@tt.kernel
def masked(A, M, C):
    m = M[:, :]
    x = A.at[tt.ds(-1, 8), tt.ds(3, 40)].load(fill=-1, mask=m)
    C.at[tt.ds(1, 8), tt.ds(-2, 40)].store(x * 2, mask=m)


def test_masks_hold_by_element(agrees):
    A, C, M = floats(6, 40), floats(8, 37), RNG.random((8, 40)) > 0.5
    agrees(masked.trace(A, M, C), A, M, C)


@tt.kernel
def masked_promise(A, M, C):
    m = M[:]
    C.at[tt.ds(-5, 40)].store(
        A.at[tt.ds(-5, 40)].load(fill=3, mask=m, bounds="assume"), mask=m, bounds="assume"
    )


def test_a_masked_promise_touches_nothing_out_of_bounds(agrees):
    M = np.zeros(40, bool)
    M[5:15] = RNG.random(10) > 0.3
    A, C = floats(10), floats(10)
    agrees(masked_promise.trace(A, M, C), A, M, C)


@tt.kernel
def rows_by_number(A, rows, C):
    for i in tt.parallel(rows.shape[0]):
        C[i, :] = A[rows[i], tt.ds(rows[i], 20)]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64", "int8"])
def test_row_numbers_from_memory_may_be_anything(agrees, dtype):
    info = np.iinfo(dtype)
    rows = np.array([0, 3, 9, 10, info.max, info.min, info.max - 1, min(2**40, info.max)], object).astype(
        dtype
    )
    A, C = floats(10, 25), floats(rows.size, 20)
    agrees(rows_by_number.trace(A, rows, C), A, rows, C)


@tt.kernel
def copy(A, C):
    C[...] = A[...]


VIEWS = {
    "dense": lambda x: x,
    "columns": lambda x: x[:, 3:17],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "steps": lambda x: x[1::2, ::3],
    "one row of many": lambda x: x[2:3, ::2],
    "empty": lambda x: x[:0, 2:],
    "empty rows": lambda x: x[1:, 5:5],
    "vector": lambda x: x[3],
    "scalar": lambda x: x[3, 4:5].reshape(()),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_strides_of_inputs_and_outputs(compiled, view, pipeline):
    source, target = floats(9, 35), np.zeros((9, 35), "float32")
    A, C = VIEWS[view](source), VIEWS[view](target)
    compiled(copy.trace(A, C), pipeline)(A, C)
    np.testing.assert_array_equal(C, A)
    assert np.count_nonzero(target) == A.size


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_stride_zero_reads_one_element(compiled, pipeline):
    C = np.zeros((4, 40), "float32")
    A = np.lib.stride_tricks.as_strided(floats(1), (4, 40), (0, 0))
    compiled(copy.trace(A, C), pipeline)(A, C)
    np.testing.assert_array_equal(C, A)


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_arrays_need_the_alignment_of_their_elements_only(compiled, pipeline, dtype):
    run = None
    for offset in range(5):
        A = np.zeros(200, dtype)[offset + 1 : offset + 101]
        C = np.zeros(200, dtype)[offset : offset + 100]
        A[...] = RNG.integers(0, 2, 100)
        run = run or compiled(copy.trace(A, C), pipeline)
        run(A, C)
        np.testing.assert_array_equal(C, A)


@tt.kernel
def move_right(A, C):
    x = A[0:40]
    A[1:41] = x + 1
    C[:] = x


@tt.kernel
def double(A, C):
    C[:, :] = A[:, :] * 2 + A[:, :]


def test_a_load_is_a_snapshot(agrees):
    A, C = floats(45), floats(40)
    agrees(move_right.trace(A, C), A, C)


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_identical_arguments_without_noalias(compiled, pipeline):
    @tt.kernel
    def chain(A, B, C):
        for i in tt.serial(3):
            B[i, :] = A[i, :] + 1
            C[i, :] = A[i, :] * 10

    x = floats(3, 50)
    want = (x + 1) * 10
    compiled(chain.trace(x, x.copy(), x.copy()), pipeline, noalias=False)(x, x, x)
    np.testing.assert_array_equal(x, want)

    y = floats(3, 50)
    want = y * 2 + y
    compiled(double.trace(y, y.copy()), pipeline, noalias=False)(y, y)
    np.testing.assert_array_equal(y, want)


def test_a_load_does_not_pass_a_store_that_may_alias(compiled):
    @tt.kernel
    def late(A, B, C):
        x = A[:]
        B[:] = x * 0 + 5
        C[:] = x

    x, c = floats(40), floats(40)
    want = x.copy()
    compiled(late.trace(x, x.copy(), c), noalias=False)(x, x, c)
    np.testing.assert_array_equal(c, want)
    np.testing.assert_array_equal(x, np.full(40, 5.0))


@tt.kernel
def last_elements(A, C):
    n = A.shape[0]
    C[:] = A[tt.ds(n - 40, 40)]
    A[tt.ds(n - 3, 7)] = C[tt.ds(0, 7)] + 1


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_arrays_of_more_than_two_to_the_31_elements(compiled, pipeline):
    A, C = np.zeros(2**31 + 100, "int8"), np.zeros(40, "int8")  # the zeros are mapped, not touched
    A[-40:] = np.arange(40)
    compiled(last_elements.trace(A, C), pipeline)(A, C)
    np.testing.assert_array_equal(C, np.arange(40))
    np.testing.assert_array_equal(A[-40:], [*range(37), 1, 2, 3])


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_rows_past_two_to_the_31_elements(compiled, pipeline):
    A, C = np.zeros((2**16, 2**16 + 3), "int8"), np.zeros((2, 50), "int8")
    A[2**16 - 2 :, :50] = RNG.integers(0, 100, (2, 50))

    @tt.kernel
    def corner(A, C):
        for i in tt.parallel(A.shape[0] // 2, where=lambda i: i >= A.shape[0] // 2 - 1):
            C[:, :] = A[tt.ds(2 * i, 2), 0:50]

    compiled(corner.trace(A, C), pipeline)(A, C)
    np.testing.assert_array_equal(C, A[2**16 - 2 :, :50])
