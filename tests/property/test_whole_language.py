"""Random programs over the whole language mean the same in the interpreter, on the CPU and in OpenCL.

A kernel is drawn as a recipe (a tuple of steps) that ordinary Python reads while the kernel is captured. All
data are integers, so that every difference is exact, and wrapping keeps every law that a merge here claims.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile as tt

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POLICIES = ("ordered_tree", "fold_left", "fold_right")

#: Composition of the maps ``t -> a t + b``: associative, not commutative.
AFFINE = tt.Merge(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), identity=(1, 0))


def pieces(x, extra):
    """The parts of a tile on the two sides of a cut, swapped."""
    axis = extra % 2
    cut = extra // 2 % (x.shape[axis] + 1)
    low, high = tt.split(x, [cut], axis=axis)
    return tt.concat((high, low), axis=axis)


def patched(x, y, extra):
    """A tile that the instances of a region write in parts, the last row and column excepted."""
    rows, columns = x.shape
    result = x
    if extra % 3 == 0:
        for r in tt.parallel(max(rows - 1, 0)):
            result = tt.update(result, (r, tt.ds(0, columns)), y[r, :] + x[r + 1, :])
    elif extra % 3 == 1:
        for c in tt.parallel(tt.cdiv(columns, 2)):
            # A part that sticks out is dropped; the value read is the one from before the region.
            result = tt.update(
                result, (tt.ds(0, rows), tt.ds(2 * c, 2)), result[:, tt.ds(2 * c + 1, 2)] - y[:, tt.ds(0, 2)]
            )
    else:
        for r in tt.parallel(rows, 2):
            result = tt.update(result, (r[0], tt.ds(0, columns)), y[r[0], :] * (r[1] + 1), combine=tt.add)
    return result


def remembered(x, y, extra):
    """A tile that has been through explicit memory in one of several layouts."""
    rows, columns = x.shape
    layouts = (
        None,
        (1, max(rows, 1)),
        lambda i, j: i * (columns + 3) + (j + i) % max(columns, 1),
        lambda i, j: (rows - 1 - i) * columns + j,
    )
    memory = tt.alloc((rows, columns), x.dtype, layout=layouts[extra % 4])
    memory[...] = x
    memory[tt.ds(1, rows), :] = y
    memory.at[:, tt.ds(-1, columns)].store(x, mask=x < y)
    return memory[...]


def counted(x, y):
    """A tile plus what atomics of several instances have added up."""
    total = tt.alloc((2,), x.dtype)
    total[...] = tt.zeros((2,), x.dtype)
    for r in tt.parallel(x.shape[0]):
        tt.atomic_add(total.at[0], y[r, 0])
        tt.atomic_max(total.at[1], x[r, 0])
    return x + total[0] - total[1]


def apply(step, tiles, dtype):
    """One more tile from the tiles so far; `a` and `b` count from the newest."""
    kind, a, b, extra = step
    x, y = tiles[-1 - a % len(tiles)], tiles[-1 - b % len(tiles)]
    axis = extra % 2
    match kind:
        case "pieces":
            return pieces(x, extra)
        case "gather":
            position = (y % 11).astype("int32") - 2
            return tt.gather(x, position, axis=axis, fill=extra % 100)
        case "einsum":
            spec = ("ij,kj,kl->il", "ij,ij->ij", "ij,kl->il", "ij,ij,kj->kj")[extra % 4]
            return tt.einsum(spec, *((x, y, x)[: spec.count(",") + 1])).astype(dtype)
        case "sums":
            return tt.cumsum(x, axis=axis).astype(dtype) + tt.cummax(y, axis=1 - axis)
        case "scan":
            seed = (3, 1) if extra // 4 % 2 else None
            f, g = tt.scan((x, y), axis, AFFINE, exclusive=bool(extra // 2 % 2), seed=seed)
            return f - g
        case "fold":
            where = x <= y if extra // 2 % 2 else None
            policy = POLICIES[extra // 4 % 3]
            f, g = tt.reduce_tile((x, y), axis, AFFINE, policy=policy, where=where)
            return x + (f * 3 + g)[:, None] if axis else x + f * 3 + g
        case "best":
            places = tt.broadcast_to(tt.iota(x.shape[1], "int32"), x.shape)
            value, place = tt.reduce_tile((x, places), 1, tt.argmax_pair)
            return x + (value + place.astype(dtype))[:, None]
        case "map":
            return tt.map(lambda p, q: p - q if p < q else q * 2, x, y)
        case "patched":
            return patched(x, y, extra)
        case "memory":
            return remembered(x, y, extra)
        case "atomics":
            return counted(x, y)
    raise AssertionError(kind)


@tt.kernel
def whole_language(X, Y, *, tile, steps, carried):
    bm, bn = tile
    dtype = X.dtype
    for i, j in tt.parallel(tt.cdiv(X.shape[0], bm), tt.cdiv(X.shape[1], bn)):
        x = X[tt.ds(i * bm, bm), tt.ds(j * bn, bn)]
        tiles = [x, x * 3 + 1]
        for step in steps:
            tiles.append(apply(step, tiles, dtype))
        s = tiles[-1]
        for _ in tt.serial(2):
            if tt.any(s > x):
                for step in carried:
                    s = apply(step, [x, s], dtype)
        Y[tt.ds(i * bm, bm), tt.ds(j * bn, bn)] = s


KINDS = (
    *("pieces", "gather", "einsum", "sums", "scan", "fold", "best", "map", "patched", "memory", "atomics"),
)
step = st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))


@st.composite
def programs(draw):
    """A program, an input and an output of its shape."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 23)))
    dtype = np.dtype(draw(st.sampled_from(INTEGERS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if draw(st.booleans()):
        x = (x % 7).astype(dtype)
    constants = {
        "tile": draw(st.tuples(st.integers(1, 5), st.sampled_from([1, 3, 8, 17]))),
        "steps": draw(st.lists(step, min_size=1, max_size=3).map(tuple)),
        "carried": draw(st.lists(step, max_size=1).map(tuple)),
    }
    y = np.full(shape, 7, dtype)
    return whole_language.trace(x, y, **constants), x, y


@given(programs(), st.integers(0, 99))
@settings(max_examples=40)
def test_text_orders_and_debugging_keep_the_meaning(drawn, seed):
    program, x, y = drawn
    assert tt.parse(str(program)) == program
    expected = y.copy()
    tt.interpret(program, x, expected)
    for options in (
        {"order": seed, "reduction": seed},
        {"order": "reverse", "reduction": "reverse"},
        {"debug": True},
    ):
        other = y.copy()
        tt.interpret(program, x, other, **options)
        np.testing.assert_array_equal(other, expected, err_msg=str(options))


def check_against_the_meaning(target, drawn):
    program, x, y = drawn
    expected = y.copy()
    tt.interpret(program, x, expected)
    tt.build(program, target)(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("target", ["llvm", "opencl"])
@given(drawn=programs())
@settings(max_examples=25)
def test_generated_code_agrees_with_the_meaning(target, drawn):
    check_against_the_meaning(target, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["llvm", "opencl"])
@given(drawn=programs())
@settings(max_examples=300)
def test_generated_code_of_many_programs_agrees_with_the_meaning(target, drawn):
    check_against_the_meaning(target, drawn)


@pytest.mark.parametrize("target", ["interpreter", "llvm", "opencl"])
def test_an_order_that_a_merge_does_not_admit_is_refused(target):
    """The twin of the properties: affine maps do not commute, so nothing takes a tree that permutes them."""

    def run(kernel, *arrays):
        program = kernel.trace(*arrays)
        if target == "interpreter":
            tt.interpret(program, *arrays)
        else:
            tt.build(program, target)(*arrays)

    @tt.kernel
    def permuted(X, Y):
        for _ in tt.parallel(1):
            f, g = tt.reduce_tile((X[:, :], X[:, :]), 1, AFFINE, policy="unordered_tree")
            Y[:] = f + g

    x, y = np.ones((3, 4), "i4"), np.zeros(3, "i4")
    with pytest.raises(tt.IllegalError, match="ordered_tree"):
        run(permuted, x, y)
