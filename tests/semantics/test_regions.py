"""Regions: order, carried state, anchored updates, domains, branches, reductions."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from tvm_tile.errors import ArgumentError, IllegalError
from tvm_tile.ir.index import Comparison, IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.values import TileType
from tvm_tile.semantics.interpreter import interpret
from tvm_tile.semantics.orders import Orders

ORDERS = ("source", "reverse", 0, 1, 2, 3)
F32 = TileType((), "float32")
I64 = TileType((), "int64")


def record(b, log, counter, value):
    """Append a value to a log in memory; the counter makes the order of execution visible."""
    n = b.load(counter, 0)
    b.store(log, [n], value)
    b.store(counter, [0], b.apply("add", n, b.full((), 1, "int64")))


def run_log(builder, make, size, **options):
    """Values that a program logs, in order of execution."""
    b = builder()
    log, counter = b.tensor("log", (size,), "int64"), b.tensor("counter", (1,), "int64")
    make(b, lambda value: record(b, log, counter, value))
    out, n = np.full(size, -1), np.zeros(1, np.int64)
    interpret(b.program(log, counter), out, n, **options)
    return out[: n[0]].tolist()


def code(b, *indices):
    """Digits of the coordinates as one decimal number."""
    e = IndexConst(0)
    for i in indices:
        e = IndexBinary("+", IndexBinary("*", e, IndexConst(10)), IndexVar(i))
    return b.from_index(e)


@pytest.mark.parametrize("kind", ["serial", "pipeline"])
def test_sequential_regions_run_in_lexicographic_order_whatever_order_is_asked(builder, kind):
    def make(b, log):
        with b.loop(kind, 2, 3) as loop:
            log(code(b, *loop.indices))

    for order in ORDERS:
        assert run_log(builder, make, 9, order=order, reduction=order) == [0, 1, 2, 10, 11, 12]


def test_parallel_order(builder):
    def make(b, log):
        with b.loop("parallel", 3, names="i") as outer, b.loop("parallel", 4, names="j") as inner:
            log(code(b, *outer.indices, *inner.indices))

    source = [10 * i + j for i in range(3) for j in range(4)]
    assert run_log(builder, make, 12) == source
    assert run_log(builder, make, 12, order="reverse") == source[::-1]
    one, other = run_log(builder, make, 12, order=7), run_log(builder, make, 12, order=8)
    assert sorted(one) == sorted(other) == source
    assert one == run_log(builder, make, 12, order=np.int64(7))
    assert one != other
    # Each entry of the inner region draws anew.
    rows = [tuple(v % 10 for v in one[k : k + 4]) for k in (0, 4, 8)]
    assert len(set(rows)) > 1
    assert all(v // 10 == one[k] // 10 for k in (0, 4, 8) for v in one[k : k + 4])


@pytest.mark.parametrize("bad", ["random", "", -1, 1.5, True, None, np.bool_(True), (1,)])
@pytest.mark.parametrize("parameter", ["order", "reduction"])
def test_unknown_orders_are_refused(builder, parameter, bad):
    with pytest.raises(ArgumentError, match=parameter):
        interpret(builder().program(), **{parameter: bad})


def test_a_domain_is_a_box_less_what_its_predicate_denies(builder):
    def make(b, log):
        with b.loop("serial", 3, 3, where=lambda i, j: Comparison("<=", j, i)) as loop:
            log(code(b, *loop.indices))

    assert run_log(builder, make, 9) == [0, 10, 11, 20, 21, 22]


@pytest.mark.parametrize("kind", ["parallel", "serial", "pipeline"])
def test_extents_may_depend_on_outer_indices_and_a_negative_one_is_empty(builder, kind):
    def make(b, log):
        with b.loop("serial", 4, names="i") as outer:
            extent = IndexBinary("-", IndexVar(outer.indices[0]), IndexConst(1))
            with b.loop(kind, extent, names="j") as inner:
                log(code(b, *outer.indices, *inner.indices))

    assert run_log(builder, make, 9) == [20, 30, 31]


@pytest.mark.parametrize("kind", ["parallel", "serial", "pipeline", "reduce"])
@pytest.mark.parametrize("extents", [(0,), (3, 0), (0, 3)])
def test_an_empty_region_gives_the_initial_state(builder, kind, extents):
    b = builder()
    Y = b.tensor("Y", (), "float32")
    seed = b.full((), 5.0)
    fields = {"policy": "fold_left"} if kind == "reduce" else {}
    with b.loop(kind, *extents, inits=[seed], **fields) as loop:
        loop.yields = (b.apply("add", loop.args[0], b.full((), 1.0)),)
    b.store(Y, [], loop.results[0])
    y = np.zeros((), np.float32)
    interpret(b.program(Y), y)
    assert y == 5


def test_a_region_of_rank_zero_runs_once(builder):
    def make(b, log):
        with b.loop("parallel"):
            log(b.full((), 4, "int64"))

    assert run_log(builder, make, 3) == [4]


@pytest.mark.parametrize("kind", ["serial", "pipeline"])
def test_carried_states_change_at_once(builder, kind):
    b = builder()
    Y = b.tensor("Y", (2,), "int64")
    zero, one = b.full((), 0, "int64"), b.full((), 1, "int64")
    with b.loop(kind, 10, inits=[zero, one]) as loop:
        x, y = loop.args
        loop.yields = (y, b.apply("add", x, y))
    for k in range(2):
        b.store(Y, [k], loop.results[k])
    y = np.zeros(2, np.int64)
    interpret(b.program(Y), y)
    assert y.tolist() == [55, 89]


def test_swapped_states(builder):
    b = builder()
    Y = b.tensor("Y", (2,), "int64")
    with b.loop("serial", 3, inits=[b.full((), 1, "int64"), b.full((), 2, "int64")]) as loop:
        loop.yields = loop.args[::-1]
    for k in range(2):
        b.store(Y, [k], loop.results[k])
    y = np.zeros(2, np.int64)
    interpret(b.program(Y), y)
    assert y.tolist() == [2, 1]


@pytest.mark.parametrize("order", ORDERS)
def test_an_anchored_update_happens_once(builder, order):
    b = builder()
    Y = b.tensor("Y", (2,))
    tile = b.full((2,), 3.0)
    with b.loop("parallel", 5, inits=[tile]) as loop:
        loop.yields = (b.apply("add", loop.args[0], loop.args[0]),)
    b.store(Y, [(0, 2)], loop.results[0])
    y = np.zeros(2, np.float32)
    interpret(b.program(Y), y, order=order)
    assert y.tolist() == [6, 6]


@pytest.mark.parametrize("order", ORDERS)
def test_every_instance_of_an_anchored_update_starts_from_the_value_before(builder, order):
    b = builder()
    Y = b.tensor("Y", (4,))
    with b.loop("parallel", 4, inits=[b.full((), 3.0)]) as loop:
        b.store(Y, [loop.indices[0]], loop.args[0])
        loop.yields = (b.apply("add", loop.args[0], loop.args[0]),)
    y = np.zeros(4, np.float32)
    interpret(b.program(Y), y, order=order)
    assert y.tolist() == [3] * 4


@pytest.mark.parametrize("value", [0, 1, 5])
def test_a_branch_runs_one_arm(builder, value):
    b = builder()
    n = b.scalar("n", "int32")
    Y, Z = b.tensor("Y", (), "int32"), b.tensor("Z", (), "int32")
    one = b.full((), 1, "int32")
    (result,) = b.branch(
        b.apply("greater", n, one),
        lambda: (b.store(Z, [], n), (b.apply("add", n, one),))[1],
        lambda: (one,),
    )
    b.store(Y, [], result)
    y, z = np.zeros((), np.int32), np.zeros((), np.int32)
    interpret(b.program(n, Y, Z), value, y, z)
    assert (int(y), int(z)) == ((value + 1, value) if value > 1 else (1, 0))


# Reductions


def reduce_program(builder, policy, n, body, merge=None, seed=10.0, types=(F32,)):
    """``state = body(builder, state, X[r])`` over ``n`` coordinates, stored to Y."""
    b = builder()
    X, Y = b.tensor("X", (n,)), b.tensor("Y", (len(types),))
    built = None if merge is None else merge(b, X)
    seeds = [b.full((), seed) for _ in types]
    with b.loop("reduce", n, names="r", inits=seeds, policy=policy, merge=built) as loop:
        loop.yields = tuple(body(b, loop.args, b.load(X, loop.indices[0])))
    for k, result in enumerate(loop.results):
        b.store(Y, [k], result)
    return b.program(X, Y)


def run(program, x, size=1, **options):
    y = np.full(size, -1, np.float32)
    interpret(program, np.asarray(x, np.float32), y, **options)
    return y.tolist()


def horner(b, state, x):
    """``s * 2 + x``: an update that no merge can stand for."""
    return (b.apply("add", b.apply("multiply", state[0], b.full((), 2.0)), x),)


def add_body(b, state, x):
    return (b.apply("add", state[0], x),)


def add_merge(b, X):
    return b.merge(
        [F32],
        lambda p, q: (b.apply("add", p, q),),
        lambda: (b.full((), 0.0),),
        commutative=True,
        builtin=("add",),
    )


@pytest.mark.parametrize("reduction", ORDERS)
def test_folds_apply_the_body_as_written(builder, reduction):
    x = [1, 2, 3, 4]
    left, right = 10.0, 10.0
    for v in x:
        left = left * 2 + v
    for v in reversed(x):
        right = right * 2 + v
    for policy, want in (("fold_left", left), ("fold_right", right)):
        assert run(reduce_program(builder, policy, 4, horner), x, reduction=reduction) == [want]


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_seed_joins_once(builder, policy, reduction, n):
    program = reduce_program(builder, policy, n, add_body, add_merge)
    x = list(range(1, n + 1))
    assert run(program, x, reduction=reduction) == [10 + sum(x)]


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
def test_a_tree_without_a_merge_is_refused_and_a_fold_is_not(builder, policy):
    with pytest.raises(IllegalError, match="no known merge") as caught:
        run(reduce_program(builder, policy, 3, horner), [1, 2, 3])
    assert caught.value.obligation == "reduction policy"
    assert "fold_left" in str(caught.value)
    assert run(reduce_program(builder, "fold_left", 3, horner), [1, 2, 3]) == [91]


def first_and_last(b, X):
    """A merge that is associative and not commutative: keep the left one's first, the right one's last.

    A state is (first, last, count); the identity has count 0.
    """

    def combine(f, l, n, g, m, k):
        zero = b.full((), 0.0)
        left_empty, right_empty = b.apply("equal", n, zero), b.apply("equal", k, zero)
        return (
            b.apply("where", left_empty, g, f),
            b.apply("where", right_empty, l, m),
            b.apply("add", n, k),
        )

    def lift(r):
        x = b.load(X, r)
        return x, x, b.full((), 1.0)

    def zeros():
        return tuple(b.full((), 0.0) for _ in range(3))

    return b.merge([F32] * 3, combine, zeros, lift)


def first_last_body(b, state, x):
    first, _, count = state
    empty = b.apply("equal", count, b.full((), 0.0))
    return b.apply("where", empty, x, first), x, b.apply("add", count, b.full((), 1.0))


@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16])
def test_an_ordered_tree_with_a_merge_that_is_not_commutative(builder, reduction, n):
    program = reduce_program(
        builder, "ordered_tree", n, first_last_body, first_and_last, seed=0.0, types=(F32,) * 3
    )
    x = list(range(5, 5 + n))
    want = [x[0], x[-1], n] if n else [0, 0, 0]
    assert run(program, x, 3, reduction=reduction) == want


def test_an_unordered_tree_needs_a_commutative_merge(builder):
    program = reduce_program(
        builder, "unordered_tree", 3, first_last_body, first_and_last, seed=0.0, types=(F32,) * 3
    )
    with pytest.raises(IllegalError, match="not commutative"):
        run(program, [1, 2, 3], 3)


def test_the_seed_stands_on_the_left(builder):
    program = reduce_program(
        builder, "ordered_tree", 3, first_last_body, first_and_last, seed=1.0, types=(F32,) * 3
    )
    assert run(program, [7, 8, 9], 3) == [1, 9, 4]


def subtracting_merge(b, X, **laws):
    """Not associative, declared otherwise: it makes the shape of the tree visible.

    It reads a value from outside, so that its laws are taken as declared.
    """
    one = b.full((), 1.0)
    return b.merge(
        [F32],
        lambda p, q: (b.apply("subtract", p, b.apply("multiply", q, one)),),
        lambda: (b.full((), 0.0),),
        lambda r: (b.load(X, r),),
        **laws,
    )


def test_source_is_the_left_fold_of_the_lifts_and_reverse_leans_to_the_right(builder):
    program = reduce_program(builder, "ordered_tree", 4, add_body, subtracting_merge)
    x = [1.0, 2.0, 4.0, 8.0]
    assert run(program, x) == [10 - (((1 - 2) - 4) - 8)]
    assert run(program, x, reduction="reverse") == [10 - (1 - (2 - (4 - 8)))]
    groupings = {
        (((1 - 2) - 4) - 8),
        ((1 - 2) - (4 - 8)),
        (1 - (2 - (4 - 8))),
        (1 - ((2 - 4) - 8)),
        ((1 - (2 - 4)) - 8),
    }
    seen = {run(program, x, reduction=seed)[0] for seed in range(60)}
    assert seen <= {10.0 - g for g in groupings}
    assert len(seen) >= 4


def test_an_unordered_tree_may_permute(builder):
    def merge(b, X):
        return subtracting_merge(b, X, commutative=True)

    program = reduce_program(builder, "unordered_tree", 3, add_body, merge)
    x = [1.0, 2.0, 4.0]
    assert run(program, x) == [10 - ((1 - 2) - 4)]
    assert run(program, x, reduction="reverse") == [10 - ((4 - 2) - 1)]
    admitted = {
        10 - t for p in itertools.permutations(x) for t in ((p[0] - p[1]) - p[2], p[0] - (p[1] - p[2]))
    }
    seen = {run(program, x, reduction=seed)[0] for seed in range(60)}
    assert seen <= admitted
    assert len(seen) >= 4


@pytest.mark.parametrize("reduction", ORDERS)
@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree", "fold_left", "fold_right"])
def test_masked_contributions(builder, policy, reduction):
    def body(b, state, x):
        return b.branch(
            b.apply("greater", x, b.full((), 0.0)), lambda: (b.apply("add", state[0], x),), lambda: state
        )

    program = reduce_program(builder, policy, 5, body, add_merge)
    assert run(program, [1, -50, 3, np.nan, 5], reduction=reduction) == [19]
    assert run(program, [-1] * 5, reduction=reduction) == [10]


def test_a_reduction_without_a_lift_runs_its_body_from_the_identity(builder):
    def merge(b, X):
        return b.merge(
            [F32], lambda p, q: (b.apply("multiply", p, q),), lambda: (b.full((), 1.0),), commutative=True
        )

    def body(b, state, x):
        return (b.apply("multiply", state[0], b.apply("add", x, b.full((), 1.0))),)

    for reduction in ORDERS:
        program = reduce_program(builder, "unordered_tree", 3, body, merge)
        assert run(program, [1, 2, 3], reduction=reduction) == [10 * 2 * 3 * 4]


def test_a_reduction_over_an_active_domain(builder):
    b = builder()
    Y = b.tensor("Y", (), "int64")
    merge = b.merge(
        [I64],
        lambda p, q: (b.apply("add", p, q),),
        lambda: (b.full((), 0, "int64"),),
        commutative=True,
        builtin=("add",),
    )

    def odd(i, j):
        parity = IndexBinary("%", IndexBinary("+", i, j), IndexConst(2))
        return Comparison("==", parity, IndexConst(1))

    with b.loop("reduce", 4, 5, inits=[b.full((), 0, "int64")], where=odd, merge=merge) as loop:
        loop.yields = (b.apply("add", loop.args[0], code(b, *loop.indices)),)
    b.store(Y, [], loop.results[0])
    program = b.program(Y)
    y = np.zeros((), np.int64)
    for reduction in ORDERS:
        interpret(program, y, reduction=reduction)
        assert y == sum(10 * i + j for i in range(4) for j in range(5) if (i + j) % 2)


def test_nothing_warns_and_the_callers_error_state_is_kept(builder):
    b = builder()
    X, Y = b.tensor("X", (3,)), b.tensor("Y", (3,))
    x = b.load(X, (0, 3))
    b.store(Y, [(0, 3)], b.apply("divide", b.apply("log", x), b.apply("exp", b.apply("exp", x))))
    k = b.full((), 127, "int8")
    b.apply("floor_divide", b.apply("add", k, k), b.full((), 0, "int8"))
    b.cast(b.full((), float("nan")), "int32")
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        interpret(b.program(X, Y), np.array([-1, 0, 1000], np.float32), np.zeros(3, np.float32))
        assert np.geterr()["over"] == "warn"


def test_orders_combine_any_number_of_leaves():
    for reduction, permute in itertools.product(ORDERS, (False, True)):
        for n in (1, 2, 3, 30):
            leaves = [(k,) for k in range(n)]
            got = Orders(reduction=reduction).tree(leaves, lambda p, q: p + q, permute=permute)
            assert sorted(got) == list(range(n))
            if not permute:
                assert got == tuple(range(n))
