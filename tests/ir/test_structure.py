import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tvm_tile.ir.dependence import dependent_values
from tvm_tile.ir.ops import Load, Stage
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.structure import map_values, operands_of, renumber, structural_hash, walk
from tvm_tile.ir.uses import use_lists, uses_of
from tvm_tile.ir.values import Value


def named(program, name):
    (value,) = [v for v in use_lists(program) if v.name == name]
    return value


def test_the_hash_ignores_names_and_numbering(every_node):
    program = parse_program(every_node)
    other = map_values(program, lambda v: dataclasses.replace(v, id=1000 - 3 * v.id, name=f"n{v.id}"))
    memories = {m: dataclasses.replace(m, name=f"M{k}") for k, m in enumerate(program.tensors)}
    text = str(dataclasses.replace(other, name="another"))
    for memory, renamed in memories.items():
        for end in (":", "["):
            text = text.replace(f"@{memory.name}{end}", f"@{renamed.name}{end}")
    renamed_program = parse_program(text)
    assert renamed_program != program
    assert structural_hash(renamed_program) == structural_hash(program) == program.structural_hash()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float32[20, 18]", "float32[20, 19]"),
        ("@rows: int32[4]", "@rows: int16[4]"),
        ("strides (1, 18)", "strides (1, 20)"),
        (" fma false", ""),
        ("in (3, 2)", "in (3, 3)"),
        ("%j.2 <= %i.1 and", "%i.1 <= %j.2 and"),
        ("%j.2 <= %i.1 and", "%j.2 < %i.1 and"),
        (' bind "worker"', ""),
        ("versions 2", "versions 3"),
        (" ii 1", ""),
        ('stage "load"', 'stage "fetch"'),
        ("fill -0.0", "fill 0.0"),
        ("mma %a.7, %b.8, %acc.6 ordered", "mma %a.7, %b.8, %acc.6"),
        ("%zeros.16: int32[8, 16] = full 0", "%zeros.16: int32[8, 16] = full 0.0"),
        ("add %full.19, %wider.25", "add %wider.25, %full.19"),
        ("add %full.19, %wider.25", "multiply %full.19, %wider.25"),
        ("reduce_tile add", "reduce_tile multiply"),
        ("axes (1)", "axes (0)"),
        ("policy fold_left keepdims", "policy fold_left"),
        (" keepdims where %mask.17", " keepdims"),
        ("argmax", "argmin"),
        ("transpose %back.11 (1, 0)", "transpose %back.11 (0, 1)"),
        ("15 :+ 4 by -2", "15 :+ 4 by -3"),
        ("15 :+ 4 by -2", "14 :+ 4 by -2"),
        (" bounds assume mask %mask.17", " mask %mask.17"),
        ("min(max(%r.27, 0), 3) // 2", "min(max(%r.27, 0), 3) % 2"),
        ("policy ordered_tree", "policy unordered_tree"),
        (" exact", ""),
        (" commutative", ""),
        (" builtin (maximum)", ""),
        ("merge declared", "merge derived"),
        ("maximum %x.50, %y.51", "maximum %y.51, %x.50"),
        ("yield %alpha.0, %m.39", "yield %x.38, %m.39"),
        ("(%v.58 = %folded.53)", "(%v.58 = %best.40)"),
        ("store @s[], %alpha.0", "store @s[], %start.29"),
    ],
)
def test_the_hash_differs_for_each_change_of_structure(every_node, old, new):
    assert every_node.count(old) == 1
    changed = parse_program(every_node.replace(old, new))
    assert changed.structural_hash() != parse_program(every_node).structural_hash()


def test_the_hash_tells_memories_apart(every_node):
    text = every_node.replace("@C: float32[20, 24]", "@C: float32[20, 24], @D: float32[20, 24]")
    other = text.replace("store @C[", "store @D[")
    assert parse_program(text).structural_hash() != parse_program(other).structural_hash()


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_renumbering_is_idempotent_and_keeps_the_hash(programs, data):
    program = data.draw(programs)
    canonical = renumber(program)
    assert renumber(canonical) == canonical
    assert structural_hash(canonical) == structural_hash(program)
    assert sorted(v.id for v in use_lists(canonical)) == list(range(len(use_lists(canonical))))


def test_use_lists_name_the_users_and_their_roles(every_node):
    program = parse_program(every_node)
    uses = use_lists(program)
    mask = uses[named(program, "mask")]
    assert [(type(use.user).__name__, use.role) for use in mask] == [
        ("ReduceTile", "where"), ("ArgReduce", "where"), ("Store", "mask"),
    ]  # fmt: skip
    assert [use.role for use in uses[named(program, "folded")]] == ["inits"]
    assert {use.role for use in uses[named(program, "row")]} == {"subscripts"}
    assert [use.role for use in uses[named(program, "z")]] == ["merge"]
    assert {use.role for use in uses[named(program, "i")]} == {"domain", "view"}
    assert uses[named(program, "least")] == ()


def test_use_lists_agree_with_the_operands_of_each_statement(every_node):
    program = parse_program(every_node)
    for statement in walk(program):
        own = {*getattr(statement, "indices", ()), *getattr(statement, "args", ())}
        used = {use.value for use in uses_of(statement) if use.role != "merge"} - own
        assert used == set(operands_of(statement)) - own


def dependents(body, source=lambda op: False):
    program = parse_program(f"kernel k(@A: float32[4], %x.0: float32[], %n.1: int64[]) {{ {body} }}")
    seed = Value(1, program.scalars[1].type, "n")
    return {v.name for v in dependent_values(program.body, (seed,), source)}


def test_dependence_follows_data_subscripts_and_turns():
    body = "%y.3: float32[] = load @A[%n.1] %z.4: float32[] = exp %y.3 %w.5: float32[] = exp %x.0"
    assert dependents(body) == {"n", "y", "z"}
    body = """%y.3: float32[] = serial %i.4 in (%n.1) carry (%s.5 = %x.0) {
      %t.6: float32[] = exp %s.5 yield %t.6 }"""
    assert dependents(body) == {"n", "i", "y", "s", "t"}
    body = body.replace("(%n.1)", "(4)")
    assert dependents(body) == {"n"}


def test_dependence_goes_around_a_loop_until_nothing_changes():
    body = """%a.3: int64[], %b.4: int64[], %c.5: int64[], %d.6: int64[] = serial in () carry
      (%e.7: int64[] = %x.0, %f.8: int64[] = %x.0, %g.9: int64[] = %n.1, %h.10: int64[] = %x.0) {
        yield %f.8, %g.9, %g.9, %h.10
      }"""
    assert dependents(body) == {"n", "a", "b", "c", "e", "f", "g"}


def test_dependence_starts_at_source_ops_too():
    body = 'serial in () { stage "s" %y.3: float32[] = load @A[0] } %z.4: float32[] = exp %x.0'
    assert dependents(body) == {"n"}
    assert dependents(body, lambda op: isinstance(op, Load)) == {"n", "y"}
    assert dependents(body, lambda op: isinstance(op, Stage)) == {"n"}


def test_dependence_passes_through_a_merge():
    body = """%y.3: float32[] = reduce in () policy ordered_tree carry (%s.4 = %x.0) { yield %s.4 }
      merge declared associative {
        identity () { %z.5: float32[] = full 0.0 yield %z.5 }
        combine (%l.6: float32[], %r.7: float32[]) { %q.8: float32[] = load @A[%n.1] yield %q.8 }
      }"""
    assert "y" in dependents(body)
    assert "y" not in dependents(body.replace("load @A[%n.1]", "load @A[0]"))
