"""The function of a program as ``call_tir`` wants it: inputs first, outputs last, and left alone by Relax."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import tirx

from tvm_tile.bridges.tirx.mixture import in_root_block
from tvm_tile.errors import UnsupportedError

__all__ = ["called_function"]

#: ``OpPatternKind::kOpaque``: FuseOps puts the call in no group. Without it, FuseTIR fails on our functions.
_OPAQUE = 8


def called_function(module: tvm.IRModule, order: Sequence[int]) -> tirx.PrimFunc:
    """The one function of a lowered program, for a Relax module.

    Parameters
    ----------
    module
        As :func:`tvm_tile.build.lower` gives it.
    order
        Positions of the program's parameters in the order in which Relax passes them.

    Returns
    -------
    tvm.tirx.PrimFunc
        Private: without a global symbol. Relax does not fuse it, reads no pattern from its body, and does
        not schedule it.

    Raises
    ------
    UnsupportedError
        The program became several functions.
    """
    functions = [func for _, func in module.functions_items()]
    if len(functions) != 1 or not isinstance(functions[0], tirx.PrimFunc):
        names = ", ".join(var.name_hint for var, _ in module.functions_items())
        raise UnsupportedError(
            f"the program is lowered to {len(functions)} functions ({names}), and Relax can call only one",
            suggestion="tt.build(program, target) runs it outside of Relax",
        )
    (func,) = functions
    func = tirx.PrimFunc([func.params[k] for k in order], func.body, func.ret_type, func.attrs, func.span)
    return (
        in_root_block(func.without_attr("global_symbol"))
        .with_attr("op_pattern", _OPAQUE)
        .with_attr("tirx.is_scheduled", True)
    )
