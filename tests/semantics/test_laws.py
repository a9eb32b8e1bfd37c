"""Laws of merges: what is proved, what a point refutes, what stays declared, and what that admits."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.regions import Reduce
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.laws import laws_of
from tvm_tile.semantics.legality import ordered_folds


@tt.kernel
def reduced(X, Y, *, merge, policy):
    for _ in tt.parallel(1):
        state = tt.reduce_tile(X[:], 0, merge, policy=policy)
        Y[()] = state[0] if isinstance(state, tuple) else state


def program_of(merge, dtype="float32", policy="fold_left", result=None):
    return reduced.trace(tt.spec((5,), dtype), tt.spec((), result or dtype), merge=merge, policy=policy)


def merge_in(program):
    kinds = (Reduce, MergeReduce, Scan)
    return next(s.merge for s in walk(program) if isinstance(s, kinds))


def laws(merge, dtype="float32", **options):
    return laws_of(merge_in(program_of(merge, dtype, **options)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_laws_of_small_integers_are_proved_by_enumeration(dtype):
    found = laws(tt.Merge(lambda a, b: a + b, 0, commutative=True), dtype)
    for proof in (found.associative, found.commutative, found.identity):
        assert proof.is_proved
        assert "enumeration" in proof.method


def test_laws_of_truth_values_are_proved_by_enumeration():
    found = laws(tt.Merge(lambda a, b: a ^ b, False, commutative=True), "bool")
    assert found.associative.is_proved
    assert found.commutative.is_proved
    assert found.identity.is_proved
    implication = laws(tt.Merge(lambda a, b: ~a | b, True), "bool")
    assert implication.associative.is_disproved
    assert implication.commutative.is_disproved


def test_enumeration_finds_the_one_point_that_sampling_would_miss():
    """Saturation at one value far from any special one: 77·1 is 0, all else adds."""

    def almost(a, b):
        return tt.where((a == 77) & (b == 1), 0, a + b)

    found = laws(tt.Merge(almost, 0, commutative=True), "int8")
    assert found.associative.is_disproved
    assert found.commutative.is_disproved
    assert found.identity.is_proved
    assert "77" in found.commutative.counterexample


def test_a_known_form_is_proved():
    found = laws(tt.max)
    assert found.associative.is_proved
    assert "known form" in found.associative.method


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint64"])
def test_a_lawful_merge_of_a_wide_dtype_is_declared(dtype):
    found = laws(tt.Merge(lambda a, b: a + b, 0, commutative=True), dtype)
    for proof in (found.associative, found.commutative, found.identity):
        assert proof.is_unknown
        assert "declared" in proof.reason


@pytest.mark.parametrize("merge", [tt.welford, tt.logsumexp], ids=["welford", "logsumexp"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_merges_of_the_language_are_not_refuted(merge, dtype):
    result = "float32" if dtype == "float16" else dtype
    found = laws(merge, dtype, policy="unordered_tree", result=result)
    assert found.associative.is_unknown
    assert found.commutative.is_unknown
    assert found.identity.is_unknown


UNLAWFUL = {
    "difference": (lambda a, b: a - b, 0.0, "associative"),
    "mean": (lambda a, b: (a + b) * 0.5, 0.0, "associative"),
    "left": (lambda a, b: a + b * 0, 0.0, "identity"),
    "maximum from 0": (lambda a, b: tt.maximum(a, b), 0.0, "identity"),
}


@pytest.mark.parametrize("name", UNLAWFUL)
@pytest.mark.parametrize("run", [tt.verify, lambda p: tt.build(p, "llvm"), lambda p: tt.lower(p, "llvm")])
def test_a_law_that_a_point_refutes_is_refused_with_the_point(name, run):
    fn, identity, law = UNLAWFUL[name]
    program = program_of(tt.Merge(fn, identity), policy="ordered_tree")
    with pytest.raises(tt.IllegalError) as caught:
        run(program)
    assert caught.value.obligation == "merge laws"
    assert law in str(caught.value)
    assert "a = " in str(caught.value.counterexample)
    assert "fold_left" in caught.value.suggestion


def test_a_merge_that_does_not_commute_is_refused_where_contributions_permute():
    affine = tt.Merge(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (1, 0), commutative=True)

    @tt.kernel
    def composed(X, Y, *, policy):
        for _ in tt.parallel(1):
            Y[0], Y[1] = tt.reduce_tile((X[:], X[:]), 0, affine, policy=policy)

    specs = tt.spec((5,), "int64"), tt.spec((2,), "int64")
    tt.verify(composed.trace(*specs, policy="ordered_tree"))
    with pytest.raises(tt.IllegalError, match="not commutative") as caught:
        tt.verify(composed.trace(*specs, policy="unordered_tree"))
    assert "ordered_tree" in caught.value.suggestion


@pytest.mark.parametrize("policy", ["fold_left", "fold_right"])
def test_a_fold_needs_no_law(policy):
    program = program_of(tt.Merge(lambda a, b: a - b, 0.0), policy=policy)
    x, y = np.arange(1, 6, dtype="f4"), np.zeros((), "f4")
    tt.interpret(program, x, y)
    assert y == -15.0


def test_exact_laws_hold_to_the_last_bit():
    tt.verify(program_of(tt.Merge(lambda a, b: a + b, 0.0), policy="ordered_tree"))
    with pytest.raises(tt.IllegalError, match="not associative"):
        tt.verify(program_of(tt.Merge(lambda a, b: a * 1.1 + b, 0.0, exact=True), policy="ordered_tree"))


def test_a_merge_that_reads_values_from_outside_is_declared():
    @tt.kernel
    def scaled(X, Y):
        scale = X[0]
        merge = tt.Merge(lambda a, b: a + b * scale, 0.0)
        for _ in tt.parallel(1):
            Y[()] = tt.reduce_tile(X[:], 0, merge, policy="ordered_tree")

    program = scaled.trace(tt.spec((5,), "float32"), tt.spec((), "float32"))
    assert laws_of(merge_in(program)).associative.is_unknown
    tt.verify(program)


def test_ordered_folds_are_found_and_trees_are_not():
    @tt.kernel
    def kernel(X, Y, *, policy):
        for _ in tt.parallel(1):
            s = tt.zeros((), "float32")
            for r in tt.reduce(X.shape[0], policy=policy):
                s = s + X[r]
            Y[()] = s

    specs = tt.spec((5,), "float32"), tt.spec((), "float32")
    assert [f.policy for f in ordered_folds(kernel.trace(*specs, policy="fold_left"))] == ["fold_left"]
    assert list(ordered_folds(kernel.trace(*specs, policy="unordered_tree"))) == []


MODULAR = tt.Merge(lambda a, b: (a + b) % 7, 0, commutative=True)


def test_laws_need_to_hold_only_for_states_that_the_lift_makes():
    lifted = tt.Merge(lambda a, b: (a + b) % 7, 0, lift=lambda x: x % 7, commutative=True)
    for dtype in ("int8", "int32", "int64"):
        program = program_of(lifted, dtype, policy="unordered_tree")
        tt.verify(program)
        x, y = np.arange(5, 10).astype(dtype), np.zeros((), dtype)
        tt.interpret(program, x, y)
        assert y == x.sum() % 7
    # Without the lift an element may be 7, for which 0 is no identity.
    with pytest.raises(tt.IllegalError, match="identity") as caught:
        tt.verify(program_of(MODULAR, "int32", policy="unordered_tree"))
    assert "lift=" in caught.value.suggestion
    # What a lift makes may break a law too.
    with pytest.raises(tt.IllegalError, match="not associative"):
        tt.verify(program_of(tt.Merge(lambda a, b: a - b, 0, lift=lambda x: x % 7), policy="ordered_tree"))


@tt.kernel
def region(X, Y, *, merge, start, step):
    for _ in tt.parallel(1):
        s = tt.full((), start, "int32") if isinstance(start, int) else X[0]
        for r in tt.reduce(X.shape[0], policy="unordered_tree", merge=merge):
            s = step(s, X[r])
        Y[()] = s


def region_of(merge, start, step):
    return region.trace(tt.spec((5,), "int32"), tt.spec((), "int32"), merge=merge, start=start, step=step)


def test_laws_need_to_hold_only_for_states_that_the_body_makes():
    program = region_of(MODULAR, 0, lambda s, x: (s + x) % 7)
    tt.verify(program)
    x, y = np.arange(5, 10, dtype="i4"), np.zeros((), "i4")
    tt.interpret(program, x, y, reduction="reverse")
    assert y == x.sum() % 7
    # A body may make any state, and then no contribution excuses the merge.
    with pytest.raises(tt.IllegalError, match="identity"):
        tt.verify(region_of(MODULAR, 0, lambda s, x: s + x * 3))


def test_an_identity_has_to_keep_the_seed():
    clipped = tt.Merge(lambda a, b: tt.maximum(a, b), 0, commutative=True)

    def largest(s, x):
        return tt.maximum(s, tt.maximum(x, 0))

    tt.verify(region_of(clipped, 0, largest))
    for seed in (-100, "loaded"):
        with pytest.raises(tt.IllegalError, match="identity"):
            tt.verify(region_of(clipped, seed, largest))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounding_of_narrow_floats_refutes_no_law(dtype):
    """Products of complex numbers cancel, so that in 16 bits their rounding errors are as large as they."""

    @tt.kernel
    def product(X, Y, *, merge):
        for _ in tt.parallel(1):
            Y[0], Y[1] = tt.reduce_tile((X[:], X[:]), 0, merge)

    def verified(fn):
        merge = tt.Merge(fn, (1.0, 0.0), commutative=True)
        tt.verify(product.trace(tt.spec((5,), dtype), tt.spec((2,), dtype), merge=merge))

    verified(lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]))
    with pytest.raises(tt.IllegalError, match="merge"):
        verified(lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * 2))
