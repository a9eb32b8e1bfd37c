"""Matrix products: shapes that do not divide, batches, element types, the order of the contraction."""

import ml_dtypes
import numpy as np
import pytest
import tvm

import tvm_tile.frontend as tt

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@tt.kernel
def product(A, B, Z, C):
    C[...] = tt.mma(A[...], B[...], Z[...])


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1, 1, 1),
        (5, 7, 9),
        (17, 3, 33),
        (13, 40, 100),
        (4, 0, 8),
        (0, 3, 4),
        (3, 4, 0),
        (26, 5, 80),
        (1, 30, 64),
    ],
)
def test_shapes(agrees, m, k, n):
    A, B, Z, C = floats(m, k), floats(k, n), floats(m, n), floats(m, n)
    got = agrees(product.trace(A, B, Z, C), A, B, Z, C, rtol=1e-5, atol=1e-5)[3]
    np.testing.assert_allclose(got, Z + A.astype("float64") @ B, rtol=1e-4, atol=1e-4)


def test_batches_broadcast(agrees):
    A, B, Z, C = floats(2, 1, 5, 6), floats(3, 6, 17), floats(2, 3, 5, 17), floats(2, 3, 5, 17)
    agrees(product.trace(A, B, Z, C), A, B, Z, C, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "accumulator", "rtol"),
    [
        ("float16", "float32", 1e-5),
        ("bfloat16", "float32", 1e-5),
        ("float16", "float16", 2e-2),
        ("float64", "float64", 1e-12),
        ("int8", "int32", 0),
        ("uint8", "uint32", 0),
        ("int8", "int8", 0),
        ("int64", "int64", 0),
        ("uint64", "uint64", 0),
    ],
)
def test_element_types(agrees, inputs, accumulator, rtol):
    def values(dtype, *shape):
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
        if dtype.startswith(("int", "uint")):
            info = np.iinfo(kind)
            return RNG.integers(info.min, info.max, shape, dtype=kind)
        return RNG.standard_normal(shape).astype(kind)

    arrays = [
        values(inputs, 5, 7),
        values(inputs, 7, 37),
        values(accumulator, 5, 37),
        values(accumulator, 5, 37),
    ]
    agrees(product.trace(*arrays), *arrays, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
def test_the_contraction_is_in_order_and_unfused_on_request(run, pipeline):
    def body(A, B, Z, C):
        C[...] = tt.mma(A[...], B[...], Z[...], policy=tt.MmaPolicy(ordered=True))

    exact = tt.kernel(fma=False)(body)
    A = (floats(9, 61) * 10.0 ** RNG.integers(-4, 4, (9, 61))).astype("float32")
    B, Z = floats(61, 35), floats(9, 35)
    want = Z.copy()
    for k in range(61):
        want = want + A[:, k, None] * B[k]
    np.testing.assert_array_equal(run(exact.trace(A, B, Z, Z), A, B, Z, Z.copy(), pipeline=pipeline)[3], want)
    fused = run(tt.kernel(body).trace(A, B, Z, Z), A, B, Z, Z.copy(), pipeline=pipeline)[3]
    assert (fused != want).any(), "the host has no fused multiply-add, so this test shows nothing"
    np.testing.assert_allclose(fused, want, rtol=1e-3)


@tt.kernel
def gemm(A, B, C, *, bm=32, bn=32, bk=16):
    M, K = A.shape
    N = B.shape[1]
    for i, j in tt.parallel(tt.cdiv(M, bm), tt.cdiv(N, bn)):
        acc = tt.zeros((bm, bn), "float32")
        for k in tt.pipeline(tt.cdiv(K, bk)):
            a = A[tt.ds(i * bm, bm), tt.ds(k * bk, bk)]
            b = B[tt.ds(k * bk, bk), tt.ds(j * bn, bn)]
            acc = tt.mma(a, b, acc)
        C[tt.ds(i * bm, bm), tt.ds(j * bn, bn)] = acc


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (65, 33, 31), (1, 1, 1), (20, 0, 20), (0, 5, 5)])
def test_blocked_gemm(agrees, m, k, n):
    A, B, C = floats(m, k), floats(k, n), floats(m, n)
    agrees(gemm.trace(A, B, C), A, B, C, rtol=1e-5, atol=1e-5)


def test_the_inner_loop_keeps_its_sums_in_registers(compiled):
    from tvm_tile.bridges.tirx.lower import lower_program

    A = floats(64, 64)
    program = gemm.trace(A, A, A)
    target = tvm.target.Target({"kind": "llvm", "mcpu": "skylake-avx512", "mtriple": "x86_64-linux-gnu"})
    function = lower_program(program, target)
    module = tvm.compile(tvm.IRModule({"gemm": function}), target=target, tir_pipeline="tirx").mod
    lines = module.inspect_source("asm").splitlines()
    fused = [line for line in lines if "vfmadd" in line and "ps" in line]
    accumulators = {line.rsplit(",", 1)[1].strip() for line in fused}
    assert len(accumulators) >= 8, fused[:5]
    stores_between = sum("vmovups\t%zmm" in line and "(%rsp" in line for line in lines)
    assert stores_between < len(fused)
