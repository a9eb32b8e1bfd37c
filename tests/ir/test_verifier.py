import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tvm_tile.errors import ArgumentError, IllegalError
from tvm_tile.ir.ops import Elementwise, Full, Number
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.ir.verifier import verify, verify_program

FLOAT = TileType((), "float32")


def the_fault(program):
    faults = verify_program(program)
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]


def test_a_legal_program_has_no_fault(every_node):
    program = parse_program(every_node)
    assert verify_program(program) == []
    verify(program)


def test_memory_names_are_unique():
    A, other = Memory("A", (4,), "float32"), Memory("A", (5,), "float32")
    fault = the_fault(Program("k", (A, other), Block()))
    assert (fault.message, fault.obligation) == ("two memories have the name @A", "memory")


def test_unknown_functions_dtypes_and_literals_are_faults():
    a, b = Value(0, FLOAT), Value(1, FLOAT)
    assert (
        "no elementwise function 'expp'"
        in the_fault(Program("k", (a,), Block((Elementwise(b, "expp", (a,)),)))).message
    )
    odd = Value(1, TileType((), "float31"))
    assert "no dtype 'float31'" in the_fault(Program("k", (), Block((Full(odd, Number("0")),)))).message
    assert (
        "np.float64(1.0) is not a number"
        in the_fault(Program("k", (), Block((Full(a, Number("np.float64(1.0)")),)))).message
    )


@pytest.mark.parametrize(
    ("number", "dtype", "fits"),
    [
        *[("255", "uint8", True), ("256", "uint8", False), ("-1", "uint8", False), ("-128", "int8", True)],
        *[("True", "bool", True), ("1", "bool", True), ("2", "bool", False), ("0.0", "bool", False)],
        *[("True", "int32", True), ("nan", "float16", True), ("7", "bfloat16", True)],
        *[("18446744073709551615", "uint64", True), ("9223372036854775808", "int64", False)],
        *[("1" * 400, "float64", False), ("nan", "int64", False)],
    ],
)
def test_literals_fit_their_dtype(number, dtype, fits):
    program = Program("k", (), Block((Full(Value(0, TileType((), dtype)), Number(number)),)))
    assert [fault.obligation for fault in verify_program(program)] == ([] if fits else ["literal"])


def test_all_faults_are_reported_in_one_error(every_node):
    text = every_node.replace('bind "worker"', 'bind "core"').replace("full 1\n", "full 1.5\n")
    text = text.replace("ii 1", "ii 0")
    program = parse_program(text)
    assert len(verify_program(program)) == 3
    with pytest.raises(IllegalError) as caught:
        verify(program)
    error = caught.value
    assert error.message.startswith("kernel every_node has 3 faults:")
    for part in ("no scope 'core'", "the float 1.5", "ii=0", "<program text>:"):
        assert part in error.message
    assert error.span == verify_program(program)[0].span
    assert "parallel %i.1" in str(error)


def test_one_fault_is_the_error_itself(every_node):
    program = parse_program(every_node.replace('bind "worker"', 'bind "core"'))
    with pytest.raises(IllegalError) as caught:
        verify(program)
    assert caught.value.message == "there is no scope 'core' to bind a parallel region to"
    assert caught.value.obligation == "binding"
    assert "use one of device" in caught.value.suggestion


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_program_gets_a_list_of_faults(programs, data):
    program = data.draw(programs)
    for fault in verify_program(program):
        assert fault.message
        assert fault.obligation
        assert fault.obligation not in ("dominance", "single definition")


def test_what_is_no_program_or_no_text_is_named():
    with pytest.raises(ArgumentError, match=r"expected a program, got 3 \(int\)"):
        verify(3)
    with pytest.raises(ArgumentError, match=r"expected the text of a program, got 3 \(int\)"):
        parse_program(3)


def test_a_branch_without_its_yields_around_a_partial_update_is_a_fault():
    """The rules of patches look through programs whose branches and loops are not well formed."""
    text = """kernel scattered(@Y: int32[4], %c.0: bool[]) {
  %T.1: int32[4] = load @Y[0 :+ 4]
  %T.2: int32[4] = parallel %i.3 in (4) carry (%T.4 = %T.1) {
    %T.5: int32[4] = if %c.0 {
      %one.6: int32[] = full 1
      %T.7: int32[4] = insert %T.4[%i.3], %one.6
      yield %T.7
    } else {
      yield %T.4
    }
    yield %T.5
  }
  store @Y[0 :+ 4], %T.2
}
"""
    verify(parse_program(text))
    for old in ("      yield %T.7\n", "      yield %T.4\n"):
        with pytest.raises(IllegalError):
            verify(parse_program(text.replace(old, "")))
