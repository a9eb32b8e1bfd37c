"""Kernels for images, order, scans and data-dependent indices."""

from functools import partial

from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference_data as reference

from .case import FLOATS, Case, numpy_dtype, unwritten


def _numbers(rng, shape, dtype):
    """Small whole numbers: exact in every dtype, and often tied."""
    kind = numpy_dtype(dtype)
    return rng.integers(0 if kind.kind == "u" else -5, 6, shape).astype(kind)


def _sum_of(dtype):
    return {"int8": "int32", "uint8": "uint32"}.get(dtype, dtype)


def _convolution(rng, dtype):
    X, W = _numbers(rng, (2, 3, 7, 9), dtype), _numbers(rng, (5, 3, 3, 2), dtype)
    return (X, W), (unwritten((2, 5, 4, 10), _sum_of(dtype)),)


def _depthwise(rng, dtype):
    X, W = _numbers(rng, (2, 3, 7, 9), dtype), _numbers(rng, (6, 1, 3, 3), dtype)
    return (X, W), (unwritten((2, 6, 4, 5), _sum_of(dtype)),)


def _pooled(rng, dtype):
    return (_numbers(rng, (2, 3, 7, 9), dtype),), (unwritten((2, 3, 4, 5), dtype),)


def _image(rng, dtype):
    return (_numbers(rng, (2, 6, 21), dtype),), (unwritten((2, 6, 21), dtype),)


def _gradient(rng, dtype):
    out = dtype if dtype in FLOATS else "float32"
    return (_numbers(rng, (2, 6, 21), dtype),), (unwritten((2, 6, 21), out),)


def _sorted(rng, dtype):
    shape = (3, 21)
    return (_numbers(rng, shape, dtype),), (unwritten(shape, dtype), unwritten(shape, "int32"))


def _largest(rng, dtype):
    shape = (3, 5)
    return (_numbers(rng, (3, 37), dtype),), (unwritten(shape, dtype), unwritten(shape, "int32"))


def _positions(rng, dtype):
    return (_numbers(rng, (3, 37), dtype),), (unwritten((3,), "int32"),)


def _running_sums(rng, dtype):
    return (_numbers(rng, (3, 37), dtype),), (unwritten((3, 37), _sum_of(dtype)),)


def _running_maxima(rng, dtype):
    return (_numbers(rng, (3, 37), dtype),), (unwritten((3, 37), dtype),)


def _segments(rng, dtype):
    X, segments = _numbers(rng, (21, 37), dtype), rng.integers(-1, 6, 21).astype("int32")
    return (X, segments), (unwritten((5, 37), _sum_of(dtype)),)


def _counted(rng, dtype):
    return (rng.integers(0, 20, (3, 50)).astype(dtype),), (unwritten((13,), "int32"),)


def _looked_up(rng, dtype):
    ids, table = rng.integers(-1, 8, (3, 4)).astype("int32"), _numbers(rng, (7, 37), dtype)
    return (ids, table), (unwritten((3, 4, 37), dtype),)


_STRIDED = {"stride": (2, 1), "padding": (1, 1)}
_HALVED = {"stride": 2, "padding": 1}
_WINDOW = {"kernel": 3, **_HALVED}

CASES: tuple[Case, ...] = (
    Case(
        kernels.conv2d,
        "strided",
        _convolution,
        partial(reference.conv2d, **_STRIDED),
        (*FLOATS, "int8"),
        constants={**_STRIDED, "bf": 4, "bc": 2, "bh": 2, "bw": 8},
    ),
    Case(
        kernels.depthwise_conv2d,
        "two filters a channel",
        _depthwise,
        partial(reference.depthwise_conv2d, **_HALVED),
        ("float16", "float32", "int8"),
        constants={**_HALVED, "bh": 3, "bw": 4},
    ),
    Case(
        kernels.max_pool2d,
        "padded",
        _pooled,
        partial(reference.max_pool2d, **_WINDOW),
        ("bfloat16", "float32", "uint8"),
        tolerance=0.0,
        constants={**_WINDOW, "bh": 3, "bw": 4},
    ),
    Case(
        kernels.sobel,
        "ragged",
        _gradient,
        reference.sobel,
        ("uint8", "float16", "float32", "float64"),
        constants={"block": 8},
    ),
    Case(
        kernels.median3x3,
        "ragged",
        _image,
        reference.median3x3,
        ("uint8", "bfloat16", "float32"),
        tolerance=0.0,
        constants={"block": 8},
    ),
    Case(kernels.sort, "ties", _sorted, reference.sort, ("float16", "float32", "int8"), tolerance=0.0),
    Case(
        kernels.topk,
        "ties",
        _largest,
        partial(reference.topk, k=5),
        ("bfloat16", "float32", "int64"),
        tolerance=0.0,
        constants={"k": 5, "block": 8},
    ),
    Case(
        kernels.argmax,
        "ties",
        _positions,
        reference.argmax,
        ("float16", "float32", "uint8"),
        constants={"lanes": 8},
    ),
    Case(
        kernels.cumsum,
        "ragged",
        _running_sums,
        reference.cumsum,
        ("float16", "float32", "int8"),
        constants={"block": 8},
    ),
    Case(
        kernels.cummax,
        "ragged",
        _running_maxima,
        reference.cummax,
        ("bfloat16", "float32", "uint8"),
        tolerance=0.0,
        constants={"block": 8},
    ),
    Case(
        kernels.segment_sum,
        "unsorted",
        _segments,
        partial(reference.segment_sum, count=5),
        ("bfloat16", "float32", "int32"),
        constants={"block": 8},
    ),
    Case(
        kernels.histogram,
        "out of range",
        _counted,
        partial(reference.histogram, bins=13),
        ("uint8", "int32", "int64"),
        constants={"block": 16},
    ),
    Case(
        kernels.embedding,
        "unknown ids",
        _looked_up,
        reference.embedding,
        ("float16", "float32", "int8"),
        tolerance=0.0,
        constants={"block": 16},
    ),
)
