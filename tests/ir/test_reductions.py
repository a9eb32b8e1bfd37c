import dataclasses
import itertools

import pytest

from tvm_tile.ir.ops import Elementwise, Number
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.reductions import check_policy, derive_merge
from tvm_tile.ir.regions import Block, Merge, Reduce
from tvm_tile.ir.values import Value
from tvm_tile.ir.verifier import verify_program

PARAMS = "@A: float32[4], %x.0: float32[], %e.1: float32[], %c.2: bool[], %n.3: int64[], %i.4: int32[]"


def parsed(body, states="%s.10 = %x.0", results="%r.90: float32[]"):
    """A legal program with one reduction."""
    program = parse_program(f"""kernel k({PARAMS}) {{
      %t.5: float32[4, 4] = full 0.5
      {results} = reduce %q.6 in (4) policy fold_left carry ({states}) {{
        {body}
      }}
    }}""")
    assert verify_program(program) == []
    return program


def reduction(body, states="%s.10 = %x.0", results="%r.90: float32[]"):
    """The reduction with this body, and the merge derived from it."""
    program = parsed(body, states, results)
    _, loop = program.body.statements
    assert isinstance(loop, Reduce)
    counter = itertools.count(1000)
    return loop, derive_merge(loop.args, loop.body, loop.yields, lambda t: Value(next(counter), t))


INT = {"states": "%s.10 = %i.4", "results": "%r.90: int32[]"}
BOOL = {"states": "%s.10 = %c.2", "results": "%r.90: bool[]"}


@pytest.mark.parametrize(
    ("body", "options", "fn", "unit", "exact"),
    [
        ("%y.20: float32[] = add %s.10, %e.1 yield %y.20", {}, "add", "0.0", False),
        ("%y.20: float32[] = add %e.1, %s.10 yield %y.20", {}, "add", "0.0", False),
        ("%y.20: float32[] = multiply %s.10, %e.1 yield %y.20", {}, "multiply", "1.0", False),
        ("%y.20: float32[] = maximum %e.1, %s.10 yield %y.20", {}, "maximum", "-inf", True),
        ("%y.20: float32[] = minimum %s.10, %e.1 yield %y.20", {}, "minimum", "inf", True),
        ("%y.20: int32[] = add %s.10, %i.4 yield %y.20", INT, "add", "0", True),
        ("%y.20: int32[] = maximum %s.10, %i.4 yield %y.20", INT, "maximum", "-2147483648", True),
        ("%y.20: int32[] = minimum %s.10, %i.4 yield %y.20", INT, "minimum", "2147483647", True),
        ("%y.20: int32[] = and %s.10, %i.4 yield %y.20", INT, "and", "-1", True),
        ("%y.20: bool[] = and %s.10, %c.2 yield %y.20", BOOL, "and", "True", True),
        ("%y.20: bool[] = or %s.10, %c.2 yield %y.20", BOOL, "or", "False", True),
        ("%y.20: bool[] = xor %c.2, %s.10 yield %y.20", BOOL, "xor", "False", True),
    ],
)
def test_one_update_gives_the_merge_of_its_function(body, options, fn, unit, exact):
    loop, merge = reduction(body, **options)
    assert merge is not None
    assert merge.builtin == (fn,)
    assert merge.associative
    assert merge.commutative
    assert (merge.exact, merge.provenance, merge.lift) == (exact, "derived", None)
    assert [op.value for op in merge.identity.body.statements] == [Number(unit)]
    left, right = merge.combine.params
    (joined,) = merge.combine.body.statements
    assert joined == Elementwise(joined.result, fn, (left, right))
    assert merge.combine.yields == (joined.result,)
    # The derived merge is legal where it is used, and its ids are new.
    tree = dataclasses.replace(loop, policy="unordered_tree", merge=merge)
    program = parsed(body, **options)
    legal = dataclasses.replace(program, body=Block((program.body.statements[0], tree)))
    assert verify_program(legal) == []


@pytest.mark.parametrize(
    ("body", "fn"),
    [
        ("%y.20: float32[] = add %s.10, %e.1 %z.21: float32[] = add %x.0, %y.20 yield %z.21", "add"),
        ("%y.20: float32[] = multiply %e.1, %e.1 %z.21: float32[] = add %y.20, %s.10 yield %z.21", "add"),
        # Masked contributions
        ("%y.20: float32[] = if %c.2 { %z.21: float32[] = add %s.10, %e.1 yield %z.21 } else { yield %s.10 } "
         "yield %y.20", "add"),
        ("%y.20: float32[] = if %c.2 { yield %s.10 } else { %z.21: float32[] = maximum %e.1, %s.10 "
         "yield %z.21 } yield %y.20", "maximum"),
        ("%y.20: float32[] = if %c.2 { %z.21: float32[] = add %s.10, %e.1 yield %z.21 } "
         "else { %w.22: float32[] = add %s.10, %x.0 yield %w.22 } yield %y.20", "add"),
        ("%y.20: float32[] = if %c.2 { %z.21: float32[] = add %s.10, %e.1 yield %z.21 } else { yield %s.10 } "
         "%w.22: float32[] = add %y.20, %e.1 yield %w.22", "add"),
        # Nested loops
        ("%y.20: float32[] = serial %p.21 in (%n.3) carry (%z.22 = %s.10) { "
         "%v.23: float32[] = load @A[%p.21] %w.24: float32[] = add %z.22, %v.23 yield %w.24 } "
         "yield %y.20", "add"),
        ("%b.19: float32[] = minimum %s.10, %e.1 %y.20: float32[] = pipeline %p.21 in (2) "
         "carry (%z.22 = %b.19) { %w.24: float32[] = minimum %z.22, %e.1 yield %w.24 } "
         "yield %y.20", "minimum"),
        ("%y.20: float32[] = reduce %p.21 in (2) policy fold_right carry (%z.22 = %s.10) { "
         "%w.24: float32[] = add %e.1, %z.22 yield %w.24 } yield %y.20", "add"),
        ("%y.20: float32[] = serial %p.21 in (2) carry (%z.22 = %s.10) { "
         "%a.25: float32[] = if %c.2 { %w.24: float32[] = add %e.1, %z.22 yield %w.24 } else { yield %z.22 } "
         "yield %a.25 } yield %y.20", "add"),
        # A nested recurrence that is no state of the reduction
        ("%h.18: float32[], %y.20: float32[] = serial in () carry (%k.16 = %x.0, %z.22 = %s.10) { "
         "%l.17: float32[] = exp %k.16 %w.24: float32[] = add %z.22, %k.16 yield %l.17, %w.24 } "
         "yield %y.20", "add"),
    ],
)  # fmt: skip
def test_contributions_may_be_chained_masked_and_nested(body, fn):
    _, merge = reduction(body)
    assert merge is not None
    assert merge.builtin == (fn,)


def test_a_matrix_product_into_the_state_is_an_addition():
    body = "%y.20: float32[4, 4] = mma %t.5, %t.5, %s.10 yield %y.20"
    _, merge = reduction(body, states="%s.10 = %t.5", results="%r.90: float32[4, 4]")
    assert merge is not None
    assert merge.builtin == ("add",)


def test_a_matrix_product_of_the_state_is_no_contribution():
    body = "%y.20: float32[4, 4] = mma %s.10, %t.5, %s.10 yield %y.20"
    assert reduction(body, states="%s.10 = %t.5", results="%r.90: float32[4, 4]")[1] is None


def test_several_states_each_have_their_function():
    states, results = "%s.10 = %x.0, %m.11 = %x.0", "%r.90: float32[], %q.91: float32[]"
    body = "%y.20: float32[] = add %s.10, %e.1 %z.21: float32[] = maximum %m.11, %e.1 yield %y.20, %z.21"
    _, merge = reduction(body, states, results)
    assert merge is not None
    assert merge.builtin == ("add", "maximum")
    assert not merge.exact
    assert len(merge.combine.params) == 4
    left, right = merge.combine.params[1], merge.combine.params[3]
    assert merge.combine.body.statements[1].operands == (left, right)


TWO = ("%s.10 = %x.0, %m.11 = %x.0", "%r.90: float32[], %q.91: float32[]")


@pytest.mark.parametrize(
    ("body", "states"),
    [
        ("%y.20: float32[] = subtract %s.10, %e.1 yield %y.20", ()),
        ("%y.20: float32[] = add %s.10, %s.10 yield %y.20", ()),
        ("%a.19: float32[] = exp %s.10 %y.20: float32[] = add %s.10, %a.19 yield %y.20", ()),
        ("yield %e.1", ()),
        ("%y.20: float32[] = add %e.1, %x.0 yield %y.20", ()),
        ("%y.20: float32[] = add %s.10, %e.1 %z.21: float32[] = multiply %y.20, %e.1 yield %z.21", ()),
        # A branch on the state, different functions in its arms, an arm that forgets the state
        ("%b.19: bool[] = less %s.10, %e.1 %y.20: float32[] = if %b.19 { %z.21: float32[] = add %s.10, %e.1 "
         "yield %z.21 } else { yield %s.10 } yield %y.20", ()),
        ("%y.20: float32[] = if %c.2 { %z.21: float32[] = add %s.10, %e.1 yield %z.21 } "
         "else { %w.22: float32[] = multiply %s.10, %x.0 yield %w.22 } yield %y.20", ()),
        ("%y.20: float32[] = if %c.2 { %z.21: float32[] = add %s.10, %e.1 yield %z.21 } else { yield %e.1 } "
         "yield %y.20", ()),
        # A state within another's contribution, and states that trade places
        ("%y.20: float32[] = add %s.10, %m.11 %z.21: float32[] = add %m.11, %e.1 yield %y.20, %z.21", TWO),
        ("%y.20: float32[] = add %m.11, %e.1 %z.21: float32[] = add %s.10, %e.1 yield %y.20, %z.21", TWO),
        ("%y.20: float32[] = add %s.10, %e.1 yield %y.20, %e.1", TWO),
        # Nested loops: another function, as many turns as the state says, a contribution from the state
        ("%y.20: float32[] = serial %p.21 in (2) carry (%z.22 = %s.10) { "
         "%w.24: float32[] = subtract %z.22, %e.1 yield %w.24 } yield %y.20", ()),
        ("%b.19: float32[] = add %s.10, %e.1 %y.20: float32[] = serial %p.21 in (2) carry (%z.22 = %b.19) { "
         "%w.24: float32[] = multiply %z.22, %e.1 yield %w.24 } yield %y.20", ()),
        ("%a.19: int64[] = cast %s.10 %y.20: float32[] = serial %p.21 in (%a.19) carry (%z.22 = %s.10) { "
         "%w.24: float32[] = add %z.22, %e.1 yield %w.24 } yield %y.20", ()),
        ("%y.20: float32[] = serial %p.21 in (2) carry (%z.22 = %s.10) { %w.24: float32[] = add %z.22, %s.10 "
         "yield %w.24 } yield %y.20", ()),
        ("%h.18: float32[], %y.20: float32[] = serial in () carry (%k.16 = %s.10, %z.22 = %s.10) { "
         "%w.24: float32[] = add %z.22, %k.16 yield %k.16, %w.24 } yield %y.20", ()),
        # A nested tree whose declared merge need not be the update's function
        ("%y.20: float32[] = reduce %p.21 in (2) policy ordered_tree carry (%z.22 = %s.10) { "
         "%w.24: float32[] = add %e.1, %z.22 yield %w.24 } merge declared associative { "
         "identity () { %f.25: float32[] = full 0 yield %f.25 } "
         "combine (%g.26: float32[], %h.27: float32[]) { yield %g.26 } } yield %y.20", ()),
    ],
)  # fmt: skip
def test_another_form_has_no_derived_merge(body, states):
    assert reduction(body, *states)[1] is None


def test_no_states_have_no_merge():
    assert derive_merge((), Block(), (), lambda t: Value(0, t)) is None


def test_a_long_chain_of_contributions_and_branches_is_derived():
    lines, last = [], "%s.10"
    for k in range(2000):
        then = f"%a.{3 * k + 100}: float32[] = add {last}, %e.1 yield %a.{3 * k + 100}"
        lines.append(f"%y.{3 * k + 101}: float32[] = if %c.2 {{ {then} }} else {{ yield {last} }}")
        lines.append(f"%z.{3 * k + 102}: float32[] = add %y.{3 * k + 101}, %e.1")
        last = f"%z.{3 * k + 102}"
    text = "\n".join([*lines, f"yield {last}"])
    _, merge = reduction(text)
    assert merge is not None
    assert merge.builtin == ("add",)


SUM = "%y.20: float32[] = add %s.10, %e.1 yield %y.20"


def with_merge(policy, **laws):
    loop, merge = reduction(SUM)
    assert isinstance(merge, Merge)
    return dataclasses.replace(loop, policy=policy, merge=dataclasses.replace(merge, **laws))


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
def test_a_tree_without_merge_is_refused_with_a_fold(policy):
    loop, _ = reduction(SUM)
    ((message, suggestion),) = check_policy(policy, loop.merge, "s")
    assert "the update of s has no known merge" in message
    assert 'policy="fold_left"' in suggestion


@pytest.mark.parametrize("policy", ["fold_left", "fold_right"])
def test_a_fold_needs_no_merge(policy):
    loop, _ = reduction(SUM)
    assert check_policy(policy, loop.merge, "s") == []


def refused(loop):
    return check_policy(loop.policy, loop.merge, "s")


def test_an_unordered_tree_needs_a_commutative_merge():
    assert refused(with_merge("unordered_tree")) == []
    ((message, suggestion),) = refused(with_merge("unordered_tree", commutative=False))
    assert "not commutative" in message
    assert "ordered_tree" in suggestion
    assert refused(with_merge("ordered_tree", commutative=False)) == []


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
def test_a_tree_needs_an_associative_merge(policy):
    ((message, suggestion),) = refused(with_merge(policy, associative=False, commutative=False))
    assert "not associative" in message
    assert "fold_left" in suggestion


def test_a_fold_may_have_any_merge():
    assert refused(with_merge("fold_left", associative=False, commutative=False)) == []
