"""Reductions and scans with merges on a CPU: known or by the user, states, seeds, masks, empty fibres."""

import numpy as np
import pytest
import tvm_ffi
from tvm.tirx import BufferStore

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.functions import identity_of
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Broadcast
from tvm_tile.ir.regions import Merge, Reduce
from tvm_tile.ir.values import Memory, TileType

PIPELINES = ("tirx", "default")
POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")
RNG = np.random.default_rng(6)
UFUNC = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def known(a, fns, types):
    count = len(types)
    return Merge(
        combine=a.function(
            [*types, *types], lambda *v: [a.apply(fn, v[k], v[count + k]) for k, fn in enumerate(fns)]
        ),
        identity=a.function(
            [],
            lambda: [
                a.full(t.shape, identity_of(fn, t.dtype), t.dtype) for fn, t in zip(fns, types, strict=True)
            ],
        ),
        commutative=True,
        builtin=tuple(fns),
    )


def affine(a, kept, lift=False):
    """Composition of maps ``x -> p * x + q``, left first, on wrapping integers: it does not commute."""
    t = TileType(kept, "int64")

    def combine(p, q, r, s):
        return a.apply("multiply", r, p), a.apply("add", a.apply("multiply", r, q), s)

    return Merge(
        combine=a.function([t] * 4, combine),
        identity=a.function([], lambda: (a.full(kept, 1, "int64"), a.full(kept, 0, "int64"))),
        lift=a.function([t], lambda x: (x, a.apply("add", x, a.full(kept, 1, "int64")))) if lift else None,
    )


def compose(p, q, r, s):
    return r * p, r * q + s


def integers(*shape):
    return RNG.integers(-9, 9, shape).astype("int64")


@pytest.mark.parametrize(("policy", "fn"), [*zip(POLICIES, UFUNC, strict=True), ("fold_left", "add")])
@pytest.mark.parametrize(
    ("shape", "axes"), [((6, 35), (1,)), ((6, 35), (0,)), ((3, 5, 7), (0, 2)), ((4, 0), (1,))]
)
@pytest.mark.parametrize("seeded", [False, True])
def test_known_merges_reduce(compiled, assembler, fn, policy, shape, axes, seeded):
    a = assembler
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    A, M, S, C = (Memory("A", shape, "float32"), Memory("M", shape, "bool"), Memory("S", kept, "float32"),
                  Memory("C", kept, "float32"))  # fmt: skip
    merge = known(a, [fn], [TileType(kept, "float32")])
    seeds = (a.load(S),) if seeded else ()
    out = a.value(kept, "float32")
    a.emit(MergeReduce((out,), (a.load(A),), axes, merge, policy, seeds, a.load(M)))
    a.store(out, C)
    x, m, s = (
        RNG.standard_normal(shape).astype("float32"),
        RNG.random(shape) > 0.3,
        RNG.standard_normal(kept).astype("float32"),
    )
    found = np.zeros(kept, "float32")
    compiled(a.program(A, M, S, C))(x, m, s, found)
    unit = identity_of(fn, "float32")
    total = UFUNC[fn].reduce(np.where(m, x.astype("float64"), unit), axis=axes, initial=unit)
    expected = UFUNC[fn](s, total) if seeded else total
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("policy", "pipeline"), [("ordered_tree", "tirx"), ("fold_left", "default")])
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("lift", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((5, 19), (1,)), ((5, 19), (0,)), ((3, 2, 4), (2, 0)), ((7,), (0,)), ((3, 0), (1,)), ((0, 3), (1,))],
)
def test_a_merge_of_two_states_keeps_the_order(
    compiled, assembler, policy, seeded, lift, shape, axes, pipeline
):
    a = assembler
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    memories = [Memory(name, shape, "int64") for name in ("P", "Q")]
    mask, S = Memory("M", shape, "bool"), Memory("S", (2, *kept), "int64")
    outs = [Memory(name, kept, "int64") for name in ("C", "D")]
    operands = tuple(a.load(m) for m in memories[: 1 if lift else 2])
    results = (a.value(kept, "int64"), a.value(kept, "int64"))
    seeds = (a.load(S, 0), a.load(S, 1)) if seeded else ()
    a.emit(MergeReduce(results, operands, axes, affine(a, kept, lift), policy, seeds, a.load(mask)))
    for value, memory in zip(results, outs, strict=True):
        a.store(value, memory)
    p, q, s = integers(*shape), integers(*shape), integers(2, *kept)
    m = RNG.random(shape) > 0.3
    found = [np.zeros(kept, "int64"), np.zeros(kept, "int64")]
    compiled(a.program(*memories, mask, S, *outs), pipeline)(p, q, m, s, *found)
    if lift:
        q = p + 1
    first, second = (
        (np.array(s[0]), np.array(s[1])) if seeded else (np.ones(kept, "int64"), np.zeros(kept, "int64"))
    )
    length = int(np.prod([shape[axis] for axis in axes]))
    moved = [np.moveaxis(x, sorted(axes), range(len(axes))).reshape(length, *kept) for x in (p, q, m)]
    with np.errstate(over="ignore"):
        for r, t, keep in zip(*moved, strict=True):
            new = compose(first, second, r, t)
            first, second = np.where(keep, new[0], first), np.where(keep, new[1], second)
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1], second)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    ("dtype", "pipeline"), [("float32", "tirx"), ("int32", "default"), ("float16", "tirx")]
)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5, 37), 1), ((5, 37), 0), ((9,), 0), ((2, 3, 4), 1), ((3, 0), 1), ((0, 3), 1), ((3, 1), 1)],
)
def test_known_scans_give_all_prefixes(compiled, assembler, exclusive, seeded, dtype, shape, axis, pipeline):
    a = assembler
    kept = (*shape[:axis], *shape[axis + 1 :])
    types = [TileType(kept, dtype)] * 2
    A, S, C, D = (Memory(n, s, dtype) for n, s in (("A", shape), ("S", kept), ("C", shape), ("D", shape)))
    x, seed = a.load(A), a.load(S)
    outs = (a.value(shape, dtype), a.value(shape, dtype))
    merge = known(a, ["add", "maximum"], types)
    a.emit(Scan(outs, (x, x), axis, merge, exclusive, "fold_left", (seed, seed) if seeded else ()))
    for value, memory in zip(outs, (C, D), strict=True):
        a.store(value, memory)
    data = RNG.integers(-9, 9, shape).astype(dtype)
    start = RNG.integers(-9, 9, kept).astype(dtype)
    found = [np.zeros(shape, dtype), np.zeros(shape, dtype)]
    compiled(a.program(A, S, C, D), pipeline)(data, start, *found)
    for fn, got in zip(("add", "maximum"), found, strict=True):
        total = start.copy() if seeded else np.full(kept, identity_of(fn, dtype)).astype(dtype)
        for i in range(shape[axis]):
            at = (*[slice(None)] * axis, i)
            new = UFUNC[fn](total, data[at])
            np.testing.assert_array_equal(got[at], total if exclusive else new)
            total = new


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((5, 19), 1), ((5, 19), 0), ((7,), 0), ((3, 0), 1), ((0, 3), 0)])
def test_a_scan_with_a_merge_keeps_the_order(compiled, assembler, exclusive, seeded, shape, axis, pipeline):
    a = assembler
    kept = (*shape[:axis], *shape[axis + 1 :])
    A, S = Memory("A", shape, "int64"), Memory("S", (2, *kept), "int64")
    outs = [Memory(name, shape, "int64") for name in ("C", "D")]
    results = (a.value(shape, "int64"), a.value(shape, "int64"))
    seeds = (a.load(S, 0), a.load(S, 1)) if seeded else ()
    doubled = a.apply("add", a.load(A), a.load(A))
    a.emit(Scan(results, (doubled,), axis, affine(a, kept, True), exclusive, "ordered_tree", seeds))
    for value, memory in zip(results, outs, strict=True):
        a.store(value, memory)
    data, s = integers(*shape), integers(2, *kept)
    found = [np.zeros(shape, "int64"), np.zeros(shape, "int64")]
    compiled(a.program(A, S, *outs), pipeline)(data, s, *found)
    state = (s[0], s[1]) if seeded else (np.ones(kept, "int64"), np.zeros(kept, "int64"))
    with np.errstate(over="ignore"):
        for i in range(shape[axis]):
            at = (*[slice(None)] * axis, i)
            x = 2 * data[at]
            new = compose(*state, x, x + 1)
            for got, old, now in zip(found, state, new, strict=True):
                np.testing.assert_array_equal(got[at], old if exclusive else now)
            state = new


def test_a_scan_of_the_state_replaces_the_state(compiled, assembler):
    a = assembler
    A = Memory("A", (6, 9), "int64")

    def body(i, state):
        out = a.value((6, 9), "int64")
        return a.emit(Scan((out,), (state,), 0, known(a, ["add"], [TileType((9,), "int64")])))

    (result,) = a.loop((3,), body, [a.load(A)])
    a.store(result, A)
    data = integers(6, 9)
    expected = data.cumsum(0).cumsum(0).cumsum(0)
    compiled(a.program(A))(data)
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_declared_merge_by_name_combines_bodies_from_the_identity(compiled, assembler, pipeline):
    """The body squares its state's sum: run as a recurrence it would give another number."""
    a = assembler
    A, C = Memory("A", (9,), "int64"), Memory("C", (), "int64")
    merge = known(a, ["add"], [TileType((), "int64")])

    def body(i, state):
        total = a.apply("add", state, a.load(A, i))
        return a.apply("multiply", total, total)

    (result,) = a.loop(
        (9,), body, [a.full((), 5, "int64")], kind=Reduce, policy="unordered_tree", merge=merge
    )
    a.store(result, C)
    data, found = integers(9), np.zeros((), "int64")
    compiled(a.program(A, C), pipeline)(data, found)
    assert found == 5 + (data**2).sum()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_nested_merges_that_do_not_commute(compiled, assembler, pipeline):
    """Rows are composed by a region inside a region, both with the user's merge."""
    a = assembler
    A, C = Memory("A", (4, 5, 3), "int64"), Memory("C", (2, 3), "int64")
    t = TileType((3,), "int64")

    def inner_body(i):
        def body(j, p, q):
            x = a.load(A, i, j)
            return compose_values(p, q, x, a.apply("add", x, a.full((3,), 1, "int64")))

        return body

    def compose_values(p, q, r, s):
        return a.apply("multiply", r, p), a.apply("add", a.apply("multiply", r, q), s)

    def outer(i, p, q):
        units = (a.full((3,), 1, "int64"), a.full((3,), 0, "int64"))
        r, s = a.loop((5,), inner_body(i), units, kind=Reduce, policy="ordered_tree", merge=affine(a, (3,)))
        return compose_values(p, q, r, s)

    seeds = (a.full((3,), 2, "int64"), a.full((3,), -1, "int64"))
    p, q = a.loop((4,), outer, seeds, kind=Reduce, policy="ordered_tree", merge=affine(a, (3,)))
    a.store(p, C, 0)
    a.store(q, C, 1)
    data, found = integers(4, 5, 3), np.zeros((2, 3), "int64")
    compiled(a.program(A, C), pipeline)(data, found)
    state = (np.full(3, 2), np.full(3, -1))
    with np.errstate(over="ignore"):
        for x in data.reshape(-1, 3):
            state = compose(*state, x, x + 1)
    np.testing.assert_array_equal(found, np.stack(state))
    assert t.shape == (3,)


def gaussian(a, kept, constant_shape):
    """Products of Gaussian integers, which commute, with constants as the frontend writes them."""
    t = TileType(kept, "int64")

    def constant(number):
        value = a.full(constant_shape, number, "int64")
        return value if constant_shape == kept else a.op(Broadcast, kept, "int64", value)

    def combine(p, q, r, s):
        minus = a.apply("multiply", a.apply("multiply", q, s), constant(-1))
        return a.apply("add", a.apply("multiply", p, r), minus), a.apply(
            "add", a.apply("multiply", p, s), a.apply("multiply", q, r)
        )

    return Merge(
        combine=a.function([t] * 4, combine),
        identity=a.function([], lambda: (constant(1), constant(0))),
        lift=a.function([TileType(kept, "int32")], lambda x: (a.cast(x, "int64"), constant(1))),
        commutative=True,
    )


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((100,), (0,)),
        ((5, 64), (1,)),
        ((3, 4, 71), (0, 2)),
        ((2, 31), (1,)),
        ((3, 0), (1,)),
        ((0, 64), (0, 1)),
    ],
)
def test_a_merge_that_commutes_runs_in_lanes(compiled, assembler, seeded, shape, axes, pipeline):
    a = assembler
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    A, S, C = Memory("A", shape, "int32"), Memory("S", (2, *kept), "int64"), Memory("C", (2, *kept), "int64")
    seeds = (a.load(S, 0), a.load(S, 1)) if seeded else ()
    results = (a.value(kept, "int64"), a.value(kept, "int64"))
    a.emit(MergeReduce(results, (a.load(A),), axes, gaussian(a, kept, ()), "unordered_tree", seeds))
    for k, value in enumerate(results):
        a.store(value, C, k)
    x, s = integers(*shape).astype("int32"), integers(2, *kept)
    found = np.zeros((2, *kept), "int64")
    compiled(a.program(A, S, C), pipeline)(x, s, found)
    length = int(np.prod([shape[axis] for axis in axes]))
    p, q = (s[0], s[1]) if seeded else (np.ones(kept, "int64"), np.zeros(kept, "int64"))
    with np.errstate(over="ignore"):
        for r in np.moveaxis(x, sorted(axes), range(len(axes))).reshape(length, *kept).astype("int64"):
            p, q = p * r - q, p + q * r
    np.testing.assert_array_equal(found, np.stack([p, q]))


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
def test_only_a_free_order_runs_in_lanes(assembler, policy):
    a = assembler
    A, C = Memory("A", (100,), "int32"), Memory("C", (), "int64")
    results = (a.value((), "int64"), a.value((), "int64"))
    a.emit(MergeReduce(results, (a.load(A),), (0,), gaussian(a, (), ()), policy))
    a.store(results[0], C)
    lanes = []
    function = lower_program(a.program(A, C), host_target())
    tvm_ffi.structural_walk(function.body, (BufferStore, lambda node: lanes.append(node.buffer.shape[0])))
    assert any(int(n) > 1 for n in lanes if int(n) < 100) == (policy == "unordered_tree")
