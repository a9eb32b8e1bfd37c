"""Names across regions: carried state, locals, loop variables, and what a captured body may not do."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: B007, F821, F841, SIM113

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError, OperandError
from tvm_tile.ir.ops import FromIndex, Full, Load, Store
from tvm_tile.ir.regions import Parallel, Reduce, Serial
from tvm_tile.ir.structure import walk

F4 = tt.spec((16,), "float32")
I4 = tt.spec((16,), "int32")


def only(program, kind):
    (found,) = [s for s in walk(program) if isinstance(s, kind)]
    return found


def test_swap_is_simultaneous():
    @tt.kernel
    def k(X):
        a, b = X[0], X[1]
        for _ in tt.serial(5):
            a, b = b, a + b
        X[0] = a

    loop = only(k.trace(F4), Serial)
    assert [v.name for v in loop.args] == ["a", "b"]
    assert loop.yields[0] == loop.args[1]
    assert loop.yields[1] == loop.body.statements[-1].result


def test_states_are_in_the_order_of_their_first_assignment_before_the_loop():
    @tt.kernel
    def k(X):
        late = early = None
        zeta = X[0]
        alpha = X[1]
        for _ in tt.serial(2):
            alpha = alpha + 1.0
            zeta = zeta + alpha
        X[0], X[1] = zeta, alpha
        late = early

    assert [v.name for v in only(k.trace(F4), Serial).args] == ["zeta", "alpha"]


def test_unchanged_state_is_not_carried():
    @tt.kernel
    def k(X, *, skip):
        s = X[0]
        t = X[1]
        for i in tt.serial(3):
            if not skip:
                s = s + 1.0
            u = s
            s = u
            t = t * s
            X[i] = t

    assert [v.name for v in only(k.trace(F4, skip=False), Serial).args] == ["s", "t"]
    program = k.trace(F4, skip=True)
    loop = only(program, Serial)
    assert [v.name for v in loop.args] == ["t"]
    product = next(s for s in loop.body.statements if s.results)
    assert product.operands[1] == program.body.statements[0].result


def test_value_of_the_end_of_an_iteration_is_carried_not_that_of_its_middle():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.serial(3):
            X[i] = s
            s = s + 1.0
            X[i + 3] = s
            s = s * 2.0

    loop = only(k.trace(F4), Serial)
    first, second = [s for s in loop.body.statements if isinstance(s, Store)]
    assert first.value == loop.args[0]
    assert second.value != loop.yields[0]


def test_local_of_an_iteration_has_no_value_after_the_loop(refused):
    @tt.kernel
    def k(X):
        for i in tt.serial(3):
            z = X[i]
        X[0] = z

    error = refused(
        CaptureError, lambda: k.trace(F4), "'z'", "local to one iteration", "before the loop", at="z"
    )
    assert isinstance(error.__cause__, NameError)


def test_local_read_before_its_assignment_is_explained(refused):
    @tt.kernel
    def k(X):
        for i in tt.serial(3):
            X[i] = z
            z = X[i]

    refused(
        CaptureError, lambda: k.trace(F4), "'z' is read before its assignment", "iteration before", at="z"
    )


def test_loop_variable_has_no_value_after_the_loop(refused):
    @tt.kernel
    def k(X):
        i = 3
        for i in tt.serial(3):
            X[i] = 0.0
        X[i] = 1.0

    refused(CaptureError, lambda: k.trace(F4), "'i' is a variable of the tt.serial loop", at="i")


def test_undefined_name_is_a_plain_name_error(refused):
    @tt.kernel
    def k(X):
        X[0] = nowhere

    refused(CaptureError, lambda: k.trace(F4), "name 'nowhere' is not defined", at="nowhere")


@pytest.mark.parametrize(("start", "dtype"), [(0.0, "float32"), (0, "float32"), (True, "float32")])
def test_python_number_is_no_state(refused, start, dtype):
    @tt.kernel
    def k(X):
        s = start
        for i in tt.serial(3):
            s = s + X[i]
        X[0] = s

    fix = f's = tt.full((), {start!r}, "{dtype}")'
    refused(CaptureError, lambda: k.trace(F4), f"the Python number {start!r}", fix, at="s + X[i]")


def test_python_number_that_stays_is_fine():
    @tt.kernel
    def k(X):
        n = 2
        name = ("a", 1)
        for i in tt.serial(3):
            n = 2
            name = ("a", 1)
            X[i] = float(n + len(name))
        X[n] = 0.0

    assert only(k.trace(F4), Serial).args == ()


def test_python_counter_is_refused(refused):
    @tt.kernel
    def k(X):
        n = 0
        for i in tt.serial(3):
            n += 1
            X[i] = float(n)

    refused(CaptureError, lambda: k.trace(F4), "'n' is the Python number 0", "1 after one iteration", "int64")


def test_python_object_is_no_state(refused):
    @tt.kernel
    def ping(X, Y):
        source, target = X, Y
        for i in tt.serial(3):
            target[i] = source[i]
            source, target = target, source

    @tt.kernel
    def grown(X):
        parts = ()
        for i in tt.serial(3):
            parts = (*parts, X[i])

    refused(CaptureError, lambda: ping.trace(F4, F4), "'source'", "only tiles and indices are carried")
    refused(CaptureError, lambda: grown.trace(F4), "'parts'", "only tiles and indices are carried")


def test_type_of_a_state_stays(refused):
    @tt.kernel
    def dtype(X):
        s = X[0]
        for i in tt.serial(3):
            s = s + X[i].astype("float64")
        X[0] = s.astype("float32")

    @tt.kernel
    def shape(X):
        s = X[0:1]
        for i in tt.serial(3):
            s = s + X[0:4]
        X[0:4] = s

    for call in (lambda: dtype.trace(F4),):
        error = refused(
            OperandError,
            call,
            "float32[] before",
            "float64[] after",
            '.astype("float32")',
            at='s + X[i].astype("float64")',
        )
        assert isinstance(error, CaptureError)
        assert isinstance(error, ArgumentError)
    refused(OperandError, lambda: shape.trace(F4), "float32[1]", "float32[4]", at="s + X[0:4]")


def test_number_assigned_to_a_scalar_state_takes_its_dtype():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.serial(3):
            X[i] = s
            s = 1

    loop = only(k.trace(F4), Serial)
    assert str(loop.yields[0].type) == "float32[]"


def test_index_is_carried_as_an_index():
    @tt.kernel
    def k(X):
        for i in tt.parallel(2):
            at = i * 8
            for _ in tt.serial(3):
                X[tt.ds(at, 2)] = 0.0
                at = at + 2
            X[at] = 1.0

    program = k.trace(F4)
    loop = only(program, Serial)
    assert str(loop.args[0].type) == "int64[]"
    assert isinstance(loop.body.statements[-1], FromIndex)
    assert str(loop.body.statements[1].view.subscripts[0].start) == str(loop.args[0])


def test_unchanged_index_is_not_carried():
    @tt.kernel
    def k(X, *, move):
        for i in tt.parallel(2):
            at = i * 8
            for _ in tt.serial(3):
                X[at] = 0.0
                if move:
                    at = at + 1

    assert only(k.trace(F4, move=False), Serial).args == ()
    assert len(only(k.trace(F4, move=True), Serial).args) == 1


def test_region_inside_a_python_loop_carries_once_a_turn():
    @tt.kernel
    def k(X):
        s = X[0]
        for _ in range(2):
            for i in tt.serial(3):
                s = s + X[i]
        X[0] = s

    first, second = [s for s in walk(k.trace(F4)) if isinstance(s, Serial)]
    assert second.inits == first.results


def test_python_loop_inside_a_region_unrolls_into_it():
    @tt.kernel
    def k(X):
        q = 7
        s = X[q]
        for i in tt.serial(3):
            for q in range(4):
                s = s + X[i + q]
        X[0] = s

    loop = only(k.trace(F4), Serial)
    assert sum(isinstance(s, Load) for s in loop.body.statements) == 4
    assert loop.yields == loop.body.statements[-1].results


def test_variable_of_an_inner_python_loop_is_local(refused):
    @tt.kernel
    def k(X):
        for q in range(4):
            X[q] = 0.0
        for _ in tt.serial(3):
            for q in range(2):
                X[q] = 0.0
        X[q] = 1.0

    refused(CaptureError, lambda: k.trace(F4), "'q'", at="q")


def test_state_of_the_outer_loop_in_the_inner_one():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.serial(2):
            s = s * 2.0
            for j in tt.serial(3):
                s = s + X[i + j]
        X[0] = s

    outer, inner = [s for s in walk(k.trace(F4)) if isinstance(s, Serial)]
    assert outer.yields == inner.results
    assert inner.inits == (outer.body.statements[1].result,)


def test_augmented_assignment_carries():
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.reduce(3):
            s += X[i]
        X[0] = s

    loop = only(k.trace(F4), Reduce)
    assert loop.merge.builtin == ("add",)
    assert loop.results[0].name == "s"


def test_walrus_and_with_names_are_carried():
    from contextlib import nullcontext

    @tt.kernel
    def k(X):
        s = t = X[0]
        for i in tt.serial(3):
            X[i] = (s := s + 1.0)
            with nullcontext(t + 2.0) as t:
                X[i] = t
        X[0] = s + t

    assert [v.name for v in only(k.trace(F4), Serial).args] == ["s", "t"]


@tt.kernel
def has_break(X):
    for i in tt.parallel(4):
        if i is None:
            break
        X[i] = 0.0


@tt.kernel
def has_continue(X):
    for i in tt.serial(4):
        X[i] = 0.0
        continue


@tt.kernel
def has_return(X):
    for i in tt.pipeline(4):
        for q in range(3):
            return
        X[i] = 0.0


@tt.kernel
def has_while(X):
    for i in tt.serial(4):
        while X is None:
            X[i] = 0.0


@tt.kernel
def has_else(X):
    for i in tt.serial(4):
        X[i] = 0.0
    else:
        X[0] = 1.0


@pytest.mark.parametrize(
    ("kernel", "keyword", "at"),
    [
        (has_break, "break", "break"),
        (has_continue, "continue", "continue"),
        (has_return, "return", "return"),
        (has_while, "while", "while X is None"),
        (has_else, "else", "X[0] = 1.0"),
    ],
)
def test_jump_in_a_region_is_refused_at_its_place(refused, kernel, keyword, at):
    error = refused(CaptureError, lambda: kernel.trace(F4), keyword, "tt.", at=at)
    assert error.suggestion


def test_jumps_of_python_loops_and_helpers_stay():
    def first_below(X, limit):
        for q in range(16):
            if q * q > limit:
                return q
        return 0

    @tt.kernel
    def k(X):
        for i in tt.serial(4):
            for q in range(8):
                if q == 2:
                    continue
                if q == 3:
                    break
                X[i] = float(q)
            X[i] = float(first_below(X, 10))

    assert sum(isinstance(s, Store) for s in walk(k.trace(F4))) == 3


def test_return_before_a_region_is_fine():
    @tt.kernel
    def k(X, *, empty):
        if empty:
            return
        for i in tt.parallel(4):
            X[i] = 0.0

    assert not k.trace(F4, empty=True).body.statements
    assert k.trace(F4, empty=False).body.statements


def test_del_of_an_outer_name_is_refused(refused):
    @tt.kernel
    def k(X):
        s = X[0]
        for i in tt.serial(4):
            del s
            X[i] = 0.0

    @tt.kernel
    def fine(X):
        for i in tt.serial(4):
            t = X[i]
            del t

    refused(CaptureError, lambda: k.trace(F4), "del", "'s'", at="del s")
    fine.trace(F4)


def test_nonlocal_assignment_in_a_region_is_refused(refused):
    @tt.kernel
    def k(X):
        total = X[0]

        def step(x):
            nonlocal total
            total = total + x

        for i in tt.serial(4):
            step(X[i])
            X[i] = total

    refused(CaptureError, lambda: k.trace(F4), "nonlocal 'total'", at="total + x")


def test_global_assignment_in_a_region_is_refused(refused):
    @tt.kernel
    def k(X):
        global GLOBAL_STATE
        for i in tt.serial(4):
            GLOBAL_STATE = X[i]

    refused(CaptureError, lambda: k.trace(F4), "global or nonlocal 'GLOBAL_STATE'", at="GLOBAL_STATE = X[i]")


def test_python_counter_in_a_helper_is_fine():
    count = 0

    @tt.kernel
    def k(X):
        def tick():
            nonlocal count
            count += 1

        for i in tt.serial(4):
            tick()
            X[i] = 0.0

    k.trace(F4)
    assert count == 1


def test_tile_put_into_an_outer_container_is_refused(refused):
    class Box:
        pass

    @tt.kernel
    def listed(X):
        parts = [X[0]]
        for i in tt.serial(4):
            parts[0] = parts[0] + X[i]

    @tt.kernel
    def keyed(X):
        state = {}
        for i in tt.serial(4):
            state["s"] = X[i]

    @tt.kernel
    def boxed(X):
        box = Box()
        for i in tt.serial(4):
            box.value = X[i]

    refused(CaptureError, lambda: listed.trace(F4), "parts[0]", "captured once")
    refused(CaptureError, lambda: keyed.trace(F4), "state['s']", "captured once")
    refused(CaptureError, lambda: boxed.trace(F4), "box.value", "captured once")


def test_container_of_the_surroundings_may_keep_tiles_for_inspection(refused):
    seen = {}

    @tt.kernel
    def k(X, *, twice=False):
        for i in tt.serial(4):
            x = X[i]
            seen["x"] = x
        if twice:
            for _ in tt.serial(4):
                seen["x"] = seen["x"] + 1.0

    k.trace(F4)
    k.trace(F4)
    assert seen["x"].shape == ()
    refused(CaptureError, lambda: k.trace(F4, twice=True), "cannot be read outside")


def test_container_made_inside_the_region_is_fine():
    @tt.kernel
    def k(X):
        for i in tt.serial(4):
            parts = []
            for q in range(3):
                parts.append(X[q])
            X[i] = sum(parts)

    k.trace(F4)


def test_tile_that_left_its_region_is_refused(refused):
    kept = []

    @tt.kernel
    def k(X):
        for i in tt.serial(4):
            kept.append(X[i])
        X[0] = kept[-1]

    @tt.kernel
    def index(X):
        at = {}
        for i in tt.serial(4):
            at = {"i": i}
            kept.append(at)
        X[kept[-1]["i"]] = 0.0

    refused(CaptureError, lambda: k.trace(F4))
    kept.clear()
    refused(CaptureError, lambda: index.trace(F4))


def test_state_in_parallel_keeps_the_mechanism():
    @tt.kernel
    def k(X):
        T = X[0:4]
        for i in tt.parallel(4):
            U = T * 2.0
            T = U
            X[i] = 0.0
        X[0:4] = T

    loop = only(k.trace(F4), Parallel)
    assert [v.name for v in loop.results] == ["T"]


def test_loop_variables_count_like_the_extents(refused):
    @tt.kernel
    def two(X):
        for i, j in tt.parallel(4):
            X[i] = 0.0

    @tt.kernel
    def three(X):
        for i, j, m in tt.parallel(4, 2):
            X[i] = 0.0

    @tt.kernel
    def point(X):
        for p in tt.parallel(4, 2):
            X[p[0]] = float(len(p))

    refused(CaptureError, lambda: two.trace(F4), "1 extent", "2 loop variables", at="tt.parallel(4)")
    refused(CaptureError, lambda: three.trace(F4), "2 extents", "3 loop variables")
    assert len(only(point.trace(F4), Parallel).indices) == 2


def test_region_outside_of_a_for_statement_is_refused(refused):
    @tt.kernel
    def comprehension(X):
        X[0] = sum([X[i] for i in tt.serial(4)])

    @tt.kernel
    def listed(X):
        list(tt.serial(4))

    @tt.kernel
    def enumerated(X):
        for _, i in enumerate(tt.serial(4)):
            X[i] = 0.0

    refused(
        CaptureError, lambda: comprehension.trace(F4), "tt.serial", "for", at="[X[i] for i in tt.serial(4)]"
    )
    refused(CaptureError, lambda: listed.trace(F4), "tt.serial", at="list(tt.serial(4))")
    refused(CaptureError, lambda: enumerated.trace(F4), "tt.serial", at="enumerate(tt.serial(4))")


def test_numbers_of_iterations_zero_and_one():
    @tt.kernel
    def k(X, *, n):
        s = X[0]
        for i in tt.serial(n):
            s = s + X[i]
        X[0] = s

    for n in (0, 1, np.int64(3)):
        loop = only(k.trace(F4, n=n), Serial)
        assert str(loop.domain.extents[0]) == str(int(n))


def test_dead_values_do_not_name_constants():
    @tt.kernel
    def k(X):
        a = X[0]
        b = a
        c = tt.full((), 1.0, "float32")
        X[1] = b + c

    program = k.trace(F4)
    assert program.body.statements[0].result.name == "a"
    assert only(program, Full).result.name == "c"
