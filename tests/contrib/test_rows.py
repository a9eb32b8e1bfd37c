"""Kernels on rows: softmax, normalization, elementwise fusions; sizes, special values, what is refused."""

import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import check, normal, unwritten

SHAPES = [(4, 64), (2, 3, 37), (5, 1), (1,), (13,), (0, 5), (3, 0)]
NAN, INF = np.nan, np.inf

#: Inputs in the order of the kernel: "x" has the shape of the output, "d" that of its last axis.
OPERANDS = {
    "softmax": "x",
    "log_softmax": "x",
    "layernorm": "xdd",
    "residual_layernorm": "xxdd",
    "rmsnorm": "xd",
    "bias_gelu_residual": "xdx",
    "swiglu": "xx",
}
every_kernel = pytest.mark.parametrize("name", list(OPERANDS))


def inputs_of(name, shape, dtype="float32"):
    rng = np.random.default_rng(1)
    return [normal(rng, shape if kind == "x" else shape[-1:], dtype) for kind in OPERANDS[name]]


@every_kernel
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_all_lengths_equal_the_oracle(execute, name, shape):
    inputs, Y = inputs_of(name, shape), unwritten(shape, "float32")
    execute(getattr(kernels, name), *inputs, Y, block=32)
    check(Y, getattr(reference, name)(*inputs), 5)


@every_kernel
@pytest.mark.parametrize("shape", [(2, 5), (3, 1500)])
def test_rows_are_handled_whole_or_in_blocks_by_default(execute, name, shape):
    inputs, Y = inputs_of(name, shape), unwritten(shape, "float32")
    execute(getattr(kernels, name), *inputs, Y)
    check(Y, getattr(reference, name)(*inputs), 5)


@every_kernel
def test_a_kernel_may_work_in_place(execute, name):
    inputs = inputs_of(name, (6, 70))
    expected = getattr(reference, name)(*inputs)
    execute(getattr(kernels, name), *inputs, inputs[0], block=32)
    check(inputs[0], expected, 5)


@every_kernel
def test_16_bit_inputs_may_have_a_wider_output(execute, name):
    inputs, Y = inputs_of(name, (3, 37), "float16"), unwritten((3, 37), "float32")
    execute(getattr(kernels, name), *inputs, Y, block=16)
    check(Y, getattr(reference, name)(*inputs), 5)


@every_kernel
def test_nan_spoils_its_row_and_no_other(execute, name):
    inputs, Y = inputs_of(name, (3, 40)), unwritten((3, 40), "float32")
    inputs[0][1, 33] = NAN
    execute(getattr(kernels, name), *inputs, Y, block=16)
    elementwise = name in ("bias_gelu_residual", "swiglu")
    assert np.isnan(Y[1, 33] if elementwise else Y[1]).all()
    assert not np.isnan(Y[[0, 2]]).any()
    assert np.isnan(Y).sum() == (1 if elementwise else 40)


@every_kernel
def test_shapes_and_dtypes_that_do_not_fit_are_refused(name):
    kernel, kinds = getattr(kernels, name), OPERANDS[name]
    shapes = {"x": (3, 8), "d": (8,)}
    right = [tt.spec(shapes[kind], "float32") for kind in kinds] + [tt.spec((3, 8), "float32")]
    kernel.trace(*right)
    for place in range(len(right)):
        wrong = [*right]
        wrong[place] = tt.spec((3, 7) if right[place].shape == (3, 8) else (7,), "float32")
        with pytest.raises(tt.ArgumentError, match=r"shape|\(3, 7\)"):
            kernel.trace(*wrong)
        wrong[place] = tt.spec(right[place].shape, "int32")
        with pytest.raises(tt.ArgumentError, match="int32"):
            kernel.trace(*wrong)
    with pytest.raises(tt.ArgumentError, match="at least one axis"):
        kernel.trace(*(tt.spec((), "float32") for _ in right))


MASKED = np.array(
    [[-INF] * 5, [-INF, 0, 1, -INF, 2], [0, NAN, 1, 2, 3], [INF, 0, 0, 0, 0], [3e38, -3e38, 0, 0, 0]], "f4"
)


@pytest.mark.parametrize("block", [2, 5])
def test_softmax_of_masked_infinite_and_nan_rows(execute, block):
    Y, L = unwritten(MASKED.shape, "float32"), unwritten(MASKED.shape, "float32")
    execute(kernels.softmax, MASKED, Y, block=block)
    execute(kernels.log_softmax, MASKED, L, block=block)
    assert Y[0].tolist() == [0] * 5
    assert L[0].tolist() == [-INF] * 5
    check(Y[[1, 4]], reference.softmax(MASKED[[1, 4]]))
    with np.errstate(over="ignore"):
        check(L[[1, 4]], reference.log_softmax(MASKED[[1, 4]]).astype("f4"))
    assert np.isnan(Y[2:4]).all()
    assert np.isnan(L[2:4]).all()


def test_log_softmax_is_precise_far_from_zero_and_for_tiny_probabilities(execute):
    X = np.array([[1e6, 1e6 + 1, 1e6 - 0.5], [0, -200, -1e4]], "float32")
    Y = unwritten(X.shape, "float32")
    execute(kernels.log_softmax, X, Y, block=2)
    np.testing.assert_allclose(Y, reference.log_softmax(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["layernorm", "residual_layernorm"])
def test_a_large_mean_costs_no_precision(execute, name):
    inputs, Y = inputs_of(name, (3, 200)), unwritten((3, 200), "float32")
    inputs[0] += np.float32(20000)
    execute(getattr(kernels, name), *inputs, Y, block=64)
    # The elements of the sum are themselves only known to 2e-3 / 2.
    np.testing.assert_allclose(Y, getattr(reference, name)(*inputs), rtol=0, atol=4e-3)


@pytest.mark.parametrize("name", ["layernorm", "residual_layernorm", "rmsnorm"])
def test_the_added_eps_bounds_the_scale_of_constant_rows(execute, name):
    inputs, Y = inputs_of(name, (2, 9)), unwritten((2, 9), "float32")
    for x in inputs:
        x[...] = 0
    inputs[-1][...] = 3
    execute(getattr(kernels, name), *inputs, Y, eps=0.25)
    np.testing.assert_array_equal(Y, 0 if name == "rmsnorm" else 3)
    X, gamma, beta = np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2)
    Y = unwritten((1, 2), "float64")
    rest = {"layernorm": (gamma, beta), "residual_layernorm": (0 * X, gamma, beta), "rmsnorm": (gamma,)}[name]
    execute(getattr(kernels, name), X, *rest, Y, eps=3.0)
    check(Y, X / np.sqrt(8.0) if name == "rmsnorm" else np.array([[-0.5, 0.5]]))


def test_normalizations_agree_with_torch(execute):
    X, gamma, beta = inputs_of("layernorm", (3, 40), "float64")
    Y = np.zeros_like(X)
    x, g, b = map(torch.from_numpy, (X, gamma, beta))
    execute(kernels.layernorm, X, gamma, beta, Y)
    check(Y, torch.nn.functional.layer_norm(x, (40,), g, b).numpy(), 5)
    execute(kernels.rmsnorm, X, gamma, Y)
    check(Y, torch.nn.functional.rms_norm(x, (40,), g, eps=1e-6).numpy(), 5)


def test_a_gate_far_from_zero_is_open_or_closed(execute):
    G = np.array([-1e4, -100.0, 0.0, 100.0, 1e4], "float32")
    X, Y = np.full(5, 2.0, "float32"), unwritten((5,), "float32")
    execute(kernels.swiglu, X, G, Y)
    np.testing.assert_allclose(Y, [0, 0, 0, 200, 2e4], atol=1e-30)


def angles(length, half, dtype="float32"):
    frequencies = 10000.0 ** (-np.arange(half) / max(half, 1))
    x = np.outer(np.arange(length), frequencies)
    return np.cos(x).astype(dtype), np.sin(x).astype(dtype)


@pytest.mark.parametrize(
    "shape", [(2, 3, 32, 16), (2, 17, 6), (5, 2), (1, 1, 1, 2), (2, 0, 4), (0, 3, 4), (3, 0)]
)
def test_rope_equals_the_oracle(execute, shape):
    X, Y = normal(np.random.default_rng(2), shape, "float32"), unwritten(shape, "float32")
    cos, sin = angles(shape[-2], shape[-1] // 2)
    execute(kernels.rope, X, cos, sin, Y, block=8)
    check(Y, reference.rope(X, cos, sin))


def test_rope_works_in_place_and_keeps_lengths(execute):
    X = normal(np.random.default_rng(3), (3, 21, 10), "float64")
    lengths = np.linalg.norm(X, axis=-1)
    cos, sin = angles(21, 5, "float64")
    expected = reference.rope(X, cos, sin)
    execute(kernels.rope, X, cos, sin, X)
    check(X, expected)
    np.testing.assert_allclose(np.linalg.norm(X, axis=-1), lengths, rtol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 7), (4, 3), (4, 3), (4, 7)], "dim=7"),
        ([(4, 8), (4, 8), (4, 4), (4, 8)], r"cos has shape \(4, 8\)"),
        ([(4, 8), (4, 4), (5, 4), (4, 8)], r"sin has shape \(5, 4\)"),
        ([(4, 8), (4, 4), (4, 4), (8, 4)], r"Y has \(8, 4\)"),
        ([(8,), (1, 4), (1, 4), (8,)], r"not \(..., length, dim\)"),
    ],
)
def test_rope_refuses_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(tt.ArgumentError, match=message):
        kernels.rope.trace(*(tt.spec(shape, "float32") for shape in shapes))
