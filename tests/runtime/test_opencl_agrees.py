"""Programs on OpenCL against the interpreter and LLVM code: the same numbers, to the last bit where they are.

Every program here computes without contraction (``fma=False``), so that the order and rounding of every step
are fixed.
"""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.build import cache_clear
from tvm_tile.contrib import kernels

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def special(dtype, count=64, seed=0):
    """Random elements among which are the extremes of the type."""
    rng = np.random.default_rng(seed)
    if dtype in INTS:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        x[:6] = [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
        x[6:20] = np.arange(14)
        return rng.permutation(x)
    width = 8 * dtype_of(dtype).itemsize
    words = rng.integers(0, 1 << width, count, dtype="u8" if width == 64 else "i8")
    x = words.astype(f"u{width // 8}").view(dtype_of(dtype)).copy()
    x[:8] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]).astype(dtype_of(dtype))
    x[8:32] = rng.standard_normal(24).astype(dtype_of(dtype))
    return x


def agree(program, *arrays, exact=True):
    """Run on the three, and compare; NaN equals NaN. Gives the arrays after OpenCL."""
    copies = [[a.copy() for a in arrays] for _ in range(3)]
    with np.errstate(all="ignore"):
        tt.interpret(program, *copies[0])
    tt.build(program, "llvm")(*copies[1])
    tt.build(program, "opencl")(*copies[2])
    for wanted, other, got in zip(*copies, strict=True):
        wide = "f8" if dtype_of(wanted.dtype.name).kind not in "iub" else wanted.dtype
        np.testing.assert_array_equal(got.astype(wide), other.astype(wide))
        if exact:
            np.testing.assert_array_equal(got.astype(wide), wanted.astype(wide))
    return copies[2]


@tt.kernel(fma=False)
def binary(X, Y, Z, *, fn):
    for i in tt.parallel(X.shape[0]):
        Z[i] = fn(X[i], Y[i])


BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "maximum": tt.maximum,
    "minimum": tt.minimum,
}
ON_INTS = BINARY | {
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "**": lambda a, b: a**b,
}
ON_FLOATS = BINARY | {"/": lambda a, b: a / b}
COMPARISONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@tt.kernel(fma=False)
def all_binary(X, Y, Z, *, fns):
    for i in tt.parallel(X.shape[0]):
        for k in range(len(fns)):
            Z[k, i] = fns[k](X[i], Y[i])


def pairs(dtype):
    """All of 64 elements with eight others each."""
    x = special(dtype)
    return np.repeat(x, 8), np.concatenate([special(dtype, seed=k)[:64] for k in range(8)])


@pytest.mark.parametrize("dtype", INTS)
def test_integer_arithmetic(dtype):
    x, y = pairs(dtype)
    fns = tuple(ON_INTS.values())
    z = np.zeros((len(fns), x.size), dtype)
    agree(all_binary.trace(x, y, z, fns=fns), x, y, z)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(dtype):
    x, y = pairs(dtype)
    fns = tuple(ON_FLOATS.values())
    z = np.zeros((len(fns), x.size), dtype_of(dtype))
    agree(all_binary.trace(x, y, z, fns=fns), x, y, z)


@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_comparisons(dtype):
    x, y = pairs(dtype)
    fns = tuple(COMPARISONS.values())
    z = np.zeros((len(fns), x.size), bool)
    agree(all_binary.trace(x, y, z, fns=fns), x, y, z)


TARGETS = ("int8", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float8_e4m3fn", "bool")


@tt.kernel
def conversions(X, A, B, C, D, E, F, G, H, K):
    for i in tt.parallel(X.shape[0]):
        for Y in (A, B, C, D, E, F, G, H, K):
            Y[i] = X[i].astype(Y.dtype)


@pytest.mark.parametrize("source", INTS + FLOATS + ("float8_e4m3fn", "float8_e5m2", "bool"))
def test_conversions(source):
    if source == "bool":
        x = np.array([True, False])
    elif source.startswith("float8"):
        x = np.arange(256).astype("u1").view(dtype_of(source))
    else:
        x = np.concatenate([special(source, seed=k) for k in range(4)])
    outputs = [np.zeros(x.size, dtype_of(target)) for target in TARGETS]
    agree(conversions.trace(x, *outputs), x, *outputs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_to_half_at_every_boundary(dtype):
    """Values between neighbouring float16 numbers, and at their midpoints."""
    halves = np.arange(0x7C00).astype("u2").view("f2").astype("f8")
    middle = (halves[:-1] + halves[1:]) / 2
    chosen = np.random.default_rng(4).choice(middle, 500)
    middle = np.concatenate([middle[:20], middle[1014:1034], middle[-20:], chosen])
    x = np.concatenate([middle, middle * (1 + 2.0**-20), middle * (1 - 2.0**-20), [65519.0, 65520.0, 1e30]])
    x = x.astype(dtype_of(dtype))

    @tt.kernel
    def cast(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i].astype("float16")

    y = np.zeros(x.size, "f2")
    agree(cast.trace(x, y), x, y)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_softmax_and_layernorm_are_near(dtype):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((9, 70)).astype(dtype)
    y = np.zeros_like(x)
    tt.build(kernels.softmax.trace(x, y, block=32), "opencl")(x, y)
    wide = np.exp(x.astype("f8") - x.astype("f8").max(1, keepdims=True))
    np.testing.assert_allclose(
        y.astype("f8"), wide / wide.sum(1, keepdims=True), rtol=2e-3 if dtype == "float16" else 3e-6
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(70, 33, 65), (1, 1, 1), (3, 0, 2)])
def test_matrix_products(dtype, shape):
    m, k, n = shape
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(dtype_of(dtype)) for s in ((m, k), (k, n)))
    c = np.full((m, n), 7, dtype_of(dtype))
    tt.build(kernels.gemm.trace(a, b, c), "opencl")(a, b, c)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-13}[dtype]
    exact = a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(c.astype("f8"), exact, rtol=tolerance, atol=tolerance * 4)


def test_values_and_memories_cross_launches():
    @tt.kernel(fma=False)
    def program(X, Y, Z):
        total = tt.sum(X[...], policy="fold_left")
        first = X[0] + 1
        scratch = tt.alloc(X.shape, X.dtype)
        for i in tt.parallel(X.shape[0]):
            scratch[i] = X[i] * total
        Z[0] = scratch[0] + first
        for i in tt.parallel(X.shape[0]):
            Y[i] = scratch[i] + first

    x = np.arange(1, 40, dtype="f4")
    agree(program.trace(x, np.zeros_like(x), np.zeros(1, "f4")), x, np.zeros_like(x), np.zeros(1, "f4"))


def test_extents_and_subscripts_computed_by_an_earlier_launch():
    @tt.kernel
    def program(X, N, Y):
        n = N[0]
        k = N[1] + 1
        for i in tt.parallel(n):
            Y[i + k] = X[i]

    x = np.arange(50, dtype="f4")
    for n, k in ((0, 3), (1, 0), (20, 7), (50, -1)):
        counts = np.array([n, k], "i8")
        agree(program.trace(x, counts, np.zeros(60, "f4")), x, counts, np.zeros(60, "f4"))


def test_more_instances_than_threads_in_a_workspace(monkeypatch):
    """Each thread runs several instances; the last turn is not whole."""
    from tvm_tile.bridges.tirx.lower.device import launches

    monkeypatch.setattr(launches, "WORKSPACE_BYTES", 5 * 64 * 64 * 12)
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (300, 100)).astype("f4"), rng.integers(-4, 5, (100, 200)).astype("f4")
    c = np.zeros((300, 200), "f4")
    cache_clear()
    exe = tt.build(kernels.gemm.trace(a, b, c), "opencl")
    (launch,) = exe.launches
    assert launch.grid[0] * launch.block[0] < 20
    exe(a, b, c)
    cache_clear()
    np.testing.assert_array_equal(c, a @ b)


def test_a_predicate_of_the_domain():
    @tt.kernel
    def lower_triangle(X, Y):
        for i, j in tt.parallel(X.shape[0], X.shape[1], where=lambda i, j: j <= i):
            Y[i, j] = X[i, j]

    x = np.arange(1, 36, dtype="i4").reshape(5, 7)
    (_, y) = agree(lower_triangle.trace(x, np.zeros_like(x)), x, np.zeros_like(x))
    np.testing.assert_array_equal(y, np.tril(x))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("fn", ["add", "max", "min"])
def test_atomics_of_all_instances_count(dtype, fn):
    update = getattr(tt, f"atomic_{fn}")

    @tt.kernel
    def counted(X, Y):
        for i in tt.parallel(X.shape[0]):
            update(Y.at[i % 3], X[i])

    x = np.arange(2000) % 2 if fn == "add" else np.arange(2000) % 100
    x = x.astype(dtype_of(dtype))
    y = np.full(3, 1, dtype_of(dtype))
    agree(counted.trace(x, y), x, y)


def test_code_of_a_program_is_compiled_once():
    x, y = np.zeros(4, "f4"), np.zeros(4, "f4")
    program = binary.trace(x, x, y, fn=tt.maximum)
    one, other = tt.build(program, "opencl"), tt.build(program, "opencl")
    assert one._artifact is other._artifact


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_fused_multiply_add_of_what_is_not_finite(dtype):
    """The error of an infinite sum is NaN; a test for an inexact sum must not take it for one."""

    @tt.kernel
    def fused(A, B, C, Y):
        for _ in tt.parallel(1):
            Y[:] = tt.fma(A[:], B[:], C[:])

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    values = np.array([0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3.0e4]).astype(kind)
    a, b, c = (x.ravel() for x in np.meshgrid(values, values, values))
    program = fused.trace(a, b, c, a)
    want, got = np.zeros_like(a), np.zeros_like(a)
    tt.interpret(program, a, b, c, want)
    tt.build(program, "opencl")(a, b, c, got)
    np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))
    assert np.isposinf(got.astype("f8")).any()
    assert np.isfinite(got.astype("f8")).any()
