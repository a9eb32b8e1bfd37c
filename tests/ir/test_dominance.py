import dataclasses

import pytest

from tvm_tile.ir.index import Comparison, IndexConst, IndexVar
from tvm_tile.ir.ops import Elementwise, Load, Point, Store, View
from tvm_tile.ir.regions import Block, Domain, If, Parallel, Program, Serial
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.ir.verifier import verify_program

FLOAT = TileType((), "float32")


def the_fault(program):
    faults = verify_program(program)
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]


def values(count, tile_type=FLOAT):
    return [Value(i, tile_type, f"v{i}") for i in range(count)]


def spanned(op, line):
    return dataclasses.replace(op, span=Span("kernel.py", line, 1, line, 5))


def test_use_before_definition():
    a, b, x = values(3)
    body = Block((spanned(Elementwise(b, "exp", (a,)), 7), Elementwise(a, "exp", (x,))))
    fault = the_fault(Program("k", (x,), body))
    assert fault.message == "value %v0.0 is used before its definition"
    assert fault.obligation == "dominance"
    assert fault.span.line == 7
    assert verify_program(Program("k", (x,), Block(body.statements[1:] + body.statements[:1]))) == []


def test_use_without_definition():
    a, b = values(2)
    fault = the_fault(Program("k", (), Block((spanned(Elementwise(b, "exp", (a,)), 7),))))
    assert fault.message == "value %v0.0 is used but never defined"


def test_use_of_a_value_of_an_inner_region():
    a, b, x = values(3)
    inner = Parallel(Domain(()), (), Block((Elementwise(a, "exp", (x,)),)))
    fault = the_fault(Program("k", (x,), Block((inner, spanned(Elementwise(b, "exp", (a,)), 7)))))
    assert fault.message == "value %v0.0 is used outside of the region that defines it"
    assert (fault.obligation, fault.span.line) == ("dominance", 7)


def test_use_of_a_value_of_the_sibling_arm():
    a, b, x = values(3)
    c = Value(3, TileType((), "bool"), "c")
    then, orelse = Block((Elementwise(a, "exp", (x,)),)), Block((Elementwise(b, "exp", (a,)),))
    fault = the_fault(Program("k", (x, c), Block((If(c, then, orelse),))))
    assert "outside of the region" in fault.message
    twin = Block((Elementwise(b, "exp", (x,)),))
    assert verify_program(Program("k", (x, c), Block((If(c, then, twin),)))) == []


def test_extents_and_inits_do_not_see_the_region_itself():
    i = Value(0, TileType((), "int64"), "i")
    loop = Serial(Domain((IndexVar(i),)), (i,), Block())
    assert the_fault(Program("k", (), Block((loop,)))).obligation == "dominance"
    x, s, r = (Value(n, TileType((), "int64")) for n in (1, 2, 3))
    where = Comparison("<", IndexVar(s), IndexConst(3))
    loop = Serial(Domain((), where), (), Block(), (x,), (s,), (s,), (r,))
    assert the_fault(Program("k", (x,), Block((loop,)))).obligation == "dominance"
    where = Comparison("<", IndexVar(x), IndexConst(3))
    loop = Serial(Domain((), where), (), Block(), (x,), (s,), (s,), (r,))
    assert verify_program(Program("k", (x,), Block((loop,)))) == []


def test_results_are_not_visible_in_their_own_statement():
    (a,) = values(1)
    fault = the_fault(Program("k", (), Block((Elementwise(a, "exp", (a,)),))))
    assert fault.obligation == "dominance"


def test_an_id_is_defined_once():
    a, _, x = values(3)
    again = Value(0, FLOAT, "again")
    body = Block((Elementwise(a, "exp", (x,)), spanned(Elementwise(again, "exp", (x,)), 9)))
    fault = the_fault(Program("k", (x,), body))
    assert fault.message == "value %again.0 is defined again: %v0.0 has the same id"
    assert (fault.obligation, fault.span.line) == ("single definition", 9)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (Value(0, TileType((), "int8"), "v0"), "value %v0.0 is used as int8[] but defined as float32[]"),
        (Value(0, FLOAT, "w"), "value %w.0 is used under another name than its definition %v0.0"),
    ],
)
def test_a_use_is_the_definition(use, message):
    a, b = values(2)
    b = dataclasses.replace(b, type=use.type)
    fault = the_fault(Program("k", (a,), Block((spanned(Elementwise(b, "negative", (use,)), 4),))))
    assert fault.message == message
    assert (fault.obligation, fault.span.line) == ("use list", 4)


def test_memories_are_parameters_as_declared():
    (a,) = values(1)
    A = Memory("A", (4,), "float32")
    unknown = View(Memory("B", (), "float32"), ())
    fault = the_fault(Program("k", (A,), Block((spanned(Load(a, unknown), 3),))))
    assert fault.message == (
        "memory @B is neither a parameter nor allocated; the memories visible here are @A"
    )
    assert (fault.obligation, fault.span.line) == ("memory", 3)
    strided = View(dataclasses.replace(A, strides=(2,)), (Point(IndexConst(0)),))
    fault = the_fault(Program("k", (A, a), Block((Store(strided, a),))))
    assert fault.message == "memory @A is used as float32[4] with strides (2,) but declared as float32[4]"
