"""Three-valued answers and the questions that isl answers within a budget."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from tvm_tile.relations.presburger import prove_empty
from tvm_tile.relations.proof import Proof


def test_each_answer_says_what_it_is():
    yes, no, open_ = Proof.proved("digits", 3), Proof.disproved({"i": 3}), Proof.unknown("budget")
    assert [(p.is_proved, p.is_disproved, p.is_unknown) for p in (yes, no, open_)] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert (yes.method, yes.cost, no.counterexample, open_.reason) == ("digits", 3, {"i": 3}, "budget")
    assert str(yes) == "proved by digits"
    assert str(no) == "disproved: {'i': 3}"
    assert str(open_) == "unknown: budget"


@pytest.mark.parametrize("proof", [Proof.proved("m"), Proof.disproved(0), Proof.unknown("r")])
def test_a_proof_has_no_truth_value(proof):
    with pytest.raises(TypeError, match=r"three answers.*is_proved"):
        bool(proof)


def test_cost_takes_no_part_in_equality():
    assert Proof.proved("m", 1) == Proof.proved("m", 2)
    assert Proof.proved("m") != Proof.proved("n")


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "maybe"},
        {"status": "disproved"},
        {"status": "proved", "counterexample": 1},
        {"status": "unknown"},
        {"status": "proved", "reason": "r"},
    ],
)
def test_inconsistent_proofs_are_refused(fields):
    with pytest.raises(ValueError, match=r"status|counterexample|reason"):
        Proof(**fields)


def test_a_falsy_counterexample_is_one():
    assert Proof.disproved(0).is_disproved


def test_an_empty_set_is_proved_empty():
    assert prove_empty("[n] -> { [i, j] : 0 <= i < n and j = 2 i and (j mod 2) = 1 }").is_proved


def test_a_point_refutes_emptiness_and_lies_in_the_set():
    proof = prove_empty("[n, m] -> { [i, j] : 0 <= i < n and j = 2 i and j >= 10 and 3 * n = 40 + m }")
    point = proof.counterexample
    assert proof.is_disproved
    assert set(point) == {"n", "m", "i", "j"}
    assert 0 <= point["i"] < point["n"]
    assert point["j"] == 2 * point["i"] >= 10
    assert 3 * point["n"] == 40 + point["m"]


def test_a_parameter_that_no_constraint_mentions_is_part_of_the_point():
    assert prove_empty("[n, m] -> { [i] : i = 7 }").counterexample == {"n": 0, "m": 0, "i": 7}


def test_a_built_set_is_taken_too():
    import islpy as isl

    built = isl.Set("{ [i] : 3 <= i < 4 }")
    assert prove_empty(built).counterexample == {"i": 3}
    assert built.get_ctx().get_max_operations() == 0


def _hard(n: int) -> str:
    names = [f"x{k}" for k in range(n)]
    box = " and ".join(f"0 <= {v} < 1000" for v in names)
    sums = [" + ".join(f"{(3 * k + 7 * j) % 11 + 1} * {v}" for k, v in enumerate(names)) for j in range(3)]
    congruent = " and ".join(f"({s}) mod {p} = {p - 1}" for s, p in zip(sums, (97, 101, 103), strict=True))
    return f"{{ [{', '.join(names)}] : {box} and {congruent} and x0 < x1 < x2 }}"


def test_a_spent_budget_is_unknown_not_an_error():
    for operations in (10, 100, 1000):
        proof = prove_empty(_hard(4), operations=operations)
        assert proof.is_unknown
        assert str(operations) in proof.reason


def test_a_built_set_survives_a_spent_budget():
    import islpy as isl

    built = isl.Set(_hard(4)).apply(isl.Map("{ [a, b, c, d] -> [a + b, c + d] }"))
    assert prove_empty(built, operations=1).is_unknown
    assert not built.is_empty()


@pytest.mark.parametrize("text", ["{ [i] : i * i = 4 }", "[n] -> { [i] : n * i = 4 }", "{ [i] : i ++ }", ""])
def test_text_that_is_no_presburger_set_is_refused(text):
    with pytest.raises(ValueError, match="not a Presburger set"):
        prove_empty(text)


def test_answers_agree_with_enumeration():
    for a, b, c in itertools.product((2, 3, 5), (0, 1, 4), (3, 6)):
        text = f"{{ [i, j] : 0 <= i < 6 and 0 <= j < 6 and {a} * i + {b} = {c} * j and i != j }}"
        points = [(i, j) for i, j in itertools.product(range(6), repeat=2) if a * i + b == c * j and i != j]
        proof = prove_empty(text)
        assert proof.is_proved == (not points)
        if points:
            assert tuple(proof.counterexample.values()) in points


def test_importing_the_package_does_not_import_isl():
    code = "import tvm_tile.relations.presburger, sys; sys.exit('islpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
