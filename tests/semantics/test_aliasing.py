"""Alias patterns: proofs and disproofs against brute-force enumeration of footprints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.errors import IllegalError
from tvm_tile.ir import index as ix
from tvm_tile.ir.index import And, Comparison, IndexBinary, IndexConst, IndexVar, Not, Or
from tvm_tile.ir.values import TileType
from tvm_tile.semantics.aliasing import prove_alias_pattern
from tvm_tile.semantics.footprints import accesses_of
from tvm_tile.semantics.interpreter import interpret

XY = [frozenset({"X", "Y"})]
I64 = TileType((), "int64")


def var(i, factor=1, offset=0):
    return ix.add(ix.mul(IndexVar(i), IndexConst(factor)), IndexConst(offset))


def two(builder, n=16, dtype="float32"):
    b = builder()
    return b, b.tensor("X", (n,), dtype), b.tensor("Y", (n,), dtype)


def tile(b, size):
    return b.full((size,), 1.0)


# Plain patterns


def elementwise(builder, offset=0, n=8, size=16):
    b, X, Y = two(builder, size)
    with b.loop("parallel", n) as p:
        i = p.indices[0]
        b.store(Y, [i], b.load(X, var(i, 1, offset)))
    return b.program(X, Y)


def test_in_place_elementwise_is_proved_and_a_shift_is_not(builder):
    assert prove_alias_pattern(elementwise(builder), XY).is_proved
    proof = prove_alias_pattern(elementwise(builder, 1), XY)
    assert proof.is_disproved
    reads, writes = proof.counterexample.first, proof.counterexample.second
    (i,), (j,) = (dict(t.instance).values() for t in (reads, writes))
    assert reads.element == writes.element == (i + 1,) == (j,)
    assert str(proof.counterexample) == f"instance (i={i}) reads X[{i + 1}]; instance (i={j}) writes Y[{j}]"


def test_a_shift_that_leaves_the_bounds_is_proved(builder):
    assert prove_alias_pattern(elementwise(builder, 8, n=8, size=8), XY).is_proved
    assert prove_alias_pattern(elementwise(builder, 7, n=8, size=8), XY).is_disproved


def test_one_instance_cannot_conflict_with_itself(builder):
    assert prove_alias_pattern(elementwise(builder, 0, n=1), XY).is_proved
    assert prove_alias_pattern(elementwise(builder, 3, n=1), XY).is_proved
    assert prove_alias_pattern(elementwise(builder, 1, n=2), XY).is_disproved


def test_programs_without_parallel_regions_and_patterns_without_groups_are_proved(builder):
    b, X, Y = two(builder)
    with b.loop("serial", 8) as s:
        b.store(Y, [s.indices[0]], b.load(X, var(s.indices[0], 1, 1)))
    assert prove_alias_pattern(b.program(X, Y), XY).is_proved
    shifted = elementwise(builder, 1)
    assert prove_alias_pattern(shifted, []).is_proved
    assert prove_alias_pattern(shifted, [frozenset({"X"}), frozenset({"Y"})]).is_proved


def test_conflicts_through_one_name_are_the_contracts_matter(builder):
    b, X, Y = two(builder)
    with b.loop("parallel", 8) as p:
        b.store(X, [var(p.indices[0])], b.load(X, var(p.indices[0], 1, 1)))
        b.load(Y, var(p.indices[0]))
        b.load(Y, 15)
    assert prove_alias_pattern(b.program(X, Y), XY).is_proved


def test_two_reads_never_conflict_and_two_writes_do(builder):
    b, X, Y = two(builder)
    with b.loop("parallel", 8) as p:
        b.load(X, 0)
        b.load(Y, var(p.indices[0]))
    assert prove_alias_pattern(b.program(X, Y), XY).is_proved
    b, X, Y = two(builder)
    with b.loop("parallel", 8) as p:
        b.store(X, [var(p.indices[0])], b.full((), 1.0))
        b.store(Y, [var(p.indices[0], -1, 7)], b.full((), 1.0))
    proof = prove_alias_pattern(b.program(X, Y), XY)
    assert {proof.counterexample.first.verb, proof.counterexample.second.verb} == {"writes"}


def test_sibling_regions_are_in_sequence(builder):
    b, X, Y = two(builder)
    with b.loop("parallel", 8) as p:
        b.store(X, [var(p.indices[0])], b.full((), 1.0))
    with b.loop("parallel", 8) as p:
        b.store(Y, [var(p.indices[0], -1, 7)], b.full((), 1.0))
    assert prove_alias_pattern(b.program(X, Y), XY).is_proved


def test_outer_coordinates_are_the_same_in_both_instances(builder):
    def program(kind):
        b, X, Y = two(builder, 64)
        with b.loop(kind, 4, names="i") as p, b.loop("parallel", 8, names="j") as q:
            i, j = p.indices[0], q.indices[0]
            b.store(Y, [ix.add(var(i, 8), var(j))], b.load(X, ix.add(var(i, 8, 8), var(j))))
        return b.program(X, Y)

    assert prove_alias_pattern(program("serial"), XY).is_proved
    proof = prove_alias_pattern(program("parallel"), XY)
    first, second = (dict(t.instance) for t in (proof.counterexample.first, proof.counterexample.second))
    assert set(first) == {"i"}
    assert first["i"] + 1 == second["i"]


def test_tiles_and_ragged_tails(builder):
    def program(n, offset):
        b, X, Y = two(builder, n)
        with b.loop("parallel", -(-n // 8)) as p:
            start = var(p.indices[0], 8)
            loaded = b.load(X, (ix.add(start, IndexConst(offset)), 8))
            b.store(Y, [(start, 8)], loaded)
        return b.program(X, Y)

    for n in (1, 7, 8, 9, 30):
        assert prove_alias_pattern(program(n, 0), XY).is_proved
    assert prove_alias_pattern(program(8, 1), XY).is_proved
    assert prove_alias_pattern(program(9, 1), XY).is_disproved


def test_gemm_may_not_write_its_operand(builder):
    b = builder()
    A, B, C = (b.tensor(name, (64, 64)) for name in "ABC")
    with b.loop("parallel", 4, 4) as p:
        i, j = (var(v, 16) for v in p.indices)
        with b.loop("serial", 4, names="k", inits=[b.full((16, 16), 0.0)]) as s:
            k = var(s.indices[0], 16)
            s.yields = (b.mma(b.load(A, (i, 16), (k, 16)), b.load(B, (k, 16), (j, 16)), s.args[0]),)
        b.store(C, [(i, 16), (j, 16)], s.results[0])
    program = b.program(A, B, C)
    assert prove_alias_pattern(program, [frozenset("AB")]).is_proved
    for group in ("AC", "BC", "ABC"):
        assert prove_alias_pattern(program, [frozenset(group)]).is_disproved


# Domains, guards, steps


def test_predicates_of_domains_count(builder):
    def program(where):
        b, X, Y = two(builder, 16)
        with b.loop("parallel", 8, where=where) as p:
            i = p.indices[0]
            b.store(Y, [i], b.load(X, var(i, 1, 1)))
        return b.program(X, Y)

    def even(i):
        return Comparison("==", IndexBinary("%", i, IndexConst(2)), IndexConst(0))

    def ends(i):
        return Or(Comparison("<", i, IndexConst(1)), Not(Comparison("!=", i, IndexConst(7))))

    assert prove_alias_pattern(program(even), XY).is_proved
    assert prove_alias_pattern(program(ends), XY).is_proved
    assert prove_alias_pattern(program(lambda i: And(even(i), ends(i))), XY).is_proved
    assert prove_alias_pattern(program(lambda i: Not(even(i))), XY).is_proved
    assert prove_alias_pattern(program(lambda i: Not(And(even(i), ends(i)))), XY).is_disproved


def test_steps_of_slices_count(builder):
    def program(offset, step):
        b, X, Y = two(builder, 32)
        with b.loop("parallel", 2) as p:
            i = p.indices[0]
            b.store(Y, [(var(i), 8, 2)], b.load(X, (var(i, 1, offset), 8, step)))
        return b.program(X, Y)

    assert prove_alias_pattern(program(0, 2), XY).is_proved
    assert prove_alias_pattern(program(2, 2), XY).is_proved
    assert prove_alias_pattern(program(1, 2), XY).is_disproved
    assert prove_alias_pattern(program(14, -2), XY).is_proved
    assert prove_alias_pattern(program(13, -2), XY).is_disproved


def guarded(builder, condition, both=False):
    """``if condition: Y[i] = X[i + 1]`` and, in the other arm, ``Y[i] = X[i]``."""
    b, X, Y = two(builder)
    flags = b.tensor("flags", (8,), "bool")
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        b.branch(
            condition(b, i, flags),
            lambda: b.store(Y, [i], b.load(X, var(i, 1, 1))),
            (lambda: b.store(Y, [i], b.load(X, var(i, 1, 1)))) if both else (lambda: None),
        )
    return b.program(X, Y, flags)


def loaded_flag(b, i, flags):
    return b.load(flags, i)


def even_index(b, i, flags):
    rest = b.from_index(IndexBinary("%", IndexVar(i), IndexConst(2)))
    return b.apply("equal", rest, b.full((), 0, "int64"))


def below_seven(b, i, flags):
    return b.apply("less", b.cast(b.full((), 7, "int32"), "int64"), i)


def test_a_conflict_under_a_branch_on_data_is_unknown(builder):
    proof = prove_alias_pattern(guarded(builder, loaded_flag), XY)
    assert proof.is_unknown
    assert "depends on data" in proof.reason


def test_no_conflict_under_a_branch_on_data_is_proved(builder):
    b, X, Y = two(builder)
    flags = b.tensor("flags", (8,), "bool")
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        b.branch(b.load(flags, i), lambda: b.store(Y, [i], b.load(X, i)))
    assert prove_alias_pattern(b.program(X, Y, flags), XY).is_proved


def test_a_branch_on_indices_is_decided(builder):
    assert prove_alias_pattern(guarded(builder, even_index), XY).is_proved
    assert prove_alias_pattern(guarded(builder, even_index, both=True), XY).is_disproved
    assert prove_alias_pattern(guarded(builder, below_seven), XY).is_proved

    def negated(b, i, flags):
        return b.apply("invert", even_index(b, i, flags))

    def combined(fn):
        return lambda b, i, f: b.apply(fn, even_index(b, i, f), negated(b, i, f))

    assert prove_alias_pattern(guarded(builder, negated), XY).is_proved
    assert prove_alias_pattern(guarded(builder, combined("and")), XY).is_proved
    assert prove_alias_pattern(guarded(builder, combined("or")), XY).is_disproved
    assert prove_alias_pattern(guarded(builder, combined("xor")), XY).is_unknown


def test_the_other_arm_runs_where_the_condition_fails(builder):
    def program(distance):
        b, X, Y = two(builder)
        with b.loop("parallel", 8) as p:
            i = p.indices[0]
            even = even_index(b, i, None)
            b.branch(even, lambda: None, lambda: b.store(Y, [i], b.load(X, var(i, 1, distance))))
        return b.program(X, Y)

    assert prove_alias_pattern(program(1), XY).is_proved
    assert prove_alias_pattern(program(2), XY).is_disproved


def test_a_wrapping_cast_is_data(builder):
    def narrow(b, i, flags):
        return b.apply("equal", b.cast(i, "int8"), b.full((), 100, "int8"))

    assert prove_alias_pattern(guarded(builder, narrow), XY).is_unknown


def test_a_conflict_of_masked_accesses_is_unknown(builder):
    def program(offset):
        b, X, Y = two(builder)
        M = b.tensor("M", (4,), "bool")
        with b.loop("parallel", 4) as p:
            start = var(p.indices[0], 4)
            b.store(Y, [(start, 4)], b.load(X, (var(p.indices[0], 4, offset), 4)), mask=b.load(M, (0, 4)))
        return b.program(X, Y, M)

    assert prove_alias_pattern(program(0), XY).is_proved
    proof = prove_alias_pattern(program(1), XY)
    assert proof.is_unknown
    assert "mask" in proof.reason


# Scalars and data as indices


def test_indices_from_data_are_unknown_unless_they_cannot_matter(builder):
    b, X, Y = two(builder)
    rows = b.tensor("rows", (8,), "int32")
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        b.store(Y, [i], b.load(X, b.load(rows, i)))
    proof = prove_alias_pattern(b.program(X, Y, rows), XY)
    assert proof.is_unknown
    assert "is data" in proof.reason

    b, X, Y = two(builder, 32)
    rows = b.tensor("rows", (8,), "int32")
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        low = IndexBinary("%", IndexVar(b.load(rows, i)), IndexConst(8))
        b.store(Y, [var(i, 1, 8)], b.load(X, low))
    assert prove_alias_pattern(b.program(X, Y, rows), XY).is_proved


def test_data_loaded_before_the_region_is_the_same_for_all_instances(builder):
    def program(inside):
        b, X, Y = two(builder)
        rows = b.tensor("rows", (1,), "int32")
        row = None if inside else b.load(rows, 0)
        with b.loop("parallel", 8) as p:
            r = b.load(rows, 0) if inside else row
            at = ix.add(IndexVar(r), var(p.indices[0]))
            b.store(Y, [at], b.load(X, at))
        return b.program(X, Y, rows)

    assert prove_alias_pattern(program(False), XY).is_proved
    assert prove_alias_pattern(program(True), XY).is_unknown


def test_products_of_indices_are_unknown_and_their_common_part_cancels(builder):
    def program(read):
        b, X, Y = two(builder, 64)
        with b.loop("serial", 4, names="i") as s, b.loop("parallel", 8, names="j") as p:
            i, j = s.indices[0], p.indices[0]
            common = IndexBinary("*", IndexVar(i), IndexBinary("+", IndexVar(i), IndexConst(1)))
            b.store(Y, [ix.add(common, var(j))], b.load(X, read(common, i, j)))
        return b.program(X, Y)

    assert prove_alias_pattern(program(lambda c, i, j: ix.add(c, var(j))), XY).is_proved
    own = prove_alias_pattern(program(lambda c, i, j: IndexBinary("*", IndexVar(j), IndexVar(j))), XY)
    assert own.is_unknown
    assert "not affine" in own.reason


def test_run_time_scalars_may_have_any_value(builder):
    def program(dtype):
        b, X, Y = two(builder)
        n = b.scalar("n", dtype)
        with b.loop("parallel", 8) as p:
            i = p.indices[0]
            b.store(Y, [i], b.load(X, ix.sub(IndexVar(i), IndexVar(n))))
        return b.program(X, Y, n)

    proof = prove_alias_pattern(program("int32"), XY)
    conflict = proof.counterexample
    assert proof.is_disproved
    ((name, n),) = conflict.context
    i, j = (dict(t.instance)["i"] for t in (conflict.first, conflict.second))
    assert name == "n"
    assert i - n == j
    assert f"with n={n}" in str(conflict)
    b, X, Y = two(builder)
    n = b.scalar("n", "uint8")
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        low = ix.maximum(var(i), IndexBinary("+", IndexVar(n), IndexConst(8)))
        b.store(Y, [i], b.load(X, low))
    assert prove_alias_pattern(b.program(X, Y, n), XY).is_proved


def test_an_extent_given_by_a_scalar(builder):
    b, X, Y = two(builder, 1000)
    n = b.scalar("n", "int32")
    with b.loop("parallel", n) as p:
        i = p.indices[0]
        b.store(Y, [i], b.load(X, ix.add(IndexVar(i), IndexVar(n))))
    assert prove_alias_pattern(b.program(X, Y, n), XY).is_proved


def test_large_extents_cost_no_more(builder):
    huge = 10**12
    assert prove_alias_pattern(elementwise(builder, 0, huge, huge), XY).is_proved
    assert prove_alias_pattern(elementwise(builder, huge - 1, huge, huge), XY).is_disproved


def test_a_spent_budget_is_unknown(builder):
    proof = prove_alias_pattern(elementwise(builder, 1), XY, operations=1)
    assert proof.is_unknown
    assert "budget" in proof.reason


# Reductions


def reduction(builder, policy, lift_offset):
    b, X, Y = two(builder)
    merge = b.merge(
        [TileType((), "float32")],
        lambda p, q: (b.apply("add", p, q),),
        lambda: (b.full((), 0.0),),
        None if lift_offset is None else lambda r: (b.load(X, var(r, 1, lift_offset)),),
        commutative=True,
    )
    with b.loop("parallel", 4) as p:
        with b.loop("reduce", 4, names="r", inits=[b.full((), 0.0)], policy=policy, merge=merge) as s:
            s.yields = (b.apply("add", s.args[0], b.load(X, s.indices[0])),)
        b.store(Y, [var(p.indices[0], 1, 4)], s.results[0])
    return b.program(X, Y)


def test_reduction_bodies_and_lifts_are_read(builder):
    assert prove_alias_pattern(reduction(builder, "unordered_tree", None), XY).is_proved
    assert prove_alias_pattern(reduction(builder, "unordered_tree", 0), XY).is_proved
    assert prove_alias_pattern(reduction(builder, "unordered_tree", 4), XY).is_unknown
    b, X, Y = two(builder)
    with b.loop("parallel", 4) as p:
        with b.loop("reduce", 5, names="r", inits=[b.full((), 0.0)], policy="fold_left") as s:
            s.yields = (b.apply("add", s.args[0], b.load(X, s.indices[0])),)
        b.store(Y, [var(p.indices[0], 1, 4)], s.results[0])
    proof = prove_alias_pattern(b.program(X, Y), XY)
    assert proof.counterexample.first.element == (4,)


# Refusals


@pytest.mark.parametrize(
    "other", [("Y", (8,), "float32"), ("Y", (16,), "int32"), ("Y", (16,), "float32", (2,))]
)
def test_groups_of_unlike_parameters_are_refused(builder, other):
    b = builder()
    program = b.program(b.tensor("X", (16,)), b.tensor(*other))
    with pytest.raises(ValueError, match="X and Y cannot be the same array"):
        prove_alias_pattern(program, XY)


def test_row_major_strides_may_be_written_out(builder):
    b = builder()
    program = b.program(b.tensor("X", (4, 4)), b.tensor("Y", (4, 4), "float32", (4, 1)))
    assert prove_alias_pattern(program, XY).is_proved


def test_an_unknown_name_is_refused(builder):
    with pytest.raises(ValueError, match=r"no tensor parameter 'Z'; it has X, Y"):
        prove_alias_pattern(elementwise(builder), [frozenset({"X", "Z"})])


# Against enumeration

N = 12


@st.composite
def affine(draw, count):
    """Factors of the indices, a constant, an operation on their sum, and what is added to its result."""
    factors = [draw(st.integers(-2, 3)) for _ in range(count)]
    outer = draw(st.sampled_from([None, None, ("//", 2), ("//", -2), ("%", 3), ("%", -4), ("min", 4)]))
    return factors, draw(st.integers(-3, 6)), outer, 0 if outer is None else draw(st.integers(0, 6))


def evaluate(form, values):
    factors, constant, outer, shift = form
    x = sum(f * v for f, v in zip(factors, values, strict=True)) + constant
    if outer is None:
        return x
    op, c = outer
    if op in ("//", "%") and c == 0:
        return shift
    return {"//": int.__floordiv__, "%": int.__mod__, "min": min, "max": max}[op](x, c) + shift


def expression(form, indices):
    factors, constant, outer, shift = form
    e = IndexConst(constant)
    for f, i in zip(factors, indices, strict=True):
        e = ix.add(e, ix.mul(IndexConst(f), IndexVar(i)))
    return e if outer is None else ix.add(IndexBinary(outer[0], e, IndexConst(outer[1])), IndexConst(shift))


@st.composite
def shapes(draw):
    """Outer serial, parallel (1 or 2 axes) and inner serial extents, and accesses in their body."""
    outer = draw(st.sampled_from([(), (2,)]))
    parallel = draw(st.sampled_from([(3,), (4,), (2, 3), (1,)]))
    inner = draw(st.sampled_from([(), (3,), (0,)]))
    count = len(outer) + len(parallel) + len(inner)
    kinds = draw(st.lists(st.tuples(st.sampled_from("XY"), st.booleans()), min_size=2, max_size=3))
    accesses = [
        (
            name,
            store,
            draw(affine(count)),
            draw(st.sampled_from([None, (1, 1), (2, 1), (3, 2), (2, -1), (0, 1)])),
        )
        for name, store in kinds
    ]
    where = draw(st.sampled_from([None, ("<", 2), ("!=", 1), (">=", 1)]))
    return outer, parallel, inner, accesses, where


def build_affine(builder, outer, parallel, inner, accesses, where):
    b, X, Y = two(builder, N)
    memories = {"X": X, "Y": Y}
    predicate = None
    if where is not None:
        predicate = lambda *i: Comparison(where[0], i[0], IndexConst(where[1]))  # noqa: E731
    with (
        b.loop("serial", *outer, names="o") as s,
        b.loop("parallel", *parallel, names="pq", where=predicate) as p,
        b.loop("serial", *inner, names="t") as t,
    ):
        indices = (*s.indices, *p.indices, *t.indices)
        for name, store, form, piece in accesses:
            start = expression(form, indices)
            part = start if piece is None else (start, *piece)
            if store:
                b.store(memories[name], [part], b.full((), 1.0) if piece is None else tile(b, piece[0]))
            else:
                b.load(memories[name], part)
    return b.program(X, Y)


def enumerate_conflicts(outer, parallel, inner, accesses, where):
    """All conflicts between distinct instances through different names, by plain loops over integers."""
    found = set()
    compare = {"<": int.__lt__, "!=": int.__ne__, ">=": int.__ge__}
    for o in itertools.product(*map(range, outer)):
        touches = []
        for p in itertools.product(*map(range, parallel)):
            if where is not None and not compare[where[0]](p[0], where[1]):
                continue
            for t in itertools.product(*map(range, inner)):
                for name, store, form, piece in accesses:
                    start = evaluate(form, (*o, *p, *t))
                    size, step = piece or (1, 1)
                    cells = (start + lane * step for lane in range(size))
                    touches += [((*o, *p), name, store, e) for e in cells if 0 <= e < N]
        for a, c in itertools.permutations(touches, 2):
            if a[0] != c[0] and a[1] != c[1] and a[3] == c[3] and (a[2] or c[2]):
                found.add((a, c))
    return found


@settings(max_examples=200, deadline=None)
@given(shapes())
def test_proofs_agree_with_enumeration(builder, description):
    program = build_affine(builder, *description)
    conflicts = enumerate_conflicts(*description)
    proof = prove_alias_pattern(program, XY)
    assert not proof.is_unknown
    assert proof.is_proved == (not conflicts)
    if conflicts:
        first, second = (
            (tuple(v for _, v in t.instance), t.memory, t.verb == "writes", t.element[0])
            for t in (proof.counterexample.first, proof.counterexample.second)
        )
        assert (first, second) in conflicts


@pytest.mark.parametrize("divisor", [-4, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("op", ["//", "%", "min", "max"])
def test_every_operator_agrees_with_enumeration(builder, op, divisor):
    outcomes = set()
    for factor, shift in itertools.product((-1, 1, 2), range(0, 12, 2)):
        read = ([factor], 1, (op, divisor), shift)
        accesses = [("Y", True, ([1], 0, None, 0), None), ("X", False, read, None)]
        description = ((), (6,), (), accesses, None)
        conflicts = enumerate_conflicts(*description)
        proof = prove_alias_pattern(build_affine(builder, *description), XY)
        assert (proof.is_proved, proof.is_disproved) == (not conflicts, bool(conflicts))
        outcomes.add(proof.status)
    assert outcomes == {"proved", "disproved"}


@settings(max_examples=40, deadline=None)
@given(shapes())
def test_debug_runs_find_a_conflict_exactly_where_there_is_one(builder, description):
    """On a program whose parameters alone do not conflict, the debug run and the proof agree."""
    program = build_affine(builder, *description)

    def conflicts(x, y):
        try:
            interpret(program, x, y, debug=True)
        except IllegalError:
            return True
        return False

    x = np.zeros(N, np.float32)
    if not conflicts(x.copy(), x.copy()):
        assert conflicts(x, x) == prove_alias_pattern(program, XY).is_disproved


def test_accesses_are_found_in_program_order_with_their_conditions(builder):
    b, X, Y = two(builder)
    b.load(X, 3)
    with b.loop("parallel", 4) as p:
        i = b.from_index(var(p.indices[0], 2))
        b.store(Y, [IndexVar(i)], b.full((), 1.0))
    outside, inside = accesses_of(b.program(X, Y))
    assert (outside.memory.name, outside.verb, outside.path) == ("X", "reads", ())
    assert (inside.memory.name, inside.verb, len(inside.path)) == ("Y", "writes", 1)
    # The computed scalar is replaced by the index expression it stands for.
    assert str(inside.subscripts[0]) == str(var(p.indices[0], 2))
    assert inside.doubts == ()
