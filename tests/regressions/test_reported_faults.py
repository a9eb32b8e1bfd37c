"""Faults reported for neighbouring systems, as small inputs with the value that is right here.

Each docstring names the report, the symptom seen there, and what keeps it out here. Every case runs in the
interpreter and in generated code, and each over its whole kind: other sizes, dtypes and tails.
"""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.contrib import kernels

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")


def interpreted(program, *arrays):
    tt.interpret(program, *arrays)


def built(program, *arrays):
    tt.build(program, "llvm")(*arrays)


def on_opencl(program, *arrays):
    tt.build(program, "opencl")(*arrays)


pytestmark = pytest.mark.parametrize(
    "run",
    [
        pytest.param(interpreted, id="interpreter"),
        pytest.param(built, id="llvm"),
        pytest.param(on_opencl, id="opencl"),
    ],
)


@tt.kernel
def reduce_all(X, Y, *, fn=tt.max):
    for _ in tt.parallel(1):
        if X.ndim:
            Y[()] = fn(X[...])
        else:
            Y[()] = fn(X[()])


@pytest.mark.parametrize("fn", [tt.max, tt.min, tt.sum, tt.prod])
def test_a_reduction_of_a_scalar_is_itself(run, fn):
    """tvm#19676: a 0-d maximum crashed. All axes of a 0-d value are no axes; the fibre is the value."""
    x, y = np.array(-3.5, "f4"), np.array(7, "f4")
    run(reduce_all.trace(x, y, fn=fn), x, y)
    assert y == -3.5


@pytest.mark.parametrize("offset", [80000.0, -80000.0, 8e6])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_layernorm_keeps_the_precision_of_rows_with_a_large_mean(run, offset, width):
    """tvm#19592: the one-pass variance gave NaN. The kernel centres first, in a second pass."""
    x = (offset + np.arange(4)).astype("f4").reshape(1, 4)
    ones, zeros, y = np.ones(4, "f4"), np.zeros(4, "f4"), np.full((1, 4), 7, "f4")
    run(kernels.layernorm.trace(x, ones, zeros, y, eps=1e-5, block=width), x, ones, zeros, y)
    centred = x.astype("f8") - x.astype("f8").mean()
    np.testing.assert_allclose(y, centred / np.sqrt((centred**2).mean() + 1e-5), rtol=1e-5)


@tt.kernel
def seeded_row_sums(X, Y, *, seed, policy, bc):
    for i in tt.parallel(X.shape[0]):
        s = tt.full((), seed, X.dtype)
        for k in tt.reduce(tt.cdiv(X.shape[1], bc), policy=policy):
            s = s + tt.sum(X[i, tt.ds(k * bc, bc)])
        Y[i] = s


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("rows", "columns", "block"), [(256, 256, 64), (5, 37, 8), (3, 0, 8), (1, 1, 4)])
def test_a_seed_is_counted_once(run, policy, rows, columns, block):
    """tilelang#1666: accumulation into a seed counted it wrongly. The seed joins once, under every policy."""
    x = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype("f4")
    y = np.zeros(rows, "f4")
    run(seeded_row_sums.trace(x, y, seed=1.0, policy=policy, bc=block), x, y)
    np.testing.assert_array_equal(y, x.sum(axis=1) + 1)


@tt.kernel
def row_sums(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[i] = tt.sum(X[i, :]).astype(Y.dtype)


@pytest.mark.parametrize("width", [1, 7, 31, 96, 97, 100, 120, 127, 128, 129])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_row_sums_of_any_width_are_exact(run, width, dtype):
    """tilelang#2399: a width that is no multiple of the team crashed. The tail is a loop of its own."""
    x = np.random.default_rng(1).integers(-50, 50, (3, width)).astype(dtype)
    y = np.zeros(3, dtype)
    run(row_sums.trace(x, y), x, y)
    np.testing.assert_array_equal(y, x.sum(axis=1))


@pytest.mark.parametrize("dtype", [BFLOAT16, "float16", "float32", "float64"], ids=str)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_sum_keeps_a_nan(run, dtype, position):
    """triton#11604: a bfloat16 sum lost a NaN. Widening for the accumulation keeps it."""
    x = np.array([[1, 4, 2]], dtype)
    x[0, position] = np.nan
    y = np.zeros(1, dtype)
    run(row_sums.trace(x, y), x, y)
    assert np.isnan(y[0].astype("f8"))


@tt.kernel
def scores(Q, K, S):
    for _ in tt.parallel(1):
        S[:, :] = tt.mma(Q[:, :], K[:, :].T, tt.zeros(S.shape, "float32"))


@pytest.mark.parametrize("dtype", ["float16", BFLOAT16], ids=str)
def test_products_of_16_bit_floats_accumulate_in_the_accumulator_dtype(run, dtype):
    """hidet#468: QK accumulated in fp16. 256 products of 16 × 16 are 65536, beyond float16."""
    q, s = np.full((1, 256), 16, dtype), np.zeros((1, 1), "f4")
    run(scores.trace(q, q, s), q, q, s)
    assert s[0, 0] == 65536


@tt.kernel
def two_floor_divisions(X, Y, *, first, second):
    for _ in tt.parallel(1):
        Y[:] = X[:] // first // second


@pytest.mark.parametrize(("first", "second"), [(2, 1.5), (3, 0.5), (2, 2.5)])
def test_floor_divisions_do_not_merge_across_a_float(run, first, second):
    """hidet#487: two floor divisions were merged though one divisor was a float. 7 // 2 // 1.5 is 2.0."""
    x = np.array([7, -7, 0, 11, 100], "i4")
    y = np.zeros(5, "f8")
    run(two_floor_divisions.trace(x, y, first=first, second=second), x, y)
    np.testing.assert_array_equal(y, x // first // second)
    assert (first, second) != (2, 1.5) or y[0] == 2.0


@tt.kernel
def reduce_middle(X, Y, *, fn):
    for _ in tt.parallel(1):
        Y[:, :] = fn(X[:, :, :], axis=1)


@pytest.mark.parametrize(("fn", "value"), [(tt.sum, 0), (tt.prod, 1), (tt.max, -np.inf), (tt.min, np.inf)])
def test_an_empty_fibre_gives_the_identity(run, fn, value):
    """An empty axis left the output unwritten. The identity is stored like any other value."""
    x, y = np.zeros((2, 0, 4), "f4"), np.full((2, 4), 7, "f4")
    run(reduce_middle.trace(x, y, fn=fn), x, y)
    assert (y == value).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_fibre_with_a_seed_gives_the_seed(run, policy):
    """As above, with a seed of 5."""
    x, y = np.zeros((2, 0), "f4"), np.full(2, 7, "f4")
    run(seeded_row_sums.trace(x, y, seed=5.0, policy=policy, bc=4), x, y)
    assert y.tolist() == [5, 5]


@tt.kernel
def extremum(X, Y, *, fn, policy):
    for _ in tt.parallel(1):
        Y[0] = fn(X[:], policy=policy)


@pytest.mark.parametrize("fn", [tt.max, tt.min])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("width", [8, 33])
def test_an_extremum_is_nan_wherever_the_nan_is(run, fn, policy, width):
    """The maximum depended on where the NaN was. It propagates under every policy and width."""
    for position in (0, 3, width - 1):
        x, y = np.arange(width, dtype="f4"), np.zeros(1, "f4")
        x[position] = np.nan
        run(extremum.trace(x, y, fn=fn, policy=policy), x, y)
        assert np.isnan(y[0]), position


@pytest.mark.parametrize("width", [1, 5, 40])
def test_softmax_of_a_fully_masked_row_is_zero(run, width):
    """A row of -inf gave NaN. The kernel documents and returns 0."""
    x, y = np.full((2, width), -np.inf, "f4"), np.full((2, width), 7, "f4")
    run(kernels.softmax.trace(x, y, block=16), x, y)
    assert (y == 0).all()


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 33), (128, 128, 1), (64, 65, 63), (31, 1, 97)])
def test_a_residual_contraction_tile_works(run, m, n, k):
    """tilelang#2365: a residual K tile of 1 crashed. Lanes beyond K load zeros."""
    rng = np.random.default_rng(2)
    a, b, c = rng.random((m, k), "f4"), rng.random((k, n), "f4"), np.zeros((m, n), "f4")
    run(kernels.gemm.trace(a, b, c, bm=64, bn=64, bk=32), a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b, rtol=1e-5)


@tt.kernel
def three_phases(A, B, C, D, E, *, first, second):
    n = A.shape[0]
    for i in tt.parallel(tt.cdiv(n, first)):
        C[tt.ds(i * first, first)] = A[tt.ds(i * first, first)] + B[tt.ds(i * first, first)]
    for i in tt.parallel(tt.cdiv(n, second)):
        D[tt.ds(i * second, second)] = C[tt.ds(i * second, second)] * 2.0
        E[tt.ds(i * second, second)] = D[tt.ds(i * second, second)] + A[tt.ds(i * second, second)]


@pytest.mark.parametrize("n", [1, 31, 1000, 1024, 97])
@pytest.mark.parametrize("factors", [(32, 48), (48, 32)])
def test_a_consumer_covers_everything_whatever_the_factors(run, n, factors):
    """tvm#15911: a fused consumer skipped a part. C = A + B, D = 2C, E = D + A with B = A is 5A."""
    a = np.random.default_rng(3).random(n, "f4")
    outputs = [np.zeros(n, "f4") for _ in range(3)]
    run(three_phases.trace(a, a, *outputs, first=factors[0], second=factors[1]), a, a, *outputs)
    np.testing.assert_allclose(outputs[2], 5 * a, rtol=1e-6)


@tt.kernel
def shifted_floor_division(X, Y, *, shift, divisor):
    for _ in tt.parallel(1):
        Y[:] = (X[:] + shift) // divisor


@pytest.mark.parametrize("divisor", [5, 7, -5, 1, -1, 0])
def test_folding_a_floor_division_does_not_overflow(run, divisor):
    """tvm#18684: the folded form of (a + 4) // 5 overflowed near the ends of int32."""
    x = np.array([np.iinfo("i4").min, -7, -4, 0, 2147483640, 2147483643], "i4")
    y = np.zeros(6, "i4")
    run(shifted_floor_division.trace(x, y, shift=4, divisor=divisor), x, y)
    wide = x.astype("i8") + 4
    expected = wide // divisor if divisor else np.zeros(6, "i8")
    np.testing.assert_array_equal(y, expected.astype("i4"))


@tt.kernel
def touch(Y, *, factor, modulus):
    for i in tt.serial(4):
        Y[factor * (i % modulus)] = 1.0


@pytest.mark.parametrize(("factor", "modulus"), [(5, 2), (3, 3), (2, 4)])
def test_a_product_with_a_remainder_keeps_its_parentheses(run, factor, modulus):
    """exo#845: `5*(i%2)` was printed as `5*i%2`. The text parses back to the same tree."""
    y = np.zeros(12, "f4")
    program = touch.trace(y, factor=factor, modulus=modulus)
    assert tt.parse(str(program)) == program
    run(program, y)
    assert set(np.flatnonzero(y)) == {factor * (i % modulus) for i in range(4)}


@tt.kernel
def row_scan(X, Y):
    for i in tt.parallel(X.shape[0]):
        s = tt.zeros((), X.dtype)
        for j in tt.serial(X.shape[1]):
            s = s + X[i, j]
            Y[i, j] = s


@pytest.mark.parametrize("batch", [65536, 65537])
def test_a_batch_beyond_16_bits_works(run, batch):
    """tvm#20106: a grid extent above 65535 failed. The CPU has no such limit."""
    if run is interpreted:
        batch = batch // 64  # one Python step an instance; the meaning does not depend on the batch
    x = np.random.default_rng(4).integers(0, 9, (batch, 3)).astype("i4")
    y = np.zeros_like(x)
    run(row_scan.trace(x, y), x, y)
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1))


@tt.kernel
def filled_row_max(X, Y, *, block, fill):
    for i in tt.parallel(X.shape[0]):
        m = tt.full((), float("-inf"), X.dtype)
        for k in tt.serial(tt.cdiv(X.shape[1], block)):
            m = tt.maximum(m, tt.max(X.at[i, tt.ds(k * block, block)].load(fill=fill)))
        Y[i] = m


@pytest.mark.parametrize("width", [65, 1, 31, 63, 64])
def test_lanes_out_of_bounds_hold_the_fill(run, width):
    """tilelang#2636: the fill was ignored. With -inf a row of negatives keeps its maximum."""
    x = -1 - np.random.default_rng(5).random((3, width), "f4")
    y = np.zeros(3, "f4")
    run(filled_row_max.trace(x, y, block=32, fill=float("-inf")), x, y)
    np.testing.assert_array_equal(y, x.max(axis=1))
    run(filled_row_max.trace(x, y, block=32, fill=9.0), x, y)
    np.testing.assert_array_equal(y, x.max(axis=1) if width % 32 == 0 else 9)


@tt.kernel
def nested_pipelines(A, B, C, *, outer, pipelined):
    loop = tt.pipeline if pipelined else tt.serial
    width = A.shape[1] // outer
    for _ in tt.parallel(1):
        acc = tt.zeros(C.shape, "float32")
        for o in loop(outer):
            for k in loop(width):
                acc = tt.mma(A[:, tt.ds(o * width + k, 1)], B[tt.ds(o * width + k, 1), :], acc)
        C[:, :] = acc


def test_a_nested_pipeline_means_what_the_serial_loop_means(run):
    """tvm#19742: an operand missed its version offset. A pipeline means what the serial loop does."""
    rng = np.random.default_rng(6)
    a, b = rng.random((9, 12), "f4"), rng.random((12, 7), "f4")
    results = []
    for pipelined in (True, False):
        c = np.zeros((9, 7), "f4")
        run(nested_pipelines.trace(a, b, c, outer=3, pipelined=pipelined), a, b, c)
        results.append(c)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], a.astype("f8") @ b, rtol=1e-5)


@tt.kernel
def shift_left(X, Y):
    for i in tt.parallel(X.shape[0] - 1):
        Y[i] = X[i + 1]


@tt.kernel
def increment(X, Y):
    for i in tt.parallel(tt.cdiv(X.shape[0], 8)):
        Y[tt.ds(i * 8, 8)] = X[tt.ds(i * 8, 8)] + 1.0


def test_one_array_for_two_parameters(run):
    """exo#275: one buffer for two arguments made a race. Across instances it is an error, in one not."""
    x = np.arange(19, dtype="f4")
    run(increment.trace(x, x), x, x)
    np.testing.assert_array_equal(x, np.arange(19) + 1)
    program = shift_left.trace(x, x)
    if run is interpreted:
        with pytest.raises(tt.IllegalError, match="instance"):
            tt.interpret(program, x, x, debug=True)
    else:
        with pytest.raises(tt.ArgumentError, match=r"X.*Y|Y.*X"):
            run(program, x, x)
        np.testing.assert_array_equal(x, np.arange(19) + 1)


@pytest.mark.parametrize("offset", [1, 2, 4, 12, 60])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_an_array_at_any_alignment_gives_the_right_result(run, offset, dtype):
    """An unaligned array crashed the process. Nothing assumes more than the caller's array has."""
    n, size = 100, np.dtype(dtype).itemsize
    x = np.zeros(n * size + 64, "u1")[offset : offset + n * size].view(dtype)
    y = np.zeros(n * size + 64, "u1")[offset : offset + n * size].view(dtype)
    x[:] = np.arange(n)
    run(twice.trace(x, y), x, y)
    np.testing.assert_array_equal(y, 2 * np.arange(n))


@tt.kernel
def twice(X, Y):
    for i in tt.parallel(tt.cdiv(X.shape[0], 32)):
        Y[tt.ds(i * 32, 32)] = X[tt.ds(i * 32, 32)] * 2


@tt.kernel
def folded(X, Y, Z, *, policy, to_z):
    for _ in tt.parallel(1):
        s = tt.zeros((), "float32")
        for r in tt.reduce(X.shape[0], policy=policy):
            s = s + X[r]
        if to_z:
            Z[0] = s
        else:
            Y[0] = s


def test_programs_that_differ_in_policy_or_output_are_different(run):
    """tilelang#2793: a cache was reused across settings. Both take part in the structural hash."""
    x, y, z = np.arange(5, dtype="f4"), np.zeros(1, "f4"), np.zeros(1, "f4")
    programs = [
        folded.trace(x, y, z, policy=p, to_z=t)
        for p in ("fold_left", "unordered_tree")
        for t in (False, True)
    ]
    assert len({p.structural_hash() for p in programs}) == 4
    for program, to_z in zip(programs, (False, True) * 2, strict=True):
        y[:], z[:] = 7, 7
        run(program, x, y, z)
        assert (y[0], z[0]) == ((7, 10) if to_z else (10, 7))


@tt.kernel
def laid_out(X, Y, *, layout):
    for _ in tt.parallel(1):
        m = tt.alloc((16,), X.dtype, layout=layout)
        m[:] = X[:]
        Y[:] = m[:] + X[0]


@pytest.mark.parametrize(
    ("many_to_one", "one_to_one"),
    [
        (lambda i: i % 8, lambda i: i % 8 * 2 + i // 8),
        (lambda i: i // 2, lambda i: i // 2 + i % 2 * 8),
        (lambda i: tt.minimum(i, 7), lambda i: 15 - i),
    ],
)
def test_a_memory_whose_layout_maps_elements_together_is_refused(run, many_to_one, one_to_one):
    """tilelang#2719: a many-to-one layout was accepted for memory. Each element needs its own address."""
    x, y = np.arange(3, 19, dtype="i4"), np.zeros(16, "i4")
    run(laid_out.trace(x, y, layout=one_to_one), x, y)
    np.testing.assert_array_equal(y, x + 3)
    with pytest.raises(tt.IllegalError, match="memory 'm' maps 16 elements onto 8 addresses"):
        laid_out.trace(x, y, layout=many_to_one)
