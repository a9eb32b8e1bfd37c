import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tvm_tile.errors import CaptureError
from tvm_tile.ir.ops import Load, Slice
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.printer import print_program
from tvm_tile.ir.structure import renumber


def body(text):
    return f"kernel k(@A: float32[8], %n.0: int64[], %x.1: float32[]) {{\n{text}\n}}\n"


def test_whitespace_comments_and_ids_are_free():
    loose = """
    # a comment first
    kernel k ( @A : float32 [ 8 ] , %n.70:int64[] ) {   # and one here
      %v.9 : float32[4] = load @A[ (%n.70+1)*2:+4 ]  fill 0
      store @A [0:+4],%v.9 }   # the end
    """
    tight = "kernel k(@A:float32[8],%n.0:int64[]){%v.1:float32[4]=load @A[(%n.0+1)*2:+4]store @A[0:+4],%v.1}"
    assert renumber(parse_program(loose)) == parse_program(tight)


def test_ids_are_kept_as_written():
    program = parse_program(body("%y.40: float32[] = negative %x.1\n%z.7: float32[] = abs %y.40"))
    assert [op.result.id for op in program.body.statements] == [40, 7]
    assert [op.result.id for op in renumber(program).body.statements] == [2, 3]


def test_a_use_may_repeat_its_type():
    typed = parse_program(body("%y.2: float32[] = negative %x.1: float32[]"))
    assert typed == parse_program(body("%y.2: float32[] = negative %x.1"))


def test_negative_steps_and_sizes_of_zero_are_read():
    program = parse_program(body("%y.2: float32[0] = load @A[7 :+ 0 by -3]"))
    (load,) = program.body.statements
    assert isinstance(load, Load)
    assert load.view.subscripts == (Slice(load.view.subscripts[0].start, 0, -3),)


def test_spans_show_the_statement_in_the_text():
    text = body("  %y.2: float32[] = negative %x.1")
    (op,) = parse_program(text).body.statements
    assert (op.span.file, op.span.line, op.span.column) == ("<program text>", 2, 3)
    assert op.span.excerpt().splitlines()[1].count("^") == len("%y.2: float32[] = negative %x.1")


def test_the_text_is_shown_under_a_given_file_name():
    with pytest.raises(CaptureError, match=r"^candidate 7:1:1: expected 'kernel'"):
        parse_program("kernal k() {}", file="candidate 7")


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "expected 'kernel' at the start of a program, found the end of the text", 1, 1),
        ("kernel k() {} kernel", "expected the end of the text after the kernel, found 'kernel'", 1, 15),
        ("kernel k() {", "expected '}' after a block, found the end of the text", 1, 13),
        ("kernel k() { yield %x.1 }", "value %x.1 is not defined before its use", 1, 20),
        ("kernel k(%x.1: int8[]) { yield %x.1 }", "a kernel yields nothing", 1, 38),
        ("kernel k(@A: float32[2], @A: int8[]) {}", "memory @A is declared twice", 1, 26),
        ("kernel k(@A: float31[2]) {}", "there is no dtype 'float31'", 1, 14),
        ("kernel k(@A: float32[n]) {}", "expected extent, an integer, found 'n'", 1, 22),
        ("kernel k() fma 1 {}", "expected true or false after fma, found '1'", 1, 16),
        ("kernel k() fma true fma true {}", "'fma' is given twice", 1, 21),
        ('kernel "k {}', "string does not end on its line", 1, 8),
        ('kernel "\\q"() {}', "not a string literal", 1, 8),
        ("kernel k() { ; }", "no token starts with this: ';'", 1, 14),
        (f"kernel k(@A: int8[{'9' * 5000}]) {{}}", "an integer of 5000 digits is too long", 1, 19),
        (body("%y.2: float32[] = negativ %x.1"), "there is no operation 'negativ'", 2, 19),
        (body("%y.2 = negative %x.1"), "expected ':' and a type after a definition, found '='", 2, 6),
        (body("%y: float32[] = negative %x.1"), "expected an operation or a region, found '%'", 2, 1),
        (body("%y.2: float32[] = negative %x"), "expected a value such as %x.1, found '%'", 2, 28),
        (body("%y.2: float32[] = negative %x.1 %n.0"), "expected ':' and a type", 3, 1),
        (body("%y.2: float32[] = negative %y.2"), "value %y.2 is not defined before its use", 2, 28),
        (body("%y.2: float32[] = negative %z.1"), "value %z.1 is defined as %x.1", 2, 28),
        (body("%y.2: float32[] = negative %1"), "value %1 is defined as %x.1", 2, 28),
        (body("%y.2: float32[] = negative %x.1: int8[]"), "used as int8[] but defined as float32[]", 2, 28),
        (body("%y.1: float32[] = negative %x.1"), "has the id of %x.1, which is defined on line 1", 2, 1),
        (body("%y.2: float32[], %z.3: int8[] = negative %x.1"), "negative defines one value, not 2", 2, 33),
        (body("negative %x.1"), "negative defines one value, not 0", 2, 1),
        (body("%y.2: float32[] = store @A[0], %x.1"), "store defines no value", 2, 19),
        (
            body("store @B[0], %x.1"),
            "memory @B is neither a parameter nor allocated; the memories visible here are @A",
            2,
            7,
        ),
        (body("store @A[%n.0 %4], %x.1"), "found %4", 2, 15),
        (body("store @A[%n.0 and 1], %x.1"), "expected a truth value here, but %n.0 is an integer", 2, 15),
        (body("store @A[1 < 2], %x.1"), "expected an integer here, but (1 < 2) is a truth value", 2, 15),
        (body("store @A[1.5], %x.1"), "expected an index, an integer, found '1.5'", 2, 10),
        (body("store @A[-%n.0], %x.1"), "expected an index, an integer, found %n.0", 2, 11),
        (body("%y.2: float32[] = full one"), "expected a literal, found 'one'", 2, 24),
        (body("%y.2: float32[] = mma %x.1, %x.1"), "mma takes a, b and the accumulator, not 2 values", 2, 19),
        (body("%y.2: float32[] = reduce_tile add %x.1"), "reduce_tile needs its axes", 3, 1),
        (body("%y.2: int32[] = argmax %x.1 keepdims"), "argmax needs its axis", 3, 1),
        (body("serial %i.2 in (2) where %i.2 { }"), "truth value here, but %i.2 is an integer", 2, 31),
        (body("serial %i.2 in (%i.2) { }"), "value %i.2 is not defined before its use", 2, 17),
        (body("serial %i.2 in (2) carry (%s.3 = %i.2) { }"), "value %i.2 is not visible here", 2, 34),
        (body("serial %i.2 in (2) bind worker { }"), "expected '{' before a block, found 'bind'", 2, 20),
        (body("serial %i.2 in (2) { }\nstore @A[%i.2], %x.1"), "line 2 defines it within another", 3, 10),
        (body("serial in () carry (%s.2 = %x.1) where %s.2 < 0 { }"), "%s.2 is not visible here", 2, 40),
        (body("reduce in () { } merge declared { }"), "the merge has no part 'identity'", 2, 18),
    ],
)  # fmt: skip
def test_a_faulty_text_is_refused_with_its_place(text, message, line, column):
    with pytest.raises(CaptureError) as caught:
        parse_program(text)
    error = caught.value
    assert message in error.message
    assert (error.span.line, error.span.column) == (line, column)
    source = text.splitlines()[line - 1] if text else ""
    # Of a very long line the excerpt shows a part.
    assert source[:200] in str(error)


def test_the_remedy_for_a_remainder_without_space_is_named():
    with pytest.raises(CaptureError) as caught:
        parse_program(body("store @A[%n.0 %4], %x.1"))
    assert "space after it" in caught.value.suggestion


def test_deep_nesting_is_refused_in_words():
    deep = "(" * 30000 + "1" + ")" * 30000
    with pytest.raises(CaptureError, match="nests too deeply"):
        parse_program(body(f"store @A[{deep}], %x.1"))


def test_a_long_sum_is_no_deep_nesting():
    text = body(f"store @A[{' + '.join(['%n.0'] * 300)}], %x.1")
    program = parse_program(text)
    assert parse_program(print_program(program)) == program


PIECES = [
    *("%", "@", "(", ")", "{", "}", "[", "]", ",", ":", ":+", "=", "-", "#", '"', "\\", "\n", ".", "0", "1e"),
    *("%x.1", "yield", "where", "carry", "merge", "if", "else", "not", "min", "reduce"),
    *("²", "\x00", "\ud800"),
]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_text_gives_a_program_or_a_capture_error(every_node, data):
    text = every_node
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.one_of(st.just(start), st.integers(start, min(start + 30, len(text)))))
        piece = data.draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)))
        text = text[:start] + piece + text[end:]
    program = parse_or_refuse(text)
    if program is not None:
        assert parse_program(print_program(program)) == program


def parse_or_refuse(text):
    """The program, or ``None`` where a CaptureError with a place refuses the text."""
    try:
        return parse_program(text)
    except CaptureError as error:
        if error.span is None or error.message not in str(error):
            raise AssertionError("the error shows no place") from error
        return None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.sampled_from([*PIECES, "kernel", "k", "in"]), st.text(max_size=4)), max_size=12))
def test_garbage_is_a_capture_error(pieces):
    with pytest.raises(CaptureError):
        parse_program(" ".join(pieces) + ";")
