"""Matrix products: sizes, accumulators, epilogues, what is refused."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import check, normal, unwritten

SIZES = [
    ((64, 64, 64), (32, 32, 32)),
    ((37, 29, 53), (16, 16, 16)),
    ((1, 1, 1), (8, 8, 8)),
    ((0, 5, 3), (8, 8, 8)),
    ((5, 0, 3), (8, 8, 8)),
    ((5, 3, 0), (8, 8, 8)),
    ((128, 128, 33), (64, 64, 32)),
    ((7, 130, 5), (3, 48, 2)),
]
sizes = pytest.mark.parametrize(("extents", "blocks"), SIZES)


def tiles(blocks):
    return dict(zip(("bm", "bn", "bk"), blocks, strict=True))


def factors(extents, dtype="float32", seed=0):
    m, n, k = extents
    rng = np.random.default_rng(seed)
    return normal(rng, (m, k), dtype), normal(rng, (k, n), dtype), unwritten((m, n), dtype)


@sizes
def test_gemm_equals_the_oracle(execute, extents, blocks):
    A, B, C = factors(extents)
    execute(kernels.gemm, A, B, C, **tiles(blocks))
    check(C, reference.gemm(A, B), 4)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("int8", "int32"),
        ("int32", "int32"),
        ("int64", "int64"),
        ("uint8", "uint8"),
        ("uint8", "int32"),
        ("uint16", "uint32"),
    ],
)
def test_gemm_of_integers_is_exact_modulo_the_width(execute, dtype, out):
    rng = np.random.default_rng(4)
    info = np.iinfo(dtype)
    A = rng.integers(max(info.min, -1000), min(info.max, 1000), (9, 33), dtype)
    B = rng.integers(max(info.min, -1000), min(info.max, 1000), (33, 10), dtype)
    C = np.zeros((9, 10), out)
    execute(kernels.gemm, A, B, C, bm=8, bn=8, bk=16)
    np.testing.assert_array_equal(C, reference.gemm(A, B).astype(out))


def test_a_product_of_16_bit_floats_is_rounded_once(execute):
    """Sums in 16 bits would stop growing at 256 (bfloat16) and 2048 (float16)."""
    for dtype in (ml_dtypes.bfloat16, np.float16):
        A, B, C = np.ones((3, 4096), dtype), np.ones((4096, 2), dtype), np.zeros((3, 2), dtype)
        execute(kernels.gemm, A, B, C)
        assert (C == 4096).all()
        y = np.zeros(3, dtype)
        execute(kernels.gemv, A, B[:, 0].copy(), y)
        assert (y == 4096).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 9, 7), (3, 7, 5)),
        ((2, 1, 9, 7), (3, 7, 5)),
        ((4, 9, 7), (7, 5)),
        ((9, 7), (2, 7, 5)),
        ((9, 7), (7, 5)),
        ((0, 9, 7), (1, 7, 5)),
        ((2, 0, 7), (2, 7, 5)),
        ((2, 9, 0), (2, 0, 5)),
        ((1, 1, 1, 1), (1, 1, 1, 1)),
    ],
)
def test_batch_axes_broadcast_as_in_numpy(execute, a, b):
    rng = np.random.default_rng(1)
    A, B = normal(rng, a, "float32"), normal(rng, b, "float32")
    expected = reference.batched_gemm(A, B)
    C = unwritten(expected.shape, "float32")
    execute(kernels.batched_gemm, A, B, C, bm=4, bn=4, bk=4)
    check(C, expected, 4)


@sizes
def test_a_linear_layer_equals_the_oracle(execute, extents, blocks):
    A, B, C = factors(extents)
    bias = normal(np.random.default_rng(2), C.shape[1:], "float32")
    execute(kernels.gemm_bias_act, A, B, bias, C, act="silu", **tiles(blocks))
    check(C, reference.gemm_bias_act(A, B, bias, act="silu"), 4)


TORCH = {
    "none": lambda x: x,
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("act", list(TORCH))
def test_activations_agree_with_torch_far_from_zero_and_on_special_values(execute, act):
    bias = np.array([-np.inf, -800.0, -30.0, -1.5, -0.0, 0.0, 1e-30, 2.5, 40.0, 800.0, np.inf, np.nan])
    A, B, C = np.zeros((2, 3)), np.zeros((3, len(bias))), unwritten((2, len(bias)), "float64")
    execute(kernels.gemm_bias_act, A, B, bias, C, act=act)
    expected = TORCH[act](torch.from_numpy(bias)).numpy()
    np.testing.assert_allclose(C, np.broadcast_to(expected, C.shape), rtol=1e-12, atol=1e-14)


@sizes
def test_a_quantized_product_equals_the_oracle(execute, extents, blocks):
    m, n, k = extents
    rng = np.random.default_rng(3)
    A, B = rng.integers(-128, 128, (m, k), "int8"), rng.integers(-128, 128, (k, n), "int8")
    scale_a, scale_b = rng.random(m).astype("f4"), rng.random(n).astype("f4")
    C = unwritten((m, n), "float32")
    execute(kernels.gemm_int8, A, B, scale_a, scale_b, C, **tiles(blocks))
    check(C, reference.gemm_int8(A, B, scale_a, scale_b))


def test_a_quantized_product_of_the_least_numbers_does_not_overflow(execute):
    """Neither 16 bits nor the 24 bits of a float32 hold the sum on the way."""
    k = 2001
    A, B = np.full((2, k), -128, "int8"), np.full((k, 3), -128, "int8")
    A[0, 0] = -127
    C = np.zeros((2, 3), "float32")
    execute(kernels.gemm_int8, A, B, np.ones(2, "f4"), np.ones(3, "f4"), C)
    np.testing.assert_array_equal(C, reference.gemm(A, B).astype("f4"))


@pytest.mark.parametrize(("m", "k"), [(64, 256), (19, 37), (1, 1), (0, 5), (5, 0), (3, 1000)])
@pytest.mark.parametrize("block", [16, 128])
def test_gemv_equals_the_oracle(execute, m, k, block):
    rng = np.random.default_rng(5)
    A, x, y = normal(rng, (m, k), "float32"), normal(rng, (k,), "float32"), unwritten((m,), "float32")
    execute(kernels.gemv, A, x, y, bk=block)
    check(y, reference.gemv(A, x), 8)


def test_a_factor_with_nan_or_infinity_spoils_its_row_only(execute):
    rng = np.random.default_rng(6)
    A, B, C = factors((9, 5, 17))
    A[2, 3], A[4, 16] = np.nan, np.inf
    B[:] = np.abs(B) + normal(rng, (17, 5), "float32") ** 2
    execute(kernels.gemm, A, B, C, bm=4, bn=4, bk=4)
    y = unwritten((9,), "float32")
    execute(kernels.gemv, A, B[:, 0].copy(), y, bk=4)
    assert np.isnan([*C[2], y[2]]).all()
    assert np.isposinf([*C[4], y[4]]).all()
    rest = [0, 1, 3, 5, 6, 7, 8]
    check(C[rest], reference.gemm(A[rest], B), 4)


def spec(shape, dtype="float32"):
    return tt.spec(shape, dtype)


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        (kernels.gemm, [spec((4, 5)), spec((6, 7)), spec((4, 7))], "inner extents differ"),
        (kernels.gemm, [spec((4, 5)), spec((5, 7)), spec((4, 8))], "C has shape"),
        (kernels.gemm, [spec((4, 5)), spec((5, 7), "float64"), spec((4, 7))], "cast one of them"),
        (kernels.gemm, [spec((2, 4, 5)), spec((5, 7)), spec((2, 4, 7))], "not both matrices"),
        (kernels.gemm, [spec((4, 5)), spec((5,)), spec((4,))], "not both matrices"),
        (kernels.batched_gemm, [spec((2, 4, 5)), spec((3, 5, 7)), spec((2, 4, 7))], "do not broadcast"),
        (kernels.batched_gemm, [spec((2, 4, 5)), spec((5, 7)), spec((4, 7))], r"C has shape \(4, 7\)"),
        (kernels.batched_gemm, [spec((5,)), spec((5, 7)), spec((7,))], "not both matrices"),
        (kernels.gemm_bias_act, [spec((4, 5)), spec((5, 7)), spec((4,)), spec((4, 7))], r"bias .*\(4,\)"),
        (
            kernels.gemm_bias_act,
            [spec((4, 5), "int8"), spec((5, 7), "int8"), spec((7,)), spec((4, 7))],
            "A is int8, not a float",
        ),
        (
            kernels.gemm_bias_act,
            [spec((4, 5)), spec((5, 7)), spec((7,), "int32"), spec((4, 7))],
            "bias is int32",
        ),
        (
            kernels.gemm_int8,
            [spec((4, 5)), spec((5, 7)), spec((4,)), spec((7,)), spec((4, 7))],
            "float32, not int8",
        ),
        (
            kernels.gemm_int8,
            [spec((4, 5), "int8"), spec((5, 7), "int8"), spec((7,)), spec((7,)), spec((4, 7))],
            r"scale_a .*\(7,\)",
        ),
        (
            kernels.gemm_int8,
            [spec((4, 5), "int8"), spec((5, 7), "int8"), spec((4,)), spec((4,)), spec((4, 7))],
            r"scale_b .*\(4,\)",
        ),
        (
            kernels.gemm_int8,
            [spec((4, 5), "int8"), spec((5, 7), "int8"), spec((4,)), spec((7,)), spec((4, 7), "int32")],
            "C is int32",
        ),
        (kernels.gemv, [spec((4, 5)), spec((4,)), spec((4,))], r"x has shape \(4,\)"),
        (kernels.gemv, [spec((4, 5)), spec((5,)), spec((5,))], r"y has shape \(5,\)"),
        (kernels.gemv, [spec((2, 4, 5)), spec((5,)), spec((4,))], r"not \(M, K\)"),
        (kernels.gemv, [spec((4, 5)), spec((5,), "float16"), spec((4,))], "x is float16"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, arguments, message):
    with pytest.raises(tt.ArgumentError, match=message) as caught:
        kernel.trace(*arguments)
    assert caught.value.span is not None
    assert "contrib/kernels" in caught.value.span.file


def test_an_activation_that_is_not_known_is_refused_with_those_that_are():
    arguments = [spec((4, 5)), spec((5, 7)), spec((7,)), spec((4, 7))]
    with pytest.raises(tt.ArgumentError, match=r"act='swish' .* 'silu'"):
        kernels.gemm_bias_act.trace(*arguments, act="swish")
