"""Convolutions, pooling and image filters: borders, strides, NaN, dtypes and what they refuse."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib.kernels import reference_data as reference
from tvm_tile.contrib.kernels.convolution import conv2d, depthwise_conv2d
from tvm_tile.contrib.kernels.images import median3x3, sobel
from tvm_tile.contrib.kernels.pooling import max_pool2d

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def normal(shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def small_integers(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)


@pytest.mark.parametrize(
    ("image", "filters", "stride", "padding"),
    [
        ((2, 5, 11, 13), (6, 5, 3, 2), (2, 1), (1, 0)),
        ((1, 3, 9, 9), (4, 3, 3, 3), 1, 1),
        ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0),
        ((1, 2, 5, 7), (3, 2, 5, 7), 1, 0),
        ((1, 2, 3, 3), (3, 2, 2, 2), 3, 4),
    ],
)
def test_convolution_agrees_with_torch_and_the_oracle(execute, image, filters, stride, padding):
    # Small integers are exact in any order of summation.
    X, W = small_integers(image, "float32"), small_integers(filters, "float32", 1)
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(X), torch.from_numpy(W), stride=stride, padding=padding
    )
    Y = np.full(expected.shape, 7, "float32")
    execute(conv2d, X, W, Y, stride=stride, padding=padding, bf=4, bc=2, bh=2, bw=8)
    np.testing.assert_array_equal(Y, expected.numpy())
    np.testing.assert_array_equal(Y, reference.conv2d(X, W, stride=stride, padding=padding))


@pytest.mark.parametrize(
    ("image", "filters", "output"),
    [
        ((0, 2, 4, 4), (3, 2, 3, 3), (0, 3, 2, 2)),
        ((2, 0, 4, 4), (3, 0, 3, 3), (2, 3, 2, 2)),
        ((2, 2, 4, 4), (0, 2, 3, 3), (2, 0, 2, 2)),
        ((2, 2, 2, 4), (3, 2, 3, 3), (2, 3, 0, 2)),
    ],
)
def test_convolution_of_nothing_is_zero_or_empty(execute, image, filters, output):
    Y = np.full(output, 7, "float32")
    execute(conv2d, np.ones(image, "float32"), np.ones(filters, "float32"), Y)
    np.testing.assert_array_equal(Y, np.zeros(output))


@pytest.mark.parametrize(
    ("dtype", "out"), [("int8", "int32"), ("uint8", "int32"), ("float16", "float16"), (BFLOAT16, "float32")]
)
def test_convolution_accumulates_wider_than_its_inputs(execute, dtype, out):
    # 2·3·3 products of 50·50 leave int8 and the integers that float16 and bfloat16 hold exactly.
    X, W = np.full((1, 2, 5, 5), 50, dtype), np.full((1, 2, 3, 3), 50, dtype)
    Y = np.zeros((1, 1, 3, 3), out)
    execute(conv2d, X, W, Y)
    np.testing.assert_array_equal(Y, np.full(Y.shape, 45000).astype(out))


@pytest.mark.parametrize("filters", [(10, 1, 3, 2), (5, 1, 3, 2), (5, 3, 2)])
def test_depthwise_convolution_agrees_with_grouped_torch(execute, filters):
    X, W = small_integers((2, 5, 9, 8), "float32"), small_integers(filters, "float32", 1)
    grouped = torch.from_numpy(W.reshape(filters[0], 1, 3, 2))
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(X), grouped, stride=(1, 2), padding=(1, 2), groups=5
    )
    Y = np.full(expected.shape, 7, "float32")
    execute(depthwise_conv2d, X, W, Y, stride=(1, 2), padding=(1, 2), bh=2, bw=4)
    np.testing.assert_array_equal(Y, expected.numpy())
    np.testing.assert_array_equal(Y, reference.depthwise_conv2d(X, W, stride=(1, 2), padding=(1, 2)))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), ((2, 3), None, 0), (2, (1, 3), (1, 0))])
def test_pooling_agrees_with_torch_nan_included(execute, kernel, stride, padding):
    X = -np.abs(normal((2, 3, 9, 10)))
    X[0, 1, 4, 4], X[1, 0, 0, 0] = np.nan, -np.inf
    expected = torch.nn.functional.max_pool2d(torch.from_numpy(X), kernel, stride, padding).numpy()
    Y = np.full(expected.shape, 7, "float32")
    execute(max_pool2d, X, Y, kernel=kernel, stride=stride, padding=padding, bh=2, bw=4)
    assert np.isnan(Y).any()
    np.testing.assert_array_equal(Y, expected)
    np.testing.assert_array_equal(Y, reference.max_pool2d(X, kernel=kernel, stride=stride, padding=padding))


@pytest.mark.parametrize(
    ("dtype", "least"), [("int8", -128), ("uint8", 0), ("float16", -np.inf), ("int64", -(2**63))]
)
def test_padding_never_wins_and_alone_gives_the_least_value(execute, dtype, least):
    X = np.full((1, 1, 2, 2), least, dtype)
    X[0, 0, 0, 0] = 1
    Y = np.full((1, 1, 3, 3), 7, dtype)
    execute(max_pool2d, X, Y, kernel=2, stride=2, padding=2)
    np.testing.assert_array_equal(Y[0, 0], [[least] * 3, [least, 1, least], [least] * 3])


IMAGES = [(1, 1), (1, 9), (9, 1), (2, 2), (5, 19), (2, 3, 6, 7), (0, 4), (4, 0), (0, 3, 3)]


@pytest.mark.parametrize("shape", IMAGES)
def test_median_repeats_the_border(execute, shape):
    X = normal(shape)
    Y = np.full(shape, 7, "float32")
    execute(median3x3, X, Y, block=8)
    np.testing.assert_array_equal(Y, reference.median3x3(X))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", BFLOAT16, "float64"], ids=str)
def test_median_keeps_the_dtype(execute, dtype):
    X = (normal((7, 20)) * 50 + 100).astype(dtype)
    Y = np.zeros_like(X)
    execute(median3x3, X, Y, block=8)
    np.testing.assert_array_equal(Y.astype("float64"), reference.median3x3(X))


def test_one_nan_makes_the_medians_around_it_nan(execute):
    for at in np.ndindex(3, 3):
        X = normal((3, 3))
        X[at] = np.nan
        Y = np.full((3, 3), 7, "float32")
        execute(median3x3, X, Y)
        np.testing.assert_array_equal(np.isnan(Y), np.isnan(reference.median3x3(X)))
        assert np.isnan(Y[1, 1])


@pytest.mark.parametrize("shape", IMAGES)
def test_sobel_repeats_the_border(execute, shape):
    X = normal(shape)
    Y = np.full(shape, 7, "float32")
    execute(sobel, X, Y, block=8)
    np.testing.assert_allclose(Y, reference.sobel(X), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("dtype", "out", "tolerance"),
    [
        ("uint8", "float32", 1e-6),
        ("uint8", "float16", 1e-3),
        ("int32", "float32", 1e-6),
        ("float16", "float16", 2e-3),
        ("float64", "float64", 1e-14),
    ],
)
def test_sobel_of_other_dtypes(execute, dtype, out, tolerance):
    X = (np.abs(normal((6, 21))) * 20).astype(dtype)
    Y = np.zeros(X.shape, out)
    execute(sobel, X, Y)
    np.testing.assert_allclose(Y.astype("float64"), reference.sobel(X), rtol=tolerance)


def test_sobel_of_a_flat_image_is_zero_and_of_a_ramp_is_its_slope(execute):
    Y = np.full((5, 12), 7, "float32")
    execute(sobel, np.full((5, 12), 9, "float32"), Y)
    assert not Y.any()
    ramp = np.broadcast_to(np.arange(12, dtype="float32"), (5, 12)).copy()
    execute(sobel, ramp, Y)
    np.testing.assert_array_equal(Y[:, 1:-1], np.full((5, 10), 8))
    np.testing.assert_array_equal(Y[:, [0, -1]], np.full((5, 2), 4))


def spec(*shape, dtype="float32"):
    return tt.spec(shape, dtype)


@pytest.mark.parametrize(
    ("kernel", "arguments", "constants", "message"),
    [
        (conv2d, [spec(1, 2, 5, 5), spec(3, 4, 3, 3), spec(1, 3, 3, 3)], {}, "W has 4 channels, X has 2"),
        (conv2d, [spec(1, 2, 5, 5), spec(3, 2, 3, 3), spec(1, 3, 5, 5)], {}, r"Y has shape \(1, 3, 5, 5\)"),
        (conv2d, [spec(2, 5, 5), spec(3, 2, 3, 3), spec(1, 3, 3, 3)], {}, "must be"),
        (conv2d, [spec(1, 2, 5, 5), spec(3, 2, 0, 3), spec(1, 3, 6, 3)], {}, "empty window"),
        (
            conv2d,
            [spec(1, 2, 5, 5), spec(3, 2, 3, 3, dtype="float16"), spec(1, 3, 3, 3)],
            {},
            "cast one of them",
        ),
        (
            conv2d,
            [spec(1, 2, 5, 5), spec(3, 2, 3, 3), spec(1, 3, 3, 3)],
            {"stride": 0},
            "stride=0 is below 1",
        ),
        (
            conv2d,
            [spec(1, 2, 5, 5), spec(3, 2, 3, 3), spec(1, 3, 3, 3)],
            {"padding": (0, -1)},
            "is below 0",
        ),
        (
            conv2d,
            [spec(1, 2, 5, 5), spec(3, 2, 3, 3), spec(1, 3, 3, 3)],
            {"stride": (1, 1, 1)},
            "neither an int nor a pair",
        ),
        (
            depthwise_conv2d,
            [spec(1, 2, 5, 5), spec(3, 1, 3, 3), spec(1, 3, 3, 3)],
            {},
            "3 filters do not share 2 channels",
        ),
        (
            depthwise_conv2d,
            [spec(1, 2, 5, 5), spec(2, 2, 3, 3), spec(1, 2, 3, 3)],
            {},
            r"not \(F, 1, R, S\)",
        ),
        (
            max_pool2d,
            [spec(1, 2, 5, 5), spec(1, 2, 3, 3)],
            {"kernel": 2},
            r"pooled images have",
        ),
        (max_pool2d, [spec(1, 2, 5, 5), spec(1, 2, 2, 2, dtype="int8")], {"kernel": 2}, "Y is int8"),
        (max_pool2d, [spec(1, 2, 5, 5), spec(1, 2, 5, 5)], {"kernel": 0}, "kernel=0 is below 1"),
        (median3x3, [spec(4, 5), spec(5, 4)], {}, r"Y has \(5, 4\)"),
        (median3x3, [spec(4), spec(4)], {}, r"not \(..., H, W\)"),
        (median3x3, [spec(4, 5), spec(4, 5, dtype="float64")], {}, "Y is float64"),
        (sobel, [spec(4, 5), spec(4, 6)], {}, r"Y has \(4, 6\)"),
        (sobel, [spec(4, 5), spec(4, 5, dtype="uint8")], {}, "a magnitude is a float"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernel, arguments, constants, message):
    with pytest.raises(tt.ArgumentError, match=message) as caught:
        kernel.trace(*arguments, **constants)
    assert caught.value.span is not None
