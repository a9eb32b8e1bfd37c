"""Each case breaks one rule of a legal program with every operation on memory and every merge of tiles."""

import pytest

from tvm_tile.errors import CaptureError
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.printer import print_program
from tvm_tile.ir.structure import renumber, structural_hash
from tvm_tile.ir.verifier import verify, verify_program

# Text to replace, its replacement, obligation, and message.
CASES = {
    "concat of other extents": (
        "concat %six.4, %mine.5 axis 1", "concat %six.4, %zero.2 axis 1",
        "type", "shapes (2, 3) and () differ in another axis than 1",
    ),
    "concat axis": ("%mine.5 axis 1", "%mine.5 axis 2", "type", "axis 2 does not exist in shape (2, 3)"),
    "positions": (
        "gather %both.6, %lanes.8 axis 1", "gather %both.6, %both.6 axis 1",
        "type", "positions are integers, not float32",
    ),
    "shape of positions": (
        "gather %both.6, %lanes.8 axis 1", "gather %six.4, %lanes.8 axis 0",
        "type", "positions of shape (2, 6) do not fit shape (2, 3) but for axis 0",
    ),
    "inserted part": (
        "insert %T.12 [%i.11, 0 :+ 6]", "insert %T.12 [%i.11, 0 :+ 5]",
        "type", "a part of float32[2, 6] is float32[5], not float32[6]",
    ),
    "combine": ("combine add\n", "combine subtract\n", "type", "combine='subtract' is not one of add"),
    "atomic function": (
        "atomic maximum", "atomic multiply", "type",
        "there is no atomic 'multiply'; there are add, maximum, minimum",
    ),
    "value of an atomic": (
        "atomic maximum @rows[2], %r.0", "atomic maximum @rows[2], %at.1",
        "type", "an atomic on @rows needs int32[], but %at.1 is int64[]",
    ),
    "mask of an atomic": ("mask %positive.3", "mask %zero.2", "type", "a mask for shape () must be bool[]"),
    "symbol": (
        'extern "c_function"', 'extern "not a name"',
        "opaque call", "'not a name' is not the name of a C function",
    ),
    "tile passed to C": (
        "(@strided[0, 1], %at.1)", "(@strided[0, 1], %six.4)",
        "opaque call", "value %six.4 of type float32[2, 3] cannot be passed to a C function",
    ),
    "memory with a layout passed to C": (
        "(@strided[0, 1], %at.1)", "(@swizzled[0, 1], %at.1)",
        "opaque call", "memory @swizzled has a layout, of which a C function knows nothing",
    ),
    "strides that overlap": (
        "strides (1, 4)", "strides (1, 1)",
        "injective layout", "the layout of memory @strided maps 6 elements onto 4 addresses",
    ),
    "negative strides": (
        "strides (1, 4)", "strides (-1, 4)", "injective layout",
        "the layout of memory @strided has the negative address -1",
    ),
    "number of strides": ("strides (1, 4)", "strides (4)", "memory", "of shape (2, 3) has the strides (4,)"),
    "layout that folds": (
        "%i0.0 * 6 + (%i1.1 + %i0.0) % 3", "%i0.0 * 2 + (%i1.1 + %i0.0) % 3",
        "injective layout", "the layout of memory @swizzled maps 6 elements onto 5 addresses",
    ),
    "size of a layout": (
        "layout 12 :", "layout 8 :", "memory", "reaches 9 addresses, more than its 8",
    ),
    "allocated parameter": ('scope "shared"', "", "memory", "memory @strided is allocated as a parameter"),
    "axes of a reduction": ("axes (1)", "axes (2)", "type", "axes (2,) do not fit shape (2, 6)"),
    "where of a reduction": (
        "where %keep.16", "where %positive.3", "type", "a mask for shape (2, 6) must be bool[2, 6]",
    ),
    "seeds": (
        "seeds (%zero.17, %zero.17)", "seeds (%zero.17)", "type", "the seeds are float32[2], the states",
    ),
    "unordered tree without commutativity": (
        "policy fold_right", "policy unordered_tree",
        "reduction policy", "permutes contributions, but the merge of count, last is not commutative",
    ),
    "tree without associativity": (
        "policy fold_right seeds (%zero.17, %zero.17) where %keep.16 merge known associative",
        "policy ordered_tree seeds (%zero.17, %zero.17) where %keep.16 merge known",
        "reduction policy", "regroups contributions, but the merge of count, last is not associative",
    ),
    "scan that permutes": (
        "exclusive policy fold_left", "exclusive policy unordered_tree",
        "reduction policy", "of a scan would change the order of the contributions to its prefixes",
    ),
    "unknown policy": (
        "exclusive policy fold_left", "exclusive policy any_order",
        "policy", "policy 'any_order' is not one of unordered_tree",
    ),
    "lift of another element": (
        "lift (%x.19: float32[2])", "lift (%x.19: float32[3])",
        "type", "the lift takes float32[3], not float32[2]",
    ),
    "functions of a known merge": (
        "builtin (add)", "builtin (add, add)", "reduction policy",
        "a merge of 1 value has the built-in functions add, add",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_broken_rule_is_reported(memory_and_merges, case):
    old, new, obligation, message = CASES[case]
    assert memory_and_merges.count(old) == 1
    faults = verify_program(parse_program(memory_and_merges.replace(old, new)))
    found = [fault for fault in faults if message in fault.message]
    assert found, "\n".join(map(str, faults))
    assert found[0].obligation == obligation
    assert found[0].suggestion
    assert found[0].span is not None


def test_the_program_is_legal_and_survives_the_round_trip(memory_and_merges):
    program = parse_program(memory_and_merges)
    verify(program)
    assert print_program(program) == memory_and_merges
    assert parse_program(print_program(program)) == program
    assert renumber(program) == program


def test_the_patches_of_one_state_agree_on_how_they_combine(memory_and_merges):
    again = "%T.97: float32[2, 6] = insert %T.14 [%i.11, 0 :+ 6], %row.13{}\n    yield %T.97"
    same = memory_and_merges.replace("yield %T.14", again.format(" combine add"))
    assert verify_program(parse_program(same)) == []
    (fault,) = verify_program(parse_program(memory_and_merges.replace("yield %T.14", again.format(""))))
    assert "the partial updates of T in the parallel region over i have add and no combine" in fault.message


def test_memory_is_visible_in_the_rest_of_its_block_only(memory_and_merges):
    early = memory_and_merges.replace(
        "  %six.4: float32[2, 3] = load @A[0 :+ 2, 0 :+ 3]\n", ""
    ).replace("  alloc @strided", "  %six.4: float32[2, 3] = load @strided[0 :+ 2, 0 :+ 3]\n  alloc @strided")
    with pytest.raises(CaptureError, match="memory @strided is neither a parameter nor allocated"):
        parse_program(early)
    twice = memory_and_merges.replace("alloc @swizzled", "alloc @strided")
    with pytest.raises(CaptureError, match="memory @strided is declared twice"):
        parse_program(twice)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("combine add\n", "combine maximum\n"),
        ("fill -inf", "fill 0.0"),
        ("atomic maximum", "atomic minimum"),
        ('"c_function"', '"d_function"'),
        ("writes (@strided)", "writes ()"),
        ("strides (1, 4)", "strides (1, 2)"),
        ("layout 12 : %i0.0 * 6", "layout 12 : %i0.0 * 5"),
        ('scope "local"', 'scope "global"'),
        (" exclusive", ""),
        ("seeds (%last.27)", ""),
        ("where %keep.16", ""),
        ("policy fold_right", "policy fold_left"),
    ],
)
def test_the_hash_differs_for_each_change(memory_and_merges, old, new):
    program = parse_program(memory_and_merges)
    changed = parse_program(memory_and_merges.replace(old, new))
    assert structural_hash(program) != structural_hash(changed)


def test_the_hash_ignores_names_of_memory(memory_and_merges):
    renamed = memory_and_merges.replace("@strided", "@other").replace("%six", "%seven")
    assert structural_hash(parse_program(renamed)) == structural_hash(parse_program(memory_and_merges))
