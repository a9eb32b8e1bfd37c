"""Region loops: domains, stages, bindings, reduction policies and merges."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: B023, F821, SIM102, SIM108

import itertools

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError
from tvm_tile.ir.ops import Stage
from tvm_tile.ir.regions import Loop, Parallel, Pipeline, Reduce, Serial
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.interpreter import interpret

F4 = tt.spec((16,), "float32")


def only(program, kind=Loop):
    (found,) = [s for s in walk(program) if isinstance(s, kind)]
    return found


def test_kinds_and_their_options():
    @tt.kernel
    def k(X):
        for i, j in tt.parallel(2, 3, bind="worker"):
            X[i * 3 + j] = 0.0
        for t in tt.serial(4):
            X[t] = 0.0
        for t in tt.pipeline(4, versions=2, ii=1):
            tt.stage("a")
            X[t] = 0.0

    first, second, third = [s for s in walk(k.trace(F4)) if isinstance(s, Loop)]
    assert (type(first), first.bind, [v.name for v in first.indices]) == (Parallel, "worker", ["i", "j"])
    assert type(second) is Serial
    assert (type(third), third.versions, third.ii) == (Pipeline, 2, 1)


def test_domain_with_a_predicate():
    seen = np.zeros((4, 5), "f4")

    @tt.kernel
    def k(X, *, n):
        for i, j in tt.parallel(4, 5, where=lambda i, j: (j <= i) & ~(i == n) | (j == 4)):
            X[i, j] = 1.0

    program = k.trace(seen, n=2)
    interpret(program, seen)
    expected = [[(j <= i and i != 2) or j == 4 for j in range(5)] for i in range(4)]
    np.testing.assert_array_equal(seen, expected)


def test_predicate_may_read_what_is_around_it():
    @tt.kernel
    def k(X, n: tt.Scalar["int32"]):
        for i in tt.parallel(4):
            for j in tt.serial(4, where=lambda j: (j < i) & (n > j)):
                X[i * 4 + j] = 1.0

    x = np.zeros(16, "f4")
    interpret(k.trace(x, 2), x, 2)
    assert x.tolist() == [float(j < i and j < 2) for i, j in itertools.product(range(4), range(4))]


def test_predicate_may_be_a_python_bool():
    @tt.kernel
    def k(X, *, flag):
        for i in tt.parallel(4, where=lambda i: flag):
            X[i] = 1.0

    assert only(k.trace(F4, flag=True)).domain.where is None
    assert str(only(k.trace(F4, flag=False)).domain.where) == "false"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (lambda X: lambda i: X[i] > 0, ("no comparison of indices",)),
        (lambda X: lambda i: 1, ("no comparison of indices", "1")),
        (lambda X: lambda i: i, ("no comparison of indices", "index i")),
        (lambda X: 3, ("no function",)),
        (lambda X: lambda i, j: True, ("other parameters", "1 index", "'j'")),
        (lambda X: lambda i: 0 < i < 2, ("truth value",)),
    ],
)
def test_other_predicates_are_refused(refused, where, words):
    @tt.kernel
    def k(X):
        for i in tt.parallel(4, where=where(X)):
            X[i] = 0.0

    refused(CaptureError, lambda: k.trace(F4), *words)


@pytest.mark.parametrize(
    ("extents", "words"),
    [
        (lambda X: (), ("needs an extent",)),
        (lambda X: (-1,), ("negative extent -1",)),
        (lambda X: (2.5,), ("float 2.5",)),
        (lambda X: (True,), ("bool True",)),
        (lambda X: (X[0],), ("float32[]",)),
        (lambda X: ((2, 3),), ("tuple (2, 3)",)),
        (lambda X: (X,), ("tensor 'X'",)),
        (lambda X: ("4",), ("str '4'",)),
    ],
)
@pytest.mark.parametrize("kind", ["parallel", "serial", "pipeline", "reduce"])
def test_extents_are_integers(refused, extents, words, kind):
    @tt.kernel
    def k(X):
        for _ in getattr(tt, kind)(*extents(X)):
            pass

    error = refused(
        CaptureError, lambda: k.trace(F4), f"tt.{kind}", *words, at="getattr(tt, kind)(*extents(X))"
    )
    assert error.suggestion


def test_extents_known_when_the_program_runs():
    @tt.kernel
    def k(X, n: tt.Scalar["int64"]):
        for i in tt.serial(tt.minimum(n, 4)):
            for j in tt.serial(i + 1):
                X[i * 4 + j] = 1.0

    x = np.zeros(16, "f4")
    interpret(k.trace(x, 3), x, 3)
    assert x.sum() == 6


def test_extent_of_zero():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.reduce(0):
            s = s + X[i]
        X[1] = s

    x = np.array([5.0, 0.0], "f4")
    interpret(k.trace(x), x)
    assert x.tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tt.parallel(4, bind="blocks"), ("'blocks'", "worker")),
        (lambda: tt.pipeline(4, versions=0), ("versions=0",)),
        (lambda: tt.pipeline(4, ii=1.5), ("ii=1.5",)),
        (lambda: tt.reduce(4, policy="tree"), ("'tree'", "unordered_tree", "fold_left")),
        (lambda: tt.reduce(4, merge=max), ("merge=", "tt.Merge")),
    ],
)
def test_options_are_checked(refused, call, words):
    @tt.kernel
    def k(X):
        for _ in call():
            pass

    refused(CaptureError, lambda: k.trace(F4), *words)


def test_stages_mark_the_body_of_a_pipeline():
    @tt.kernel
    def k(X):
        for i in tt.pipeline(4):
            tt.stage("load")
            x = X[i]
            tt.stage("store")
            X[i] = x

    assert [s.name for s in walk(k.trace(F4)) if isinstance(s, Stage)] == ["load", "store"]


def test_stage_elsewhere_is_refused(refused):
    @tt.kernel
    def k(X, *, form):
        if form == "kernel":
            tt.stage("a")
        for i in tt.pipeline(4):
            if form == "twice":
                tt.stage("a")
                tt.stage("a")
            if form == "name":
                tt.stage(3)
            if form == "branch":
                if X[i] > 0:
                    tt.stage("a")
            for j in tt.serial(2):
                if form == "serial":
                    tt.stage("a")
                X[i + j] = 0.0

    for form, word in (
        ("kernel", "kernel body"),
        ("serial", "serial body"),
        ("branch", "branch body"),
        ("twice", "already"),
    ):
        refused(CaptureError, lambda form=form: k.trace(F4, form=form), word, at='tt.stage("a")')
    refused(CaptureError, lambda: k.trace(F4, form="name"), "string", at="tt.stage(3)")


@pytest.mark.parametrize(
    ("update", "builtin"),
    [
        (lambda s, e: s + e, "add"),
        (lambda s, e: e + s, "add"),
        (lambda s, e: s * e, "multiply"),
        (lambda s, e: tt.maximum(s, e), "maximum"),
        (lambda s, e: tt.minimum(e, s), "minimum"),
        (lambda s, e: s & e, "and"),
        (lambda s, e: s | e, "or"),
        (lambda s, e: s ^ e, "xor"),
    ],
)
def test_merge_is_derived_from_the_form_of_the_update(update, builtin):
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.reduce(4):
            s = update(s, X[i])
        X[0] = s

    merge = only(k.trace(tt.spec((16,), "int32"))).merge
    assert (merge.builtin, merge.provenance) == ((builtin,), "derived")


@pytest.mark.parametrize(
    "update", [lambda s, e: s - e, lambda s, e: e - s, lambda s, e: s * 2 + e, lambda s, e: s + s * e]
)
def test_tree_without_a_merge_is_illegal_and_a_fold_is_not(refused, update):
    @tt.kernel
    def k(X, *, policy):
        s = X[0]
        for i in tt.reduce(4, policy=policy):
            s = update(s, X[i])
        X[0] = s

    for policy in ("unordered_tree", "ordered_tree"):
        error = refused(
            IllegalError,
            lambda policy=policy: k.trace(F4, policy=policy),
            "s",
            'policy="fold_left"',
            at="tt.reduce(4, policy=policy)",
        )
        assert "merge=" in error.suggestion
    for policy in ("fold_left", "fold_right"):
        assert only(k.trace(F4, policy=policy)).merge is None


def test_state_that_the_body_does_not_change_is_none():
    @tt.kernel
    def k(X):
        s = X[0]
        t = X[1]
        for i in tt.reduce(4):
            t = s
            t = X[1]
            s = s + X[i]
        X[0] = s + t

    # `t` is not the state it was; only its own value makes it one.
    @tt.kernel
    def fine(X):
        s = X[0]
        t = X[1]
        for i in tt.reduce(4):
            u = t * X[i]
            s = s + u
        X[0] = s

    assert [v.name for v in only(fine.trace(F4)).args] == ["s"]
    with pytest.raises(IllegalError):
        k.trace(F4)


def test_index_counts_in_a_reduction():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            n = i * 2
            for j in tt.reduce(5):
                n = n + j
            X[i] = n

    x = np.zeros(4, "f4")
    program = k.trace(x)
    interpret(program, x)
    assert x.tolist() == [10.0, 12.0, 14.0, 16.0]
    assert only(program, Reduce).merge.builtin == ("add",)


def welford():
    def merge(a, b):
        (n, m, s), (p, q, r) = a, b
        total = n + p
        delta = q - m
        share = p / tt.maximum(total, 1.0)
        return total, m + delta * share, s + r + delta * delta * n * share

    return tt.Merge(merge, (0.0, 0.0, 0.0))


def test_declared_merge_of_several_states():
    @tt.kernel
    def variance(X, Y):
        for _ in tt.parallel(1):
            n = m = s = tt.zeros((), "float64")
            for r in tt.reduce(X.shape[0], policy="ordered_tree", merge=welford()):
                n = n + 1.0
                delta = X[r] - m
                m = m + delta / n
                s = s + delta * (X[r] - m)
            Y[0] = m
            Y[1] = s / n

    x, y = np.random.default_rng(0).random(37), np.zeros(2)
    program = variance.trace(x, y)
    merge = only(program, Reduce).merge
    assert merge.provenance == "declared"
    assert [v.name for v in only(program, Reduce).args] == ["n", "m", "s"]
    for reduction in ("source", "reverse", 3):
        interpret(program, x, y, reduction=reduction)
        np.testing.assert_allclose(y, [x.mean(), x.var()], rtol=1e-12)


def test_merge_with_lift_and_functions():
    def larger(a, b):
        if a >= b:
            c = a
        else:
            c = b
        return c

    @tt.kernel
    def k(X, Y, *, lifted):
        best = tt.full((), -1.0, "float32")
        merge = tt.Merge(
            larger,
            lambda: tt.full((), float("-inf"), "float32"),
            lift=(lambda r: X[r] * 2.0) if lifted else None,
            commutative=True,
            exact=True,
        )
        for r in tt.reduce(5, merge=merge):
            best = tt.where(X[r] * 2.0 > best, X[r] * 2.0, best)
        Y[0] = best

    x, y = np.array([1, 5, 3, -2, 4], "f4"), np.zeros(1, "f4")
    for lifted in (False, True):
        program = k.trace(x, y, lifted=lifted)
        merge = only(program, Reduce).merge
        assert (merge.lift is not None, merge.commutative, merge.exact) == (lifted, True, True)
        interpret(program, x, y, reduction=7)
        assert y[0] == 10.0


def test_identity_of_a_merge_may_be_a_tile():
    @tt.kernel
    def k(X):
        s = X[0]
        zero = tt.zeros((), "float32")
        for i in tt.reduce(4, merge=tt.Merge(lambda a, b: a + b, zero, commutative=True)):
            s = s + X[i] * X[i]
        X[0] = s

    x = np.arange(4.0, dtype="f4")
    interpret(k.trace(x), x, reduction=2)
    assert x[0] == 14.0


@pytest.mark.parametrize(
    ("merge", "kind", "words"),
    [
        (
            lambda: tt.Merge(lambda a, b: (a, b), 0.0),
            CaptureError,
            ("2 states", "the 1 of the reduction (s)"),
        ),
        (lambda: tt.Merge(lambda a, b: a + b, (0.0, 0.0)), CaptureError, ("identity", "2 states")),
        (
            lambda: tt.Merge(lambda a, b: (a + b).astype("float64"), 0.0),
            OperandError,
            ("float64[]", "'s'", "float32[]"),
        ),
        (lambda: tt.Merge(lambda a, b: a > b, 0.0), OperandError, ("bool[]", "'s'")),
        (
            lambda: tt.Merge(lambda a, b: a + b, 0.0, lift=lambda i: tt.zeros((2,), "float32")),
            OperandError,
            ("lift", "[2]"),
        ),
        (lambda: tt.Merge(lambda a, b: a + b, "zero"), OperandError, ("'zero'",)),
        (lambda: tt.Merge(None, 0.0), CaptureError, ("fn=None",)),
        (lambda: tt.Merge(lambda a, b: a + b, 0.0, lift=3), CaptureError, ("lift=3",)),
    ],
)
def test_merge_that_does_not_fit_is_refused(refused, merge, kind, words):
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.reduce(4, merge=merge()):
            s = s + X[i]
        X[0] = s

    refused(kind, lambda: k.trace(F4), *words)


def test_merge_is_pure(refused):
    @tt.kernel
    def k(X, *, form):
        def merge(a, b):
            if form == "store":
                X[0] = a
            if form == "region":
                for _ in tt.serial(2):
                    a = a + b
            return a + b

        s = X[0]
        for i in tt.reduce(4, merge=tt.Merge(merge, 0.0, commutative=True)):
            s = s + X[i]
        X[0] = s

    refused(CaptureError, lambda: k.trace(F4, form="store"), "pure", at="X[0]")
    refused(CaptureError, lambda: k.trace(F4, form="region"), "pure")
    k.trace(F4, form="none")


def test_laws_of_a_merge_admit_the_policy(refused):
    @tt.kernel
    def k(X, *, policy, associative, commutative):
        s = X[0]
        merge = tt.Merge(lambda a, b: a + b, 0.0, associative=associative, commutative=commutative)
        for i in tt.reduce(4, policy=policy, merge=merge):
            s = s + X[i]
        X[0] = s

    k.trace(F4, policy="ordered_tree", associative=True, commutative=False)
    refused(
        IllegalError,
        lambda: k.trace(F4, policy="unordered_tree", associative=True, commutative=False),
        "not commutative",
        "ordered_tree",
    )
    refused(
        IllegalError,
        lambda: k.trace(F4, policy="ordered_tree", associative=False, commutative=True),
        "not associative",
    )


def test_cdiv():
    assert [tt.cdiv(a, b) for a, b in ((0, 4), (1, 4), (4, 4), (5, 4), (-1, 4))] == [0, 1, 1, 2, 0]


def test_online_softmax_in_one_kernel():
    @tt.kernel
    def softmax(X, Y, *, block=4):
        columns = X.shape[1]
        for i in tt.parallel(X.shape[0]):
            top = tt.full((), float("-inf"), "float32")
            total = tt.zeros((), "float32")
            for b in tt.serial(tt.cdiv(columns, block)):
                x = X.at[i, tt.ds(b * block, block)].load(fill=float("-inf"))
                new = tt.maximum(top, tt.max(x))
                total = total * tt.exp(top - new) + tt.sum(tt.exp(x - new))
                top = new
            for b in tt.parallel(tt.cdiv(columns, block)):
                x = X[i, tt.ds(b * block, block)]
                Y[i, tt.ds(b * block, block)] = tt.exp(x - top) / total

    x = np.random.default_rng(0).standard_normal((3, 7)).astype("f4")
    y = np.zeros_like(x)
    interpret(softmax.trace(x, y), x, y)
    wide = np.exp(x.astype("f8"))
    np.testing.assert_allclose(y, wide / wide.sum(1, keepdims=True), rtol=1e-5)
