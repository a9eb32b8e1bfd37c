"""Contractions, reductions and scans."""

import numpy as np

from .operator import (
    EVERY,
    FLOAT8,
    INTS,
    NUMBERS,
    SHAPE,
    Operator,
    boolean,
    mean_dtype,
    sum_dtype,
)


def _welford(x):
    return np.stack(
        [np.full(len(x), x.shape[1], "f8"), x.mean(1), ((x - x.mean(1, keepdims=True)) ** 2).sum(1)]
    )


CONTRACTIONS = (
    Operator(
        "tt.mma(x, z, acc)",
        "y[...] = tt.mma(a, b, c)",
        lambda x, z, w: w + x @ z,
        NUMBERS,
        ((5, 7), (7, 3), (5, 3)),
        small=True,
        tolerance=8.0,
    ),
    Operator(
        "tt.mma(x, z, acc) in int32",
        "y[...] = tt.mma(a, b, tt.zeros((5, 3), 'int32'))",
        lambda x, z: x.astype("i4") @ z.astype("i4"),
        ("bool", "int8", "int16", "int32", "uint8", "uint16"),
        ((5, 7), (7, 3)),
        small=True,
        result=lambda _: "int32",
    ),
    Operator(
        "tt.mma(x, z, acc) in float32",
        "y[...] = tt.mma(a, b, tt.zeros((5, 3), 'float32'))",
        lambda x, z: x.astype("f8") @ z.astype("f8"),
        ("bool", "int8", "int16", "uint8", "uint16", "float16", "bfloat16", "float32", *FLOAT8),
        ((5, 7), (7, 3)),
        positive=True,
        small=True,
        result=lambda _: "float32",
        tolerance=8.0,
    ),
    Operator(
        "tt.mma(..., policy=tt.MmaPolicy(ordered=True))",
        "y[...] = tt.mma(a, b, c, policy=tt.MmaPolicy(ordered=True))",
        lambda x, z, w: w + x @ z,
        NUMBERS,
        ((2, 5, 7), (7, 3), (2, 5, 3)),
        small=True,
        tolerance=8.0,
    ),
    Operator(
        "tt.matmul(x, z)",
        "y[...] = tt.matmul(a, b)",
        np.matmul,
        (*NUMBERS, *FLOAT8),
        ((2, 5, 7), (2, 7, 3)),
        small=True,
        positive=True,
        result=lambda d: {"int8": "int32", "int16": "int32"}.get(d, d),
        tolerance=8.0,
    ),
    Operator(
        'tt.einsum("bik,bkj->bij", x, z)',
        'y[...] = tt.einsum("bik,bkj->bij", a, b)',
        np.matmul,
        (*NUMBERS, *FLOAT8),
        ((2, 5, 7), (2, 7, 3)),
        small=True,
        positive=True,
        result=lambda d: {"int8": "int32", "int16": "int32"}.get(d, d),
        tolerance=8.0,
    ),
)

REDUCTIONS = (
    Operator(
        "tt.sum(x, axis)",
        "y[...] = tt.sum(a, axis=1)",
        lambda x: x.sum(1),
        EVERY,
        positive=True,
        small=True,
        result=sum_dtype,
        tolerance=4.0,
    ),
    Operator(
        "tt.sum(x, axis, where=m)",
        "y[...] = tt.sum(a, axis=0, where=a > b)",
        lambda x, z: np.where(x > z, x, 0).sum(0),
        EVERY,
        (SHAPE, SHAPE),
        positive=True,
        small=True,
        result=sum_dtype,
        tolerance=4.0,
    ),
    Operator(
        "tt.prod(x, axis)",
        "y[...] = tt.prod(a, axis=0)",
        lambda x: x.prod(0),
        EVERY,
        positive=True,
        small=True,
        result=sum_dtype,
        tolerance=8.0,
    ),
    Operator("tt.max(x, axis)", "y[...] = tt.max(a, axis=1)", lambda x: x.max(1), EVERY),
    Operator("tt.min(x, axis)", "y[...] = tt.min(a, axis=1)", lambda x: x.min(1), EVERY),
    Operator(
        "tt.any(x, axis)", "y[...] = tt.any(a, axis=1)", lambda x: (x != 0).any(1), EVERY, result=boolean
    ),
    Operator(
        "tt.all(x, axis)", "y[...] = tt.all(a, axis=1)", lambda x: (x != 0).all(1), EVERY, result=boolean
    ),
    Operator(
        "tt.mean(x, axis)",
        "y[...] = tt.mean(a, axis=1)",
        lambda x: x.astype("f8").mean(1),
        EVERY,
        positive=True,
        small=True,
        result=mean_dtype,
        tolerance=4.0,
        unsupported={"metal": INTS},
    ),
    Operator(
        "tt.argmax(x, axis)",
        "y[...] = tt.argmax(a, axis=1)",
        lambda x: x.argmax(1),
        EVERY,
        result=lambda _: "int32",
    ),
    Operator(
        "tt.argmin(x, axis)",
        "y[...] = tt.argmin(a, axis=0)",
        lambda x: x.argmin(0),
        EVERY,
        result=lambda _: "int32",
    ),
    Operator(
        "tt.reduce_tile(x, axis, merge)",
        "m = tt.Merge(lambda p, q: p * q, identity=1, commutative=True)\ny[...] = tt.reduce_tile(a, 0, m)",
        lambda x: x.prod(0, dtype=x.dtype),
        EVERY,
        positive=True,
        small=True,
        tolerance=8.0,
    ),
    Operator(
        "tt.reduce_tile(x, axis, tt.welford)",
        "n, m, s = tt.reduce_tile(a, 1, tt.welford); y[0, :] = n; y[1, :] = m; y[2, :] = s",
        _welford,
        ("float32", "float64"),
        tolerance=16.0,
    ),
    Operator(
        "tt.reduce_tile(x, axis, tt.logsumexp)",
        "m, s = tt.reduce_tile(a, 1, tt.logsumexp); y[...] = m + tt.log(s)",
        lambda x: np.log(np.exp(x).sum(1)),
        ("float32", "float64"),
        small=True,
        tolerance=8.0,
    ),
    Operator(
        "tt.reduce_tile((x, i), axis, tt.argmax_pair)",
        'n = tt.broadcast_to(tt.iota(7, "int32"), (5, 7))\n'
        "v, i = tt.reduce_tile((a, n), 1, tt.argmax_pair)\ny[...] = i",
        lambda x: x.argmax(1),
        EVERY,
        result=lambda _: "int32",
    ),
    Operator(
        "tt.scan(x, axis, merge)",
        "y[...] = tt.scan(a, 1, tt.Merge(lambda p, q: p + q, identity=0))",
        lambda x: x.cumsum(1, dtype=x.dtype),
        EVERY,
        positive=True,
        small=True,
        tolerance=8.0,
    ),
    Operator(
        "tt.cumsum(x, axis)",
        "y[...] = tt.cumsum(a, axis=1)",
        lambda x: x.cumsum(1),
        EVERY,
        positive=True,
        small=True,
        result=sum_dtype,
        tolerance=4.0,
    ),
    Operator(
        "tt.cummax(x, axis)", "y[...] = tt.cummax(a, axis=0)", lambda x: np.maximum.accumulate(x, 0), EVERY
    ),
)
