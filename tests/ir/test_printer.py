import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tvm_tile.ir.index import And, BoolConst, Comparison, IndexBinary, IndexConst, IndexVar, Not, Or
from tvm_tile.ir.ops import FromIndex, Full, Number
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.printer import print_index, print_program, print_statement
from tvm_tile.ir.regions import Block, Domain, Program, Serial
from tvm_tile.ir.structure import renumber
from tvm_tile.ir.values import Memory, TileType, Value

INT64 = TileType((), "int64")
I = IndexVar(Value(1, INT64, "i"))
J = IndexVar(Value(2, INT64, "j"))


def constant(value):
    return IndexConst(value)


def binary(op, a, b):
    return IndexBinary(op, a, b)


def test_a_program_prints_as_its_golden_text(every_node):
    assert print_program(parse_program(every_node)) == every_node


def test_every_node_survives_the_round_trip(every_node):
    program = renumber(parse_program(every_node))
    assert parse_program(print_program(program)) == program


def test_str_of_a_program_is_its_text(every_node):
    program = parse_program(every_node)
    assert str(program) == every_node


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_programs_survive_the_round_trip(programs, data):
    program = data.draw(programs)
    assert parse_program(print_program(program)) == program
    canonical = renumber(program)
    assert parse_program(print_program(canonical)) == canonical


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-05, 1e300, -7, 2**64, True, False, 0.1]
)
def test_literals_survive_as_written(value):
    result = Value(0, TileType((2,), "float32"))
    program = Program("literal", (), Block((Full(result, Number.of(value)),)))
    parsed = parse_program(print_program(program))
    assert parsed == program
    assert parsed.body.statements[0].value.text == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.float64(0.5), "0.5"), (np.float32(2), "2.0"), (np.int8(-3), "-3"), (np.bool_(True), "True")],
)
def test_literals_of_numpy_scalars_are_plain_numbers(value, text):
    assert Number.of(value).text == text


def test_different_literals_print_differently():
    texts = {print_statement(Full(Value(0, INT64), Number.of(v))) for v in (0, 0.0, -0.0, False)}
    assert len(texts) == 4


@pytest.mark.parametrize("name", ["gemm", "<lambda>", "größe", "a b", "", 'x"\\y', "λ", "a\nb", "𝒳", "if"])
def test_odd_names_survive(name):
    memory = Memory(name, (0,), "float32", None)
    scalar = Value(3, INT64, name)
    program = Program(name, (memory, scalar), Block((FromIndex(Value(4, INT64, name), IndexVar(scalar)),)))
    assert parse_program(print_program(program)) == program


@pytest.mark.parametrize("strides", [None, (), (1,), (-3, 0), (5, 1, 2)])
def test_strides_survive(strides):
    memory = Memory("A", (4,) * len(strides or ()), "float8_e4m3fn", strides, scope="shared memory")
    program = Program("k", (memory,), Block())
    assert parse_program(print_program(program)).params == (memory,)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (binary("+", binary("*", I, constant(8)), constant(3)), "%i.1 * 8 + 3"),
        (binary("*", binary("+", I, constant(8)), constant(3)), "(%i.1 + 8) * 3"),
        (binary("-", I, binary("-", J, constant(1))), "%i.1 - (%j.2 - 1)"),
        (binary("-", binary("-", I, J), constant(-1)), "%i.1 - %j.2 - -1"),
        (binary("%", I, J), "%i.1 % %j.2"),
        (binary("//", I, binary("//", J, constant(2))), "%i.1 // (%j.2 // 2)"),
        (binary("min", binary("+", I, J), constant(3)), "min(%i.1 + %j.2, 3)"),
        (Not(Comparison("<", I, J)), "not %i.1 < %j.2"),
        (Not(And(BoolConst(True), BoolConst(False))), "not (true and false)"),
        (
            Or(And(Not(BoolConst(True)), Comparison("==", binary("+", I, J), constant(0))), BoolConst(False)),
            "not true and %i.1 + %j.2 == 0 or false",
        ),
        (
            And(Or(BoolConst(True), BoolConst(False)), And(BoolConst(True), BoolConst(True))),
            "(true or false) and (true and true)",
        ),
    ],
)
def test_parentheses_stand_only_where_the_tree_needs_them(tree, text):
    assert print_index(tree) == text


INDEX = st.recursive(
    st.one_of(st.integers(-9, 9).map(IndexConst), st.sampled_from([I, J])),
    lambda e: st.builds(IndexBinary, st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), e, e),
    max_leaves=12,
)
PREDICATE = st.recursive(
    st.one_of(
        st.booleans().map(BoolConst),
        st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), INDEX, INDEX),
    ),
    lambda p: st.one_of(st.builds(And, p, p), st.builds(Or, p, p), st.builds(Not, p)),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(extent=INDEX, where=PREDICATE)
def test_expressions_parse_back_to_the_same_tree(extent, where):
    loop = Serial(Domain((extent,), where), (Value(3, INT64),), Block())
    program = Program("k", (I.value, J.value), Block((loop,)))
    assert parse_program(print_program(program)) == program


def test_a_program_with_unpaired_states_still_prints():
    zero = Value(0, TileType((), "float32"), "zero")
    loop = Serial(Domain(()), (), Block(), inits=(zero,))
    assert "carry (? = %zero.0)" in print_program(Program("k", (zero,), Block((loop,))))
