"""Debug runs find broken promises, and say what they covered."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tvm_tile.errors import ArgumentError, IllegalError
from tvm_tile.ir.index import IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.regions import Block, Domain, Parallel
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.semantics.conflicts import Conflict
from tvm_tile.semantics.interpreter import interpret
from tvm_tile.semantics.report import Report
from tvm_tile.semantics.shadow import Frame, ShadowMemory

ORDERS = ("source", "reverse", 0, 1)


def op(sign, i, k):
    return IndexBinary(sign, IndexVar(i), IndexConst(k))


def zeros(n):
    return np.zeros(n, np.float32)


def conflict_of(program, *arrays, **options):
    with pytest.raises(IllegalError) as caught:
        interpret(program, *arrays, debug=True, **options)
    error = caught.value
    assert error.obligation == "noninterference"
    assert error.span is not None
    assert isinstance(error.counterexample, Conflict)
    return error


@pytest.mark.parametrize("order", ORDERS)
def test_two_instances_that_write_one_element_conflict(builder, order):
    b = builder()
    Y = b.tensor("Y", (8,))
    with b.loop("parallel", 8) as p:
        b.store(Y, [op("//", p.indices[0], 2)], b.full((), 1.0))
    program = b.program(Y)
    assert interpret(program, zeros(8), order=order) is None
    conflict = conflict_of(program, zeros(8), order=order).counterexample
    one, other = (dict(t.instance)["i"] for t in (conflict.first, conflict.second))
    assert one != other
    assert conflict.first.element == conflict.second.element == (one // 2,) == (other // 2,)
    assert conflict.first.verb == conflict.second.verb == "writes"


def test_the_message_names_instances_memory_element_and_line(builder):
    b = builder()
    Y = b.tensor("Y", (4, 8))
    with b.loop("parallel", 4, names="i") as p, b.loop("parallel", 5, names="j") as q:
        b.store(Y, [p.indices[0], op("%", q.indices[0], 3)], b.full((), 1.0))
    text = str(conflict_of(b.program(Y), np.zeros((4, 8), np.float32)))
    assert "instance (i=0, j=0) writes Y[0, 0]; instance (i=0, j=3) writes Y[0, 0]" in text
    assert text.startswith("program:1:1: ")
    assert "noninterference" in text


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("distance", [1, -1, 5])
def test_reading_what_another_instance_writes_conflicts(builder, order, distance):
    b = builder()
    Y = b.tensor("Y", (8,))
    with b.loop("parallel", 8) as p:
        b.store(Y, [p.indices[0]], b.load(Y, op("+", p.indices[0], distance)))
    conflict = conflict_of(b.program(Y), zeros(8), order=order).counterexample
    verbs = {t.verb: dict(t.instance)["i"] for t in (conflict.first, conflict.second)}
    assert verbs["reads"] + distance == verbs["writes"]


@pytest.mark.parametrize("order", ORDERS)
def test_an_instance_may_read_and_write_its_own_elements(builder, order):
    b = builder()
    Y = b.tensor("Y", (8,))
    with b.loop("parallel", 8) as p:
        i = p.indices[0]
        for _ in range(2):
            b.store(Y, [i], b.apply("add", b.load(Y, i), b.full((), 1.0)))
    y = zeros(8)
    report = interpret(b.program(Y), y, order=order, debug=True)
    assert y.tolist() == [2] * 8
    assert (report.regions, report.instances, report.accesses, report.elements) == (1, 8, 32, 32)


def test_a_third_reader_is_found_though_the_writer_read_too(builder):
    # All instances read X[0] first; the last one to run writes it.
    b = builder()
    Y = b.tensor("Y", (1,))
    with b.loop("parallel", 3) as p:
        value = b.load(Y, 0)
        last = b.apply("equal", p.indices[0], b.full((), 2, "int64"))
        b.branch(last, lambda: b.store(Y, [0], value))
    conflict = conflict_of(b.program(Y), zeros(1)).counterexample
    assert dict(conflict.second.instance) == {"i": 2}
    assert dict(conflict.first.instance)["i"] in (0, 1)
    assert conflict.first.verb == "reads"


def test_reading_shared_elements_is_no_conflict(builder):
    b = builder()
    X, Y = b.tensor("X", (8,)), b.tensor("Y", (8,))
    with b.loop("parallel", 8) as p:
        b.store(Y, [p.indices[0]], b.reduce_tile(b.load(X, (0, 8)), (0,)))
    assert interpret(b.program(X, Y), zeros(8), zeros(8), debug=True).elements == 72


def test_entries_of_a_region_are_in_sequence(builder):
    b = builder()
    Y = b.tensor("Y", (8,))
    for _ in range(2):
        with b.loop("serial", 3) as s, b.loop("parallel", 8, names="j") as p:
            turn = IndexBinary("+", IndexVar(p.indices[0]), IndexVar(s.indices[0]))
            b.store(Y, [IndexBinary("%", turn, IndexConst(8))], b.full((), 1.0))
    with b.loop("parallel", 8) as p:
        b.store(Y, [IndexBinary("-", IndexConst(7), IndexVar(p.indices[0]))], b.full((), 2.0))
    assert interpret(b.program(Y), zeros(8), debug=True).regions == 7


def test_inner_instances_of_different_outer_instances_conflict_too(builder):
    b = builder()
    Y = b.tensor("Y", (4,))
    with b.loop("parallel", 3, names="i"), b.loop("parallel", 4, names="j") as q:
        b.store(Y, [q.indices[0]], b.full((), 1.0))
    conflict = conflict_of(b.program(Y), zeros(4)).counterexample
    assert str(conflict) == "instance (i=0) writes Y[0]; instance (i=1) writes Y[0]"


def test_an_outer_serial_loop_orders_what_an_outer_parallel_one_does_not(builder):
    b = builder()
    Y = b.tensor("Y", (4,))
    with b.loop("serial", 3, names="i"), b.loop("parallel", 4, names="j") as q:
        b.store(Y, [q.indices[0]], b.full((), 1.0))
    assert interpret(b.program(Y), zeros(4), debug=True).instances == 12


def test_a_tile_that_reaches_into_the_neighbour_conflicts_unless_masked_or_dropped(builder):
    def program(size, masked):
        b = builder()
        Y = b.tensor("Y", (12,))
        with b.loop("parallel", 3) as p:
            mask = None
            if masked:
                mask = b.apply("less", b.iota(size), b.broadcast(b.full((), 4, "int64"), (size,)))
            b.store(Y, [(op("*", p.indices[0], 4), size)], b.full((size,), 1.0), mask=mask)
        return b.program(Y)

    assert interpret(program(4, False), zeros(12), debug=True).elements == 12
    assert interpret(program(5, True), zeros(12), debug=True).elements == 12
    assert conflict_of(program(5, False), zeros(12)).counterexample.first.element == (4,)


def test_lanes_out_of_bounds_touch_nothing(builder):
    b = builder()
    Y = b.tensor("Y", (2,))
    with b.loop("parallel", 9) as p:
        b.store(Y, [op("*", p.indices[0], 2)], b.full((), 1.0))
        b.store(Y, [(-3, 3)], b.full((3,), 1.0))
    assert interpret(b.program(Y), zeros(2), debug=True).elements == 1


# Aliases


def shift_program(builder, distance):
    b = builder()
    X, Y = b.tensor("X", (8,)), b.tensor("Y", (8,))
    with b.loop("parallel", 8) as p:
        b.store(Y, [p.indices[0]], b.load(X, op("+", p.indices[0], distance)))
    return b.program(X, Y)


def test_arguments_that_are_the_same_array_are_one_memory(builder):
    x = zeros(8)
    assert interpret(shift_program(builder, 1), x, zeros(8), debug=True).aliases == ()
    assert interpret(shift_program(builder, 0), x, x, debug=True).aliases == (frozenset({"X", "Y"}),)
    error = conflict_of(shift_program(builder, 1), x, x[:])
    assert "X and Y are the same array" in str(error)
    assert error.counterexample.second.memory in ("X", "Y")


# Promises


@pytest.mark.parametrize("kind", ["load", "store"])
def test_assumed_bounds_are_checked(builder, kind):
    def program(bounds, start):
        b = builder()
        X = b.tensor("X", (4, 6))
        view = [1, (start, 4)]
        if kind == "load":
            b.load(X, *view, bounds=bounds)
        else:
            b.store(X, view, b.full((4,), 1.0), bounds=bounds)
        return b.program(X)

    x = np.zeros((4, 6), np.float32)
    interpret(program("assume", 2), x, debug=True)
    interpret(program("fill", 3), x, debug=True)
    interpret(program("assume", 3), x)
    for start, element in ((3, (1, 6)), (-2, (1, -2))):
        with pytest.raises(IllegalError, match=r"of X is outside of its extents \(4, 6\)") as caught:
            interpret(program("assume", start), x, debug=True)
        assert caught.value.obligation == "bounds"
        assert str(element) in caught.value.message
        assert caught.value.counterexample.element == element
        assert caught.value.span is not None


def test_assumed_bounds_of_a_point_and_masked_lanes(builder):
    b = builder()
    X, M = b.tensor("X", (4, 2)), b.tensor("M", (6,), "bool")
    b.load(X, (0, 6), 0, bounds="assume", mask=b.load(M, (0, 6)))
    program, x = b.program(X, M), np.zeros((4, 2), np.float32)
    interpret(program, x, np.array([1, 1, 1, 1, 0, 0], bool), debug=True)
    with pytest.raises(IllegalError, match=r"element \(5, 0\)"):
        interpret(program, x, np.array([1, 1, 1, 1, 0, 1], bool), debug=True)
    b = builder()
    X = b.tensor("X", (4, 2))
    b.load(X, (0, 4), 2, bounds="assume")
    with pytest.raises(IllegalError, match=r"element \(0, 2\)"):
        interpret(b.program(X), x, debug=True)


def test_instances_that_disagree_on_an_anchored_update_are_found(builder):
    def program(dependent):
        b = builder()
        Y = b.tensor("Y", (), "int64")
        with b.loop("parallel", 3, inits=[b.full((), 0, "int64")]) as p:
            p.yields = (p.indices[0] if dependent else b.full((), 5, "int64"),)
        b.store(Y, [], p.results[0])
        return b.program(Y)

    y = np.zeros((), np.int64)
    interpret(program(False), y, debug=True)
    assert y == 5
    with pytest.raises(IllegalError, match="competing whole-tile writes") as caught:
        interpret(program(True), y, debug=True)
    assert caught.value.obligation == "competing whole-tile writes"


def test_what_is_not_a_program_is_named():
    with pytest.raises(ArgumentError, match="expected a program, got 3"):
        interpret(3, np.zeros(2))


# The report


def test_the_report_states_its_domain(builder):
    report = interpret(
        shift_program(builder, 0), zeros(8), zeros(8), order=3, reduction="reverse", debug=True
    )
    assert report == Report("p", 1, 8, 16, 16, 0, "seed 3", "reverse")
    text = str(report)
    for part in ("instances run: 8", "checked: 16", "seed 3", "reverse", "only these inputs and this order"):
        assert part in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.instances = 9


def test_a_run_without_debug_reports_nothing(builder):
    assert interpret(shift_program(builder, 0), zeros(8), zeros(8)) is None


# The books themselves


def frame(base=0):
    index = Value(0, TileType((), "int64"), "i")
    return Frame(Parallel(Domain((IndexConst(4),)), (index,), Block()), base)


def start(frame, i):
    frame.started.append((("i", i),))


ALL = (slice(0, 4),)
EVERY = np.ones(4, bool)


def test_uninitialized_elements_are_known_until_written():
    shadow = ShadowMemory((4,), ("T",), initialized=False)
    assert shadow.uninitialized(ALL, EVERY) == (0,)
    assert shadow.uninitialized(ALL, np.array([0, 0, 1, 1], bool)) == (2,)
    shadow.mark_initialized((slice(0, 3),), np.array([1, 1, 0], bool))
    assert shadow.uninitialized(ALL, EVERY) == (2,)
    assert shadow.uninitialized((slice(0, 2),), np.ones(2, bool)) is None
    assert shadow.uninitialized((3,), np.array(True)) == ()
    shadow.mark_initialized(ALL, EVERY)
    assert shadow.uninitialized(ALL, EVERY) is None
    assert ShadowMemory((4,), ("X",), initialized=True).uninitialized(ALL, EVERY) is None


def test_the_books_of_an_earlier_entry_do_not_count():
    shadow, first = ShadowMemory((4,), ("T",), initialized=True), frame()
    start(first, 0)
    assert shadow.write(ALL, EVERY, first) is None
    start(first, 1)
    assert shadow.write((2,), np.array(True), first) == ((), 0, "writes")
    assert shadow.read(ALL, EVERY, first) == ((0,), 0, "writes")
    later = Frame(first.region, base=2)
    start(later, 0)
    assert shadow.read(ALL, EVERY, later) is None
    assert shadow.write(ALL, EVERY, later) is None


def test_two_readers_and_a_writer():
    # Whoever writes, one of two readers is another instance.
    for writer, reader in ((0, 1), (1, 0), (2, 0)):
        shadow, entry = ShadowMemory((4,), ("T",), initialized=True), frame()
        for i in range(2):
            start(entry, i)
            assert shadow.read(ALL, EVERY, entry) is None
        # An instance's number is its place in the order of execution.
        entry.started[writer:] = [(("i", writer),)]
        assert entry.current == writer
        assert shadow.write(ALL, EVERY, entry) == ((0,), reader, "reads")
    alone = ShadowMemory((4,), ("T",), initialized=True)
    single = frame()
    start(single, 0)
    assert alone.read(ALL, EVERY, single) is None
    assert alone.write(ALL, EVERY, single) is None


def test_reading_an_allocation_before_writing_it_is_refused(builder):
    from tvm_tile.semantics.shadow import Monitor
    from tvm_tile.semantics.views import window_of

    b = builder()
    T = Memory("T", (4,), "float32", scope="local")
    b.store(T, [(0, 3)], b.full((3,), 1.0))
    b.load(T, (0, 4))
    b.load(T, (0, 3))
    program = b.program()
    store, whole, part = program.body.statements[1:]
    monitor = Monitor(program, ())
    monitor.allocate(T)

    def window(statement):
        return window_of(T.shape, statement.view.subscripts, lambda v: 0)

    with pytest.raises(IllegalError, match=r"T\[0\] is read before"):
        monitor.load(part, window(part), None)
    monitor.store(store, window(store), None)
    monitor.load(part, window(part), None)
    with pytest.raises(IllegalError, match=r"T\[3\] is read before") as caught:
        monitor.load(whole, window(whole), None)
    assert caught.value.obligation == "initialization"
