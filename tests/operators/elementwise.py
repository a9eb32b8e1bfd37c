"""Operators on each element, conversions, creation and shape."""

import math

import numpy as np

from .operator import (
    BOOL,
    EVERY,
    FLOAT8,
    FLOATS,
    INTS,
    NUMBERS,
    SHAPE,
    STORED,
    Operator,
    boolean,
    numpy_dtype,
)


def binary(spelled, oracle, dtypes=NUMBERS, **options):
    return Operator(
        spelled,
        "y[...] = " + spelled.replace("x", "a").replace("z", "b"),
        oracle,
        dtypes,
        (SHAPE, SHAPE),
        **options,
    )


def _whole(fn):
    """A rounding to whole numbers, of which integers and truth values are some already."""
    return lambda x: fn(x) if x.dtype.kind == "f" else x


def _erf(x):
    return np.vectorize(math.erf, otypes=["f8"])(x)


ELEMENTWISE = (
    binary("x + z", np.add, EVERY),
    binary("x - z", np.subtract),
    binary("x * z", np.multiply, EVERY, small=True),
    binary("x / z", np.true_divide, FLOATS, nonzero=True),
    binary("x // z", np.floor_divide, NUMBERS, nonzero=True),
    binary("x % z", np.remainder, NUMBERS, nonzero=True),
    binary("x ** z", np.power, INTS + FLOATS, positive=True, small=True, tolerance=4.0),
    binary("x << z", np.left_shift, INTS, positive=True, small=True),
    binary("x >> z", np.right_shift, INTS, positive=True, small=True),
    binary("x & z", np.bitwise_and, BOOL + INTS),
    binary("x | z", np.bitwise_or, BOOL + INTS),
    binary("x ^ z", np.bitwise_xor, BOOL + INTS),
    Operator("~x", "y[...] = ~a", np.invert, BOOL + INTS),
    Operator("-x", "y[...] = -a", np.negative),
    binary("x == z", np.equal, EVERY, result=boolean),
    binary("x != z", np.not_equal, EVERY, result=boolean),
    binary("x < z", np.less, EVERY, result=boolean),
    binary("x <= z", np.less_equal, EVERY, result=boolean),
    binary("x > z", np.greater, EVERY, result=boolean),
    binary("x >= z", np.greater_equal, EVERY, result=boolean),
    Operator(
        "tt.where(c, x, z)",
        "y[...] = tt.where(a < b, a, b)",
        lambda x, z: np.where(x < z, x, z),
        EVERY,
        (SHAPE, SHAPE),
    ),
    Operator("tt.maximum(x, z)", "y[...] = tt.maximum(a, b)", np.maximum, EVERY, (SHAPE, SHAPE)),
    Operator("tt.minimum(x, z)", "y[...] = tt.minimum(a, b)", np.minimum, EVERY, (SHAPE, SHAPE)),
    Operator(
        "tt.power(x, z)",
        "y[...] = tt.power(a, b)",
        np.power,
        NUMBERS,
        (SHAPE, SHAPE),
        positive=True,
        small=True,
        tolerance=4.0,
    ),
    Operator(
        "tt.fma(x, z, w)",
        "y[...] = tt.fma(a, b, c)",
        lambda x, z, w: x * z + w,
        FLOATS,
        (SHAPE, SHAPE, SHAPE),
        positive=True,
        small=True,
        unsupported={"metal": ("bfloat16",)},
    ),
    Operator("tt.exp(x)", "y[...] = tt.exp(a)", np.exp, FLOATS, small=True),
    Operator("tt.exp2(x)", "y[...] = tt.exp2(a)", np.exp2, FLOATS, small=True),
    Operator("tt.log(x)", "y[...] = tt.log(a)", np.log, FLOATS, positive=True, tolerance=4.0),
    Operator("tt.log2(x)", "y[...] = tt.log2(a)", np.log2, FLOATS, positive=True, tolerance=4.0),
    Operator("tt.sqrt(x)", "y[...] = tt.sqrt(a)", np.sqrt, FLOATS, positive=True),
    Operator("tt.rsqrt(x)", "y[...] = tt.rsqrt(a)", lambda x: 1 / np.sqrt(x), FLOATS, positive=True),
    Operator("tt.sin(x)", "y[...] = tt.sin(a)", np.sin, FLOATS, tolerance=4.0),
    Operator("tt.cos(x)", "y[...] = tt.cos(a)", np.cos, FLOATS, tolerance=4.0),
    Operator("tt.tanh(x)", "y[...] = tt.tanh(a)", np.tanh, FLOATS),
    Operator("tt.erf(x)", "y[...] = tt.erf(a)", _erf, FLOATS),
    Operator("tt.sigmoid(x)", "y[...] = tt.sigmoid(a)", lambda x: 1 / (1 + np.exp(-x)), FLOATS),
    Operator("tt.abs(x)", "y[...] = tt.abs(a)", np.abs, EVERY),
    Operator("tt.floor(x)", "y[...] = tt.floor(a)", _whole(np.floor), EVERY),
    Operator("tt.ceil(x)", "y[...] = tt.ceil(a)", _whole(np.ceil), EVERY),
    Operator("tt.round(x)", "y[...] = tt.round(a)", _whole(np.round), EVERY),
    Operator("tt.isnan(x)", "y[...] = tt.isnan(a)", np.isnan, EVERY, result=boolean),
    Operator("tt.isinf(x)", "y[...] = tt.isinf(a)", np.isinf, EVERY, result=boolean),
    Operator(
        "tt.map(fn, x, z)",
        "y[...] = tt.map(lambda p, q: p if p < q else q + q, a, b)",
        lambda x, z: np.where(x < z, x, z + z),
        EVERY,
        (SHAPE, SHAPE),
        small=True,
    ),
)

CONVERSIONS = (
    Operator(
        'x.astype("float32")',
        'y[...] = a.astype("float32")',
        lambda x: x.astype("f4"),
        STORED,
        result=lambda _: "float32",
    ),
    Operator(
        'x.astype("int32")',
        'y[...] = a.astype("int32")',
        lambda x: x.astype("i4"),
        STORED,
        small=True,
        result=lambda _: "int32",
    ),
    Operator('x.astype("bool")', 'y[...] = a.astype("bool")', lambda x: x != 0, STORED, result=boolean),
    *(
        Operator(
            f'x.astype("{target}")',
            f'y[...] = a.astype("{target}")',
            lambda x, target=target: x.astype(numpy_dtype(target)),
            STORED,
            small=True,
            result=lambda _, target=target: target,
            tolerance=0.0,
        )
        for target in ("float16", "bfloat16", *FLOAT8)
    ),
)

CREATION = (
    Operator(
        "tt.zeros(shape, dtype)", 'y[...] = tt.zeros((5, 7), "{dtype}")', lambda: np.zeros(SHAPE), STORED, ()
    ),
    Operator(
        "tt.ones(shape, dtype)", 'y[...] = tt.ones((5, 7), "{dtype}")', lambda: np.ones(SHAPE), STORED, ()
    ),
    Operator(
        "tt.full(shape, value, dtype)",
        'y[...] = tt.full((5, 7), 1, "{dtype}")',
        lambda: np.full(SHAPE, 1),
        STORED,
        (),
    ),
    Operator("tt.iota(n, dtype)", 'y[...] = tt.iota(7, "{dtype}")', lambda: np.arange(7), STORED, ()),
    Operator("tt.eye(n, dtype)", 'y[...] = tt.eye(5, "{dtype}")', lambda: np.eye(5), STORED, ()),
)

SHAPES = (
    Operator("x[:, None]", "y[...] = a[:, None]", lambda x: x[:, None], STORED),
    Operator("x[tt.ds(i, n), j]", "y[...] = a[tt.ds(1, 3), 2]", lambda x: x[1:4, 2], STORED),
    Operator("x.T", "y[...] = a.T", np.transpose, STORED),
    Operator(
        "tt.transpose(x, axes)",
        "y[...] = tt.transpose(a, (2, 0, 1))",
        lambda x: x.transpose(2, 0, 1),
        STORED,
        ((2, 3, 5),),
    ),
    Operator("tt.reshape(x, shape)", "y[...] = tt.reshape(a, (7, 5))", lambda x: x.reshape(7, 5), STORED),
    Operator(
        "tt.broadcast_to(x, shape)",
        "y[...] = tt.broadcast_to(a, (3, 5, 7))",
        lambda x: np.broadcast_to(x, (3, 5, 7)),
        STORED,
    ),
    Operator(
        "tt.concat(tiles, axis)",
        "y[...] = tt.concat((a, b), axis=1)",
        lambda x, z: np.concatenate((x, z), 1),
        STORED,
        ((5, 7), (5, 2)),
    ),
    Operator(
        "tt.split(x, sections, axis)",
        "y[...] = tt.split(a, 3, axis=1)[1]",
        lambda x: x[:, 2:4],
        STORED,
        ((5, 6),),
    ),
    Operator(
        "tt.gather(x, index, axis, fill)",
        'y[...] = tt.gather(a, (tt.iota(4, "int32") * 3 - 1)[None, :], axis=1, fill=1)',
        lambda x: np.where(np.array([0, 1, 1, 0], bool), x[:, [0, 2, 5, 0]], x.dtype.type(1)),
        STORED,
    ),
)
