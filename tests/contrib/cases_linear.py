"""Matrix products, kernels on rows, attention, losses, neighbours."""

import numpy as np

from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import FLOATS, INTS, Case, normal, numpy_dtype, unwritten

SMALL_TILES = {"bm": 16, "bn": 16, "bk": 8}


def values(rng, shape, dtype):
    """Floats from the normal distribution, or integers from the whole range."""
    if dtype in FLOATS:
        return normal(rng, shape, dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def sum_dtype(dtype):
    """Dtype of a sum that loses nothing of what the kernels keep."""
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def product(a, b, c):
    def make(rng, dtype):
        return (values(rng, a, dtype), values(rng, b, dtype)), (unwritten(c, sum_dtype(dtype)),)

    return make


def linear_layer(rng, dtype):
    shapes = ((19, 37), (37, 21), (21,))
    return tuple(normal(rng, shape, dtype) for shape in shapes), (unwritten((19, 21), dtype),)


def quantized(rng, dtype):
    a, b = values(rng, (19, 300), dtype), values(rng, (300, 21), dtype)
    scales = rng.random(19).astype("f4"), rng.random(21).astype("f4")
    return (a, b, *scales), (unwritten((19, 21), "float32"),)


def arrays(*shapes):
    """Inputs of these shapes, the first of which is the output's, too."""

    def make(rng, dtype):
        return tuple(normal(rng, shape, dtype) for shape in shapes), (unwritten(shapes[0], dtype),)

    return make


def reduced(shape, result):
    def make(rng, dtype):
        return (values(rng, shape, dtype),), (unwritten(result, sum_dtype(dtype)),)

    return make


def transposed(rng, dtype):
    return (values(rng, (2, 19, 37), dtype),), (unwritten((2, 37, 19), dtype),)


def rotated(rng, dtype):
    angles = rng.uniform(0.0, 2.0 * np.pi, (11, 4))
    x = normal(rng, (2, 3, 11, 8), dtype)
    return (x, np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)), (unwritten(x.shape, dtype),)


def heads(rng, dtype, queries=21, keys=37):
    """Four query heads on two key heads."""
    q = normal(rng, (2, 4, queries, 8), dtype)
    k, v = normal(rng, (2, 2, keys, 8), dtype), normal(rng, (2, 2, keys, 5), dtype)
    return (q, k, v), (unwritten((2, 4, queries, 5), dtype),)


def masked(rng, dtype):
    inputs, outputs = heads(rng, dtype)
    return (*inputs, rng.random((2, 1, 21, 37)) < 0.5), outputs


def biased(rng, dtype):
    inputs, outputs = heads(rng, dtype)
    return (*inputs, normal(rng, (4, 1, 37), dtype)), outputs


def decoded(rng, dtype):
    q, k, v = (
        normal(rng, (3, 4, 8), dtype),
        normal(rng, (3, 2, 37, 8), dtype),
        normal(rng, (3, 2, 37, 5), dtype),
    )
    k[1, :, 20:] = v[1, :, 20:] = np.nan
    return (q, k, v, np.array([37, 20, 0], "int32")), (unwritten((3, 4, 5), dtype),)


def classified(rng, dtype):
    logits = normal(rng, (7, 37), dtype)
    return (logits, np.array([0, 36, -100, 5, 37, 17, 1])), (
        unwritten((7,), dtype),
        unwritten((7, 37), dtype),
    )


def scattered(rng, dtype):
    """Small whole numbers make distances exact and ties frequent."""
    queries, points = (rng.integers(0, 4, (n, 3)).astype(numpy_dtype(dtype)) for n in (13, 50))
    return (queries, points), (unwritten((13, 3), dtype), unwritten((13, 3), "int64"))


def three_nearest(*inputs):
    return reference.knn(*inputs, k=3)


def causal(*inputs):
    return reference.attention(*inputs, causal=True)


def activated(act):
    return Case(
        kernels.gemm_bias_act,
        act,
        linear_layer,
        lambda *inputs: reference.gemm_bias_act(*inputs, act=act),
        tolerance=4.0,
        constants={"act": act, **SMALL_TILES},
    )


CASES: tuple[Case, ...] = (
    Case(
        kernels.gemm,
        "ragged",
        product((19, 37), (37, 21), (19, 21)),
        reference.gemm,
        (*FLOATS, *INTS),
        tolerance=4.0,
        constants=SMALL_TILES,
    ),
    Case(
        kernels.batched_gemm,
        "broadcast",
        product((3, 1, 9, 7), (2, 7, 5), (3, 2, 9, 5)),
        reference.batched_gemm,
        (*FLOATS, "int8", "int32"),
        tolerance=4.0,
        constants=SMALL_TILES,
    ),
    *(activated(act) for act in ("none", "relu", "gelu", "gelu_tanh", "silu")),
    Case(
        kernels.gemm_int8,
        "ragged",
        quantized,
        reference.gemm_int8,
        ("int8",),
        constants={**SMALL_TILES, "bk": 64},
    ),
    Case(
        kernels.gemv,
        "ragged",
        product((19, 37), (37,), (19,)),
        reference.gemv,
        (*FLOATS, "int8", "int32"),
        tolerance=4.0,
        constants={"bk": 16},
    ),
    Case(kernels.softmax, "ragged", arrays((3, 2, 37)), reference.softmax, constants={"block": 16}),
    Case(kernels.log_softmax, "ragged", arrays((3, 2, 37)), reference.log_softmax, constants={"block": 16}),
    Case(
        kernels.layernorm,
        "ragged",
        arrays((3, 2, 37), (37,), (37,)),
        reference.layernorm,
        tolerance=4.0,
        constants={"block": 16},
    ),
    Case(
        kernels.residual_layernorm,
        "ragged",
        arrays((3, 2, 37), (3, 2, 37), (37,), (37,)),
        reference.residual_layernorm,
        tolerance=4.0,
        constants={"block": 16},
    ),
    Case(kernels.rmsnorm, "ragged", arrays((3, 2, 37), (37,)), reference.rmsnorm, constants={"block": 16}),
    Case(
        kernels.bias_gelu_residual,
        "ragged",
        arrays((3, 2, 37), (37,), (3, 2, 37)),
        reference.bias_gelu_residual,
        constants={"block": 16},
    ),
    Case(kernels.swiglu, "ragged", arrays((3, 2, 37), (3, 2, 37)), reference.swiglu, constants={"block": 16}),
    Case(kernels.rope, "ragged", rotated, reference.rope, constants={"block": 4}),
    Case(
        kernels.attention, "full", heads, reference.attention, tolerance=2.0, constants={"bq": 16, "bk": 16}
    ),
    Case(
        kernels.attention,
        "causal",
        heads,
        causal,
        tolerance=2.0,
        constants={"causal": True, "bq": 16, "bk": 16},
    ),
    Case(
        kernels.masked_attention,
        "bool",
        masked,
        reference.masked_attention,
        tolerance=2.0,
        constants={"bq": 16, "bk": 16},
    ),
    Case(
        kernels.masked_attention,
        "additive",
        biased,
        reference.masked_attention,
        tolerance=2.0,
        constants={"bq": 16, "bk": 16},
    ),
    Case(
        kernels.decode_attention,
        "ragged",
        decoded,
        reference.decode_attention,
        tolerance=2.0,
        constants={"bk": 16},
    ),
    Case(kernels.cross_entropy, "ragged", classified, reference.cross_entropy, constants={"block": 16}),
    Case(
        kernels.row_sum,
        "ragged",
        reduced((3, 2, 37), (3, 2)),
        reference.row_sum,
        (*FLOATS, *INTS),
        tolerance=4.0,
        constants={"block": 16},
    ),
    Case(
        kernels.col_sum,
        "ragged",
        reduced((2, 37, 19), (2, 19)),
        reference.col_sum,
        (*FLOATS, *INTS),
        tolerance=4.0,
        constants={"bm": 8, "bn": 16},
    ),
    Case(kernels.transpose, "ragged", transposed, reference.transpose, (*FLOATS, *INTS), tolerance=0.0),
    Case(kernels.knn, "ties", scattered, three_nearest, tolerance=0.0, constants={"bq": 8, "bp": 16}),
)
