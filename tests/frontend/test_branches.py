"""``if`` statements: on Python values one arm during capture, on tiles both arms in the program."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: SIM108

import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError
from tvm_tile.ir.ops import Store
from tvm_tile.ir.regions import If, Serial
from tvm_tile.ir.structure import walk

F4 = tt.spec((16,), "float32")
I4 = tt.spec((16,), "int32")


def branches(program):
    return [s for s in walk(program) if isinstance(s, If)]


def test_python_condition_takes_one_arm():
    @tt.kernel
    def k(X, *, flag):
        if flag:
            X[0] = 1.0
        elif flag is None:
            X[1] = 2.0
        else:
            X[2] = 3.0

    for flag, place in ((True, "0"), (None, "1"), (False, "2")):
        program = k.trace(F4, flag=flag)
        assert not branches(program)
        (store,) = [s for s in walk(program) if isinstance(s, Store)]
        assert str(store.view.subscripts[0]) == place


def test_tile_condition_captures_both_arms_with_the_names_that_differ():
    @tt.kernel
    def k(X):
        s = X[0]
        t = X[1]
        u = X[2]
        if s > 0.0:
            s = s + 1.0
            t = t * 2.0
            u = u
        else:
            t = t * 3.0
        X[0] = s + t + u

    (branch,) = branches(k.trace(F4))
    assert [v.name for v in branch.results] == ["s", "t"]
    assert branch.else_yields[0].name == "s"
    assert branch.then_yields[1] in branch.then.statements[-1].results


def test_swap_in_an_arm_is_simultaneous():
    @tt.kernel
    def k(X):
        a, b = X[0], X[1]
        if a > b:
            a, b = b, a
        X[0], X[1] = a, b

    (branch,) = branches(k.trace(F4))
    assert branch.then_yields == branch.else_yields[::-1]
    assert not branch.then.statements


def test_elif_nests():
    @tt.kernel
    def k(X):
        s = X[0]
        if s > 2.0:
            s = s - 1.0
        elif s > 1.0:
            s = s - 2.0
        else:
            s = s - 3.0
        X[0] = s

    outer, inner = branches(k.trace(F4))
    assert outer.else_yields == inner.results


def test_index_condition_is_a_branch():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            if i % 2 == 0:
                X[i] = 0.0
            if (i > 0) & (i < 3):
                X[i + 4] = 0.0

    assert len(branches(k.trace(F4))) == 2


def test_number_in_an_arm_takes_the_type_of_the_other():
    @tt.kernel
    def k(X):
        s = X[0:4]
        if X[0] > 0.0:
            s = 0
        X[0:4] = s

    (branch,) = branches(k.trace(F4))
    assert str(branch.results[0].type) == "float32[4]"


def test_name_of_one_arm_is_undefined_afterwards(refused):
    @tt.kernel
    def k(X):
        if X[0] > 0.0:
            t = X[1]
        X[2] = t

    refused(CaptureError, lambda: k.trace(F4), "'t' is assigned", "one arm", at="t")


def test_name_of_one_arm_that_is_not_read_is_fine():
    @tt.kernel
    def k(X):
        if X[0] > 0.0:
            t = X[1]
            X[2] = t

    assert not branches(k.trace(F4))[0].results


def test_name_of_both_arms_needs_one_type(refused):
    @tt.kernel
    def shapes(X, *, read):
        if X[0] > 0.0:
            t = X[0:2]
            X[0:2] = t
        else:
            t = X[0:3]
            X[0:3] = t
        if read:
            X[0:2] = t

    @tt.kernel
    def numbers(X):
        if X[0] > 0.0:
            n = 1
        else:
            n = 2
        X[0] = n

    shapes.trace(F4, read=False)
    refused(CaptureError, lambda: shapes.trace(F4, read=True), "float32[2]", "float32[3]", at="t")
    refused(CaptureError, lambda: numbers.trace(F4), "'n' is 1", "2 in the other", "tt.full", at="n")


def test_equal_python_values_of_both_arms_stay():
    @tt.kernel
    def k(X):
        if X[0] > 0.0:
            n = 3
        else:
            n = 3
        X[n] = 0.0

    k.trace(F4)


def test_branch_in_a_loop_feeds_its_state():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.serial(4):
            if X[i] > 0.0:
                s = s + X[i]
        X[0] = s

    program = k.trace(F4)
    (loop,) = [s for s in walk(program) if isinstance(s, Serial)]
    assert loop.yields == branches(program)[0].results


def test_masked_contribution_derives_its_merge():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.reduce(4):
            if X[i] > 0.0:
                s = s + X[i]
        X[0] = s

    k.trace(F4)


@pytest.mark.parametrize(
    ("words", "condition", "at"),
    [
        (("float32[]", "x != 0"), lambda X: X[0], "condition(X)"),
        (("bool[4]", "tt.any"), lambda X: X[0:4] > 0, "condition(X)"),
    ],
)
def test_condition_is_a_bool_scalar(refused, words, condition, at):
    @tt.kernel
    def k(X):
        if condition(X):
            X[0] = 0.0

    refused(CaptureError, lambda: k.trace(F4), "bool scalar", *words, at=at)


def test_index_is_no_condition(refused):
    @tt.kernel
    def k(X):
        for i in tt.serial(4):
            if i:
                X[0] = 0.0

    refused(CaptureError, lambda: k.trace(F4), "index i", "truth value", at="i")


def test_python_logic_on_tiles_is_refused_with_the_way_out(refused):
    @tt.kernel
    def conjunction(X):
        if X[0] > 0 and X[1] > 0:
            X[0] = 0.0

    @tt.kernel
    def chained(X):
        for i in tt.serial(4):
            if 0 < i < 3:
                X[0] = 0.0

    @tt.kernel
    def negated(X):
        if not X[0] > 0:
            X[0] = 0.0

    @tt.kernel
    def selected(X):
        X[0] = 1.0 if X[0] > 0 else 2.0

    @tt.kernel
    def asserted(X):
        assert X[0] > 0

    for k, remedy, at in (
        (conjunction, "(X[0] > 0) & (X[1] > 0)", "X[0] > 0 and X[1] > 0"),
        (chained, "(0 < i) & (i < 3)", "0 < i < 3"),
        (negated, "~(X[0] > 0)", "not X[0] > 0"),
        (selected, "tt.where(X[0] > 0, 1.0, 2.0)", None),
        (asserted, "shapes, dtypes and constants", None),
    ):
        refused(CaptureError, lambda k=k: k.trace(F4), "truth value", remedy, at=at)


@tt.kernel
def returns(X):
    if X[0] > 0:
        return
    X[0] = 0.0


@tt.kernel
def breaks(X):
    for q in range(4):
        if X[q] > 0:
            break


@tt.kernel
def continues(X):
    for q in range(4):
        if X[q] > 0:
            X[q] = 0.0
        else:
            continue


@pytest.mark.parametrize(
    ("kernel", "keyword"), [(returns, "return"), (breaks, "break"), (continues, "continue")]
)
def test_jump_under_a_tile_condition_is_refused(refused, kernel, keyword):
    refused(CaptureError, lambda: kernel.trace(F4), keyword, "known only when the program runs", at=keyword)


def test_return_of_a_helper_under_a_tile_condition_is_refused(refused):
    def clamp(x):
        if x > 1.0:
            return 1.0
        return x

    @tt.kernel
    def k(X):
        X[0] = clamp(X[0])

    refused(CaptureError, lambda: k.trace(F4), "return", at="return 1.0")


def test_loop_inside_a_loop_of_an_arm_may_break():
    @tt.kernel
    def k(X):
        if X[0] > 0:
            for q in range(4):
                if q == 2:
                    break
                X[q] = 0.0

    (branch,) = branches(k.trace(F4))
    assert sum(isinstance(s, Store) for s in branch.then.statements) == 2


def test_container_filled_in_an_arm_is_refused(refused):
    @tt.kernel
    def k(X):
        parts = []
        if X[0] > 0:
            parts.append(X[1])

    refused(CaptureError, lambda: k.trace(F4), "parts[0]", "both arms are captured")


def test_tile_of_an_arm_cannot_be_read_after_it(refused):
    kept = {}

    def keep(x):
        kept["x"] = x

    def kept_one():
        return kept["x"]

    @tt.kernel
    def k(X):
        if X[0] > 0:
            keep(X[1])
        X[2] = kept_one() + 1.0

    refused(CaptureError, lambda: k.trace(F4), "branch body", "cannot be read outside", at="kept_one() + 1.0")


def test_effects_stay_in_their_arms():
    @tt.kernel
    def k(X):
        if X[0] > 0:
            X[1] = 1.0
        else:
            X[2] = 2.0

    (branch,) = branches(k.trace(F4))
    assert len(branch.then.statements) == len(branch.orelse.statements) == 2


def test_branch_without_any_effect_leaves_nothing():
    @tt.kernel
    def k(X):
        if X[0] > 0:
            pass

    assert not branches(k.trace(F4))
