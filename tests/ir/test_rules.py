"""Each case breaks one rule of a legal program that has every node."""

import pytest

from tvm_tile.errors import IllegalError
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.verifier import verify, verify_program

# Text to replace, its replacement, obligation, message, and the text at the start of the fault's span.
CASES = {
    # Types and shapes
    "operand dtype": (
        "cast %half.18", "negative %half.18",
        "type", "value %full.19: the operands give float16[8, 16], not float32[8, 16]", "%full.19",
    ),
    "operand shape": (
        "add %full.19, %wider.25", "add %full.19, %total.20",
        "type", "add needs equal shapes, not (8, 16) and (8, 1)", "%sum.26",
    ),
    "arity of a function": (
        "add %full.19, %wider.25", "add %full.19",
        "type", "add takes 2 operands, not 1", "%sum.26",
    ),
    "reshape": (
        "%back.11: float32[8, 16] = reshape %flat.10", "%back.11: float32[8, 16] = reshape %alpha.0",
        "type", "shape () does not reshape to (8, 16)", "%back.11",
    ),
    "result of an extract": (
        "%part.24: float32[4] =", "%part.24: float32[4, 1] =",
        "type", "value %part.24: the operands give float32[4], not float32[4, 1]", "%part.24",
    ),
    "axis": (
        "argmax %full.19 axis 1", "argmax %full.19 axis 2",
        "type", "axes (2,) do not fit shape (8, 16)", "%top.21",
    ),
    "rank of a view": (
        "load @rows[3]", "load @rows[3, 0]",
        "type", "2 subscripts for shape (4,)", "%r.27",
    ),
    "stored value": (
        "store @s[], %whole.56", "%d.59: float64[] = cast %whole.56 store @s[], %d.59",
        "type", "a store to @s needs float32[], but %d.59 is float64[]", "store @s[], %d.59",
    ),
    "mask of a load": (
        "load @rows[3] bounds assume", "load @rows[3] mask %alpha.0",
        "type", "a mask for shape () must be bool[], not float32[]", "%r.27",
    ),
    "mask of a store": (
        "store @s[], %whole.56", "store @s[], %whole.56 mask %alpha.0",
        "type", "the mask %alpha.0 of a store to @s must be bool[], not float32[]", "store @s[], %whole.56",
    ),
    "negative extent of a value": (
        "%none.34: int32[] = full 0", "%none.34: int32[] = full 0 %bad.59: int32[-1] = full 0",
        "type", "value %bad.59: shape (-1,) has a negative extent", "%bad.59",
    ),
    "storage-only literal": (
        "%none.34: int32[] = full 0", "%none.34: int32[] = full 0 %bad.59: float8_e5m2[] = full 0",
        "type", "a literal cannot have dtype float8_e5m2", "%bad.59",
    ),
    # Literals, subscripts and modes
    "float literal for an int": (
        "%one.33: int32[] = full 1", "%one.33: int32[] = full 1.0",
        "literal", "the float 1.0 is not a value of int32", "%one.33",
    ),
    "integer out of range": (
        "%one.33: int32[] = full 1", "%one.33: int32[] = full 2147483648",
        "literal", "2147483648 is out of range for int32", "%one.33",
    ),
    "fill out of range": (
        "load @rows[3] bounds assume", "load @rows[3] fill -2147483649",
        "literal", "fill of a load from @rows: -2147483649 is out of range for int32", "%r.27",
    ),
    "index that is no integer": (
        "load @rows[3] bounds assume", "load @rows[%alpha.0]",
        "index", "value %alpha.0 of type float32[] is used as an index", "%r.27",
    ),
    "index that is no scalar": (
        "15 :+ 4 by -2", "%top.21 :+ 4 by -2",
        "index", "value %top.21 of type int32[8] is used as an index", "%part.24",
    ),
    "extent that is no integer": (
        "in (4, %at.28 + 1)", "in (4, %alpha.0)",
        "index", "value %alpha.0 of type float32[] is used as an index", "%best.40",
    ),
    "step 0": (
        "by -2", "by 0",
        "subscript", "the slice of axis 1 has step 0", "%part.24",
    ),
    "negative size": (
        "%part.24: float32[4] = extract %full.19 [%row.23 % 8, 15 :+ 4 by -2]",
        "%part.24: float32[-4] = extract %full.19 [%row.23 % 8, 15 :+ -4 by -2]",
        None, "the slice of axis 1 has the negative size -4", "%part.24",
    ),
    "bounds of a load": (
        "load @rows[3] bounds assume", "load @rows[3] bounds trust",
        "bounds", "bounds 'trust' is not one of fill, assume", "%r.27",
    ),
    "bounds of a store": (
        "store @s[], %whole.56", "store @s[], %whole.56 bounds wrap",
        "bounds", "bounds 'wrap' is not one of fill, assume", "store @s[], %whole.56",
    ),
    "policy of a tile reduction": (
        "policy fold_left", "policy fold_middle",
        "policy", "policy 'fold_middle' is not one of unordered_tree", "%total.20",
    ),
    # Regions
    "condition": (
        "if %positive.30 {\n    store", "if %alpha.0 {\n    store",
        "condition", "the condition %alpha.0 is float32[], not a bool scalar", "if %alpha.0",
    ),
    "arm with too few yields": (
        "yield %alpha.0, %none.34", "yield %alpha.0",
        "arity", "the else arm of a branch yields 1 value for 2 values (%seed.31, %count.32)", "%seed.31",
    ),
    "arm with another type": (
        "yield %start.29, %one.33", "yield %one.33, %one.33",
        "type", "the then arm of a branch yields %one.33 of type int32[] for %seed.31 of type float32[]",
        "%seed.31",
    ),
    "init of another type": (
        "(%v.58 = %folded.53)", "(%v.58: float32[] = %count.32)",
        "type", "a region starts from %count.32 of type int32[] for %v.58 of type float32[]", "%whole.56",
    ),
    "yields of another number": (
        "yield %alpha.0, %m.39", "yield %alpha.0",
        "arity", "a region yields 1 value for 2 values (%x.38, %m.39)", "%last.35",
    ),
    "yield of another type": (
        "yield %alpha.0, %m.39", "yield %m.39, %m.39",
        "type", "a region yields %m.39 of type int32[] for %x.38 of type float32[]", "%last.35",
    ),
    "result of another type": (
        "%last.35: float32[], %n.36: int32[] =", "%last.35: float32[], %n.36: int64[] =",
        "type", "a region leaves %m.39 of type int32[] for %n.36 of type int64[]", "%last.35",
    ),
    "fewer results than states": (
        "%last.35: float32[], %n.36: int32[] =", "%last.35: float32[] =",
        "arity", "a region leaves 2 values for 1 value (%last.35)", "%last.35",
    ),
    "indices and extents": (
        "in (%at.28) carry", "in (%at.28, 2) carry",
        "domain", "a region has 1 indices for 2 extents", "%last.35",
    ),
    "type of an index": (
        "serial %t.37 in", "serial %t.37: int32[] in",
        "domain", "the index %t.37 is int32[], not int64[]", "%t.37",
    ),
    "negative domain": (
        "%p.57 in (0)", "%p.57 in (2 - 3)",
        "domain", "a region over p has the negative extent -1", "%whole.56",
    ),
    "predicate on a float": (
        "%j.2 <= %i.1 and", "%j.2 <= %alpha.0 and",
        "index", "value %alpha.0 of type float32[] is used as an index", "parallel %i.1",
    ),
    "binding": (
        'bind "worker"', 'bind "core"',
        "binding", "there is no scope 'core'", "parallel %i.1",
    ),
    "versions": ("versions 2", "versions 0", "pipeline", "versions=0, which must be 1 or more", "%acc.4"),
    "initiation interval": ("ii 1", "ii -1", "pipeline", "ii=-1, which must be 1 or more", "%acc.4"),
    # Stages
    "unnamed stage": ('stage "load"', 'stage ""', "stage order", "a stage has an empty name", 'stage ""'),
    "stage twice": (
        'stage "compute"', 'stage "load"',
        "stage order", "stage 'load' appears twice in one pipeline", 'stage "load"',
    ),
    "stage outside of a pipeline": (
        "store @s[], %whole.56", 'stage "late" store @s[], %whole.56',
        "stage order", "stage 'late' is not directly in the body of a pipeline", 'stage "late"',
    ),
    "stage deep in a pipeline": (
        'stage "compute"', 'serial in () { stage "compute" }',
        "stage order", "stage 'compute' is not directly in the body of a pipeline", 'stage "compute"',
    ),
    # Effects
    "write in a reduction": (
        "%g.55: float32[] = negative", "store @s[], %f.54 %g.55: float32[] = negative",
        "effects", "the body of a reduction writes memory 's'", "store @s[], %f.54",
    ),
    "read in a combine": (
        "%z.52: float32[] = maximum %x.50, %y.51", "%z.52: float32[] = load @s[]",
        "effects", "the combine of a merge reads memory 's'", "%z.52",
    ),
    "read in an identity": (
        "%low.46: float32[] = full -inf", "%low.46: float32[] = load @s[]",
        "effects", "the identity of a merge reads memory 's'", "%low.46",
    ),
    "write in a lift": (
        "yield %lifted.49", "store @s[], %lifted.49 yield %lifted.49",
        "effects", "the lift of a merge writes memory 's'", "store @s[], %lifted.49",
    ),
    # Reductions
    "unknown policy": (
        "policy fold_right", "policy fold_up",
        "policy", "policy 'fold_up' is not one of unordered_tree", "%folded.53",
    ),
    "tree without a merge": (
        "policy fold_right", "policy unordered_tree",
        "reduction policy", "the update of f has no known merge", "%folded.53",
    ),
    "merge that is not associative": (
        "associative commutative exact", "commutative exact",
        "reduction policy", "the merge of best is not associative", "%best.40",
    ),
    "merge that does not commute": (
        "policy ordered_tree carry (%best.42 = %last.35) {\n    %seen.44: float32[] = load @A[%q.41, %w.43]\n"
        "    %best.45: float32[] = maximum %best.42, %seen.44\n    yield %best.45\n"
        "  } merge declared associative commutative",
        "policy unordered_tree carry (%best.42 = %last.35) {\n    yield %best.42\n"
        "  } merge declared associative",
        "reduction policy", "permutes contributions, but the merge of best is not commutative", "%best.40",
    ),
    "parameters of a combine": (
        "combine (%x.50: float32[], %y.51: float32[])",
        "combine (%x.50: float32[], %y.51: float32[], %u.59: int8[])",
        "arity", "a merge's combine joins 2 values for 3 values", "%best.40",
    ),
    "parameters of a lift": (
        "lift (%q.47: int64[], %w.48: int64[])", "lift (%q.47: int64[], %w.48: int32[])",
        "type", "a merge's lift takes %w.43 of type int64[] for %w.48 of type int32[]", "%best.40",
    ),
    "parameters of an identity": (
        "identity ()", "identity (%u.59: int8[])",
        "arity", "a merge's identity takes 0 values for 1 value", "%best.40",
    ),
    "yield of a merge": (
        "yield %z.52", "yield %z.52, %z.52",
        "arity", "the combine of a merge yields 2 values for 1 value", "%best.40",
    ),
    "built-in functions of a merge": (
        "builtin (maximum)", "builtin (subtract)",
        "reduction policy", "a merge of 1 value has the built-in functions subtract", "%best.40",
    ),
    "identity of a built-in function": (
        "full -inf", "full 4.0",
        "reduction policy", "a merge with the built-in function maximum starts from 4.0", "%best.40",
    ),
    "combine of a built-in function": (
        "= maximum %x.50, %y.51", "= add %x.50, %y.51",
        "reduction policy", "a merge with the built-in function maximum combines in another way", "%best.40",
    ),
    # Parameters
    "strides": (
        "strides (1, 18)", "strides (1)",
        "memory", "memory @B of shape (18, 24) has the strides (1,)", "@B",
    ),
    "extent of a memory": (
        "@rows: int32[4]", "@unused: int32[-4], @rows: int32[4]",
        "type", "parameter @unused: shape (-4,) has a negative extent", "@unused",
    ),
    "tile parameter": (
        "%alpha.0: float32[])", "%alpha.0: float32[], %w.60: float32[2])",
        "parameter", "parameter %w.60 is a value of shape (2,), not a scalar", "%w.60",
    ),
    # Competing whole-tile writes
    "index in a whole-tile write": (
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n"
        "    %c.59: float32[] = cast %p.57 %d.60: float32[] = exp %c.59 yield %d.60",
        "competing whole-tile writes",
        "'v' is assigned as a whole by every instance of the parallel region over p, but its value "
        "depends on its indices",
        "%d.60",
    ),
    "load in a whole-tile write": (
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    %c.59: float32[] = load @s[] yield %c.59",
        "competing whole-tile writes", "over p, but its value depends on a load in it", "%c.59",
    ),
    "nested region in a whole-tile write": (
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n"
        "    %c.59: float32[] = serial %q.60 in (%p.57) carry (%d.61 = %alpha.0) {\n"
        "      %e.62: float32[] = negative %d.61 yield %e.62 } yield %c.59",
        "competing whole-tile writes", "its value depends on its indices", "%c.59",
    ),
    "late dependence of a nested state": (
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    %i.59: float32[] = cast %p.57\n"
        "    %a.60: float32[], %b.61: float32[] = serial in () carry (%c.62 = %alpha.0, %d.63 = %i.59) {\n"
        "      yield %d.63, %d.63 } yield %a.60",
        "competing whole-tile writes", "its value depends on its indices", "%a.60",
    ),
    "branch condition in a whole-tile write": (
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n"
        "    %c.59: int64[] = index %p.57 % 2 %d.60: int64[] = index 0 %e.61: bool[] = equal %c.59, %d.60\n"
        "    %f.62: float32[] = if %e.61 { yield %alpha.0 } else { yield %v.58 } yield %f.62",
        "competing whole-tile writes", "its value depends on its indices", "%f.62",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_broken_rule_is_one_fault_with_its_place(every_node, case):
    old, new, obligation, message, start = CASES[case]
    assert every_node.count(old) == 1
    text = every_node.replace(old, new)
    faults = verify_program(parse_program(text))
    found = [fault for fault in faults if message in fault.message]
    assert len(found) == 1, "\n".join(map(str, faults))
    (fault,) = found
    if obligation is None:
        assert "subscript" in {f.obligation for f in faults}
    else:
        assert len(faults) == 1, "\n".join(map(str, faults))
        assert fault.obligation == obligation
    assert fault.suggestion
    line = text.splitlines()[fault.span.line - 1]
    assert line[fault.span.column - 1 :].startswith(start)


def test_a_tree_without_merge_suggests_a_fold(every_node):
    text = every_node.replace("policy fold_right", "policy unordered_tree")
    with pytest.raises(IllegalError, match="fold_left"):
        verify(parse_program(text))


def test_a_value_may_leave_a_parallel_region_if_it_depends_on_no_instance(every_node):
    text = every_node.replace(
        "%p.57 in (0) carry (%v.58 = %folded.53) {\n    yield %alpha.0",
        "%p.57 in (3) carry (%v.58 = %folded.53) {\n    %c.59: float32[] = exp %v.58 store @s[], %c.59\n"
        "    %d.60: float32[] = serial %q.61 in (4) carry (%e.62 = %c.59) { yield %e.62 } yield %d.60",
    )
    assert text != every_node
    assert verify_program(parse_program(text)) == []
