"""Temporaries whose readers TVM's simplifier removes."""

import numpy as np
import pytest

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.parser import parse_program

CANCELLING = """
kernel cancelling(@A: int32[10, 10], @C: int32[10, 10]) {
  %a.0: int32[6, 6] = load @A[0 :+ 6, 0 :+ 6]
  %b.1: int32[6, 6] = FN %a.0, %a.0
  %c.2: int32[6, 6] = load @A[0 :+ 6, 0 :+ 6]
  %s.3: int32[6, 6], %t.4: int32[6, 6] = serial %i.5 in (0) carry (%x.6 = %a.0, %y.7 = %b.1) {
    yield %c.2, %c.2
  }
  store @C[2 :+ 6, 1 :+ 6], %t.4
}
"""


@pytest.mark.parametrize("fn", ["subtract", "xor", "and", "maximum", "remainder", "floor_divide", "multiply"])
@pytest.mark.parametrize("noalias", [True, False])
def test_an_operation_that_cancels_does_not_clobber_its_result(agrees, fn, noalias):
    """``x - x`` left a temporary that was only written, and the default pipeline put it over the result.

    TVM's StorageRewrite checks the reads of a temporary before it reuses its storage; there were none.
    """
    program = parse_program(CANCELLING.replace("FN", fn))
    arrays = [np.random.default_rng(0).integers(-4, 5, (10, 10)).astype("int32") for _ in "AC"]
    agrees(program, *arrays, noalias=noalias)


def test_what_nothing_reads_is_not_there():
    script = lower_program(parse_program(CANCELLING.replace("FN", "subtract")), host_target()).script()
    assert "A[" not in script
    assert script.count("alloc_buffer") == 1
    kept = lower_program(parse_program(CANCELLING.replace("FN", "add")), host_target()).script()
    assert "A[" in kept
