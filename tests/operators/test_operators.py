"""Every operator on every element type it takes, on every target, against its oracle."""

import pytest

import tvm_tile as tt

from .catalogue import OPERATORS
from .operator import STORED
from .programs import check, kernel_of, make_arrays, make_inputs, traced
from .readme import README, RUN, TEXT, updated

operators = pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)


@operators
@pytest.mark.parametrize("target", RUN)
def test_an_operator_gives_what_its_oracle_gives(op, target):
    dtypes = tuple(d for d in op.dtypes if d not in op.refused(target))
    program, arrays, right = traced(op, dtypes)
    if target == "interpreter":
        tt.interpret(program, *arrays, debug=True)
    else:
        tt.build(program, target)(*arrays)
    check(op, dtypes, arrays, right)


@operators
@pytest.mark.parametrize("target", TEXT)
def test_an_operator_has_code_for_a_target_that_is_not_here(op, target):
    dtypes = tuple(d for d in op.dtypes if d not in op.refused(target))
    program, _, _ = traced(op, dtypes)
    assert {"cuda": "__global__", "metal": "kernel void"}[target] in tt.build(program, target).source()


@operators
def test_what_a_target_cannot_hold_is_refused_there(op):
    for target in (*RUN, *TEXT):
        for dtype in op.refused(target):
            program, _, _ = traced(op, (dtype,))
            with pytest.raises(tt.UnsupportedError):
                tt.lower(program, target)


@operators
def test_an_operator_refuses_the_other_element_types(op):
    shape = make_arrays(op, op.dtypes[0])[1].shape
    for dtype in STORED:
        if dtype in op.dtypes:
            continue
        output = tt.spec(shape, op.result(dtype))
        with pytest.raises(tt.TileError):
            kernel_of(op, (dtype,)).trace(*make_inputs(op, dtype), output)


def test_the_table_of_the_readme_is_what_is_tested():
    text = README.read_text()
    assert updated(text) == text, "run: python -m tests.operators.readme"
