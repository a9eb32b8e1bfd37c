"""Random small programs: the text round trip, the freedom of orders, generated code against the meaning.

A kernel is drawn as a recipe (a tuple of steps) that ordinary Python reads while the kernel is captured, so
one kernel below stands for all of them.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile as tt

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")


def apply(step, tiles, dtype):
    """One more tile from the tiles so far; `a` and `b` count from the newest."""
    kind, a, b, extra = step
    x, y = tiles[-1 - a % len(tiles)], tiles[-1 - b % len(tiles)]
    match kind:
        case "add":
            return x + y
        case "subtract":
            return x - y
        case "multiply":
            return x * y
        case "divide":
            return x // y
        case "remainder":
            return x % y
        case "extremum":
            return tt.maximum(x, y) if extra % 2 else tt.minimum(x, y)
        case "bits":
            return (x & y, x | y, x ^ y, ~x)[extra % 4]
        case "shift":
            return x << y if extra % 2 else x >> y
        case "where":
            return tt.where((x < y, x <= y, x == y, x != y)[extra % 4], y, x)
        case "scalar":
            return x + extra % 100
        case "reduce":
            fn = (tt.sum, tt.max, tt.min, tt.prod)[extra % 4]
            policy = POLICIES[extra // 4 % 4]
            return x + fn(y, axis=extra // 16 % 2, keepdims=True, dtype=None, policy=policy).astype(dtype)
        case "argument":
            return x + tt.argmax(y, axis=extra % 2, keepdims=True).astype(dtype)
        case "round trip":
            return x.astype(INTEGERS[extra % 8]).astype(dtype)
        case "transpose":
            return tt.transpose(tt.reshape(x, x.shape[::-1]))
        case "product":
            ordered = tt.MmaPolicy(ordered=bool(extra % 2))
            return tt.mma(tt.matmul(x, tt.transpose(y), dtype=dtype), y, x, policy=ordered)
    raise AssertionError(kind)


@tt.kernel
def random_program(X, Y, *, tile, steps, region, offsets, fill):
    rows, columns = X.shape
    bm, bn = tile
    dtype = X.dtype
    for i, j in tt.parallel(tt.cdiv(rows, bm), tt.cdiv(columns, bn)):
        x = X.at[tt.ds(i * bm + offsets[0], bm), tt.ds(j * bn + offsets[1], bn)].load(fill=fill)
        tiles = [x]
        for step in steps[0]:
            tiles.append(apply(step, tiles, dtype))
        s, t = tiles[-1], x
        kind, extent, policy = region
        if kind == "reduce":
            for r in tt.reduce(extent, policy=policy):
                s = s + X[tt.ds(i * bm, bm), tt.ds(r * 2, bn)]
        elif kind == "fold":
            for r in tt.reduce(extent, policy="fold_right" if policy == "fold_right" else "fold_left"):
                s = s * 3 - X[tt.ds(r, bm), tt.ds(j * bn, bn)]
        elif kind == "swap":
            for r in tt.serial(extent, where=lambda r: r != 1):
                s, t = t + r, s
        elif kind == "branch":
            for _ in tt.pipeline(extent):
                if tt.sum(s) > tt.max(t):
                    s = s - t
                else:
                    t = t + 1
        last = [t, s]
        for step in steps[1]:
            last.append(apply(step, last, dtype))
        Y[tt.ds(i * bm, bm), tt.ds(j * bn, bn)] = last[-1]


KINDS = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "extremum",
    "bits",
    "shift",
    "where",
    "scalar",
    "reduce",
    "argument",
    "product",
    "transpose",
    "round trip",
)
step = st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 3), st.integers(0, 63))
steps = st.lists(step, max_size=4).map(tuple)


@st.composite
def programs(draw, dtypes=INTEGERS):
    """A program, an input and an output of its shape."""
    shape = draw(st.tuples(st.integers(0, 9), st.integers(0, 37)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    info = np.iinfo(dtype)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if draw(st.booleans()):
        x = (x % 7).astype(dtype)
    constants = {
        "tile": draw(st.tuples(st.integers(1, 5), st.sampled_from([1, 3, 8, 16, 19]))),
        "steps": (draw(steps), draw(steps)),
        "region": draw(
            st.tuples(
                st.sampled_from(["none", "reduce", "fold", "swap", "branch"]),
                st.integers(0, 4),
                st.sampled_from(POLICIES),
            )
        ),
        "offsets": draw(st.tuples(st.integers(-3, 3), st.integers(-20, 20))),
        "fill": draw(st.integers(0, 9)),
    }
    y = np.full(shape, 7, dtype)
    return random_program.trace(x, y, **constants), x, y


@given(programs())
@settings(max_examples=60)
def test_the_text_of_a_program_parses_back_to_it(drawn):
    program, _, _ = drawn
    again = tt.parse(str(program))
    assert again == program
    assert str(again) == str(program)
    assert again.structural_hash() == program.structural_hash()


@given(programs(), st.integers(0, 99), st.integers(0, 99))
@settings(max_examples=60)
def test_admitted_orders_agree(drawn, order, reduction):
    program, x, y = drawn
    expected = y.copy()
    tt.interpret(program, x, expected)
    for kwargs in (
        {"order": "reverse"},
        {"order": order},
        {"reduction": "reverse"},
        {"order": order, "reduction": reduction},
    ):
        other = y.copy()
        tt.interpret(program, x, other, **kwargs)
        np.testing.assert_array_equal(other, expected)
    again = y.copy()
    tt.interpret(program, x, again, debug=True)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("target", ["llvm", "opencl"])
@given(drawn=programs())
@settings(max_examples=40)
def test_generated_code_agrees_with_the_meaning(target, drawn):
    program, x, y = drawn
    expected = y.copy()
    tt.interpret(program, x, expected)
    tt.build(program, target)(x, y)
    np.testing.assert_array_equal(y, expected)


@tt.kernel
def order_matters(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[0] = X[i]


def test_an_order_that_matters_shows():
    """The twin of the property above: a racy program gives different results; debugging names the race."""
    x = np.arange(4, dtype="i4")
    program = order_matters.trace(x, np.zeros(1, "i4"))
    results = set()
    for order in ("source", "reverse"):
        y = np.zeros(1, "i4")
        tt.interpret(program, x, y, order=order)
        results.add(int(y[0]))
    assert results == {0, 3}
    with pytest.raises(tt.IllegalError, match=r"Y\[0\]"):
        tt.interpret(program, x, np.zeros(1, "i4"), debug=True)


FLOAT_STEPS = ("exp", "tanh", "sqrt", "sigmoid", "maximum", "scale", "normalize", "sum")


@tt.kernel
def random_float_program(X, Y, *, tile, steps):
    for i in tt.parallel(tt.cdiv(X.shape[0], tile)):
        x = X[tt.ds(i * tile, tile), :]
        for name in steps:
            match name:
                case "exp" | "tanh" | "sigmoid":
                    x = getattr(tt, name)(tt.minimum(x, 3.0))
                case "sqrt":
                    x = tt.sqrt(tt.abs(x))
                case "maximum":
                    x = tt.maximum(x, -x * 0.5)
                case "scale":
                    x = x * 1.25 - 0.5
                case "normalize":
                    x = x - tt.mean(x, axis=1, keepdims=True)
                case "sum":
                    x = x + tt.sum(x * 0.03, axis=1, keepdims=True)
        Y[tt.ds(i * tile, tile), :] = x


@pytest.mark.parametrize("target", ["llvm", "opencl"])
@given(
    steps=st.lists(st.sampled_from(FLOAT_STEPS), min_size=1, max_size=4).map(tuple),
    shape=st.tuples(st.integers(1, 7), st.integers(1, 40)),
    tile=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_generated_code_of_float_programs_agrees_with_the_meaning(target, steps, shape, tile, seed):
    x = np.random.default_rng(seed).standard_normal(shape).astype("f4")
    expected, y = np.zeros_like(x), np.zeros_like(x)
    program = random_float_program.trace(x, y, tile=tile, steps=steps)
    tt.interpret(program, x, expected)
    tt.build(program, target)(x, y)
    np.testing.assert_allclose(y, expected, rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(expected).max())))
