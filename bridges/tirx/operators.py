"""The TIRx operators of this project, and the ``T.tvm_tile`` namespace in which TVMScript prints them.

There are two. ``address`` is the address in a pointer as ``uint64``; TVM's ``reinterpret`` of a pointer
does not survive ``FP8StorageLegalize``, so this one is lowered to it after all such passes, and for LLVM
through a launder, because TVM asserts to LLVM that pointers are aligned and a check of the plain
pointer would fold to true. ``requires_pipeline`` stands in a function that only our pipeline compiles
rightly: that pipeline removes it, and lowering it anywhere else raises.

Importing this module registers both; ``import tvm`` does so by the ``tvm.backends`` entry point.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import StringImm, register_op_attr
from tvm.ir import _ffi_api as _ir_ffi
from tvm.tirx.op import call_intrin, register_intrin_lowering
from tvm.tirx.script.builder.ir import register_script_namespace

from tvm_tile.errors import UnsupportedError

__all__ = ["REQUIRES_PIPELINE", "address", "requires_pipeline"]

_ADDRESS = "tirx.tvm_tile_address"

#: Full name of the operator that marks a function as compiled rightly by one pipeline only.
REQUIRES_PIPELINE = "tirx.tvm_tile_requires_pipeline"


def address(pointer: Any) -> Any:
    """The address in a pointer, as a ``uint64`` expression."""
    return call_intrin("uint64", _ADDRESS, pointer)


def requires_pipeline(name: str) -> Any:
    """A call without effect that no pipeline but the named one compiles."""
    return call_intrin("int32", REQUIRES_PIPELINE, StringImm(str(name)))


def _register() -> None:
    _define(_ADDRESS, "The address in a pointer, as uint64.", "tvm_tile.address", tirx.CallEffectKind.Pure)
    register_intrin_lowering(_ADDRESS, "default", f=lambda call: tirx.reinterpret("uint64", call.args[0]))
    register_intrin_lowering(_ADDRESS, "llvm", f=_laundered_address)

    # Opaque, or a pass might drop it as a value that nobody uses.
    _define(
        REQUIRES_PIPELINE,
        "Only the named pipeline compiles this function rightly.",
        "tvm_tile.requires_pipeline",
        tirx.CallEffectKind.Opaque,
    )
    register_intrin_lowering(REQUIRES_PIPELINE, "default", f=_refuse)
    register_script_namespace("tvm_tile", _Namespace)
    # Lets the error cross TVM's C++ frames as what it is.
    tvm_ffi.register_error("UnsupportedError", UnsupportedError)


def _define(name: str, description: str, script_name: str, effect: Any) -> None:
    _ir_ffi.RegisterOp(name, description)
    register_op_attr(name, "TCallEffectKind", effect.value)
    register_op_attr(name, "TScriptPrinterName", script_name)


def _laundered_address(call: Any) -> Any:
    pointer = call.args[0]
    opaque = tirx.call_llvm_pure_intrin(pointer.ty, "llvm.launder.invariant.group", pointer)
    return tirx.reinterpret("uint64", opaque)


def _refuse(call: Any) -> Any:
    name = str(call.args[0].value)
    raise UnsupportedError(
        f"this function uses layouts that only the TIR pipeline {name!r} applies; "
        "the pipeline it is compiled with would ignore them",
        obligation="layouts are applied",
        suggestion=f'tvm.compile(mod, target, tir_pipeline="{name}")',
    )


class _Namespace:
    """What ``T.tvm_tile`` offers in TVMScript."""

    address = staticmethod(address)
    requires_pipeline = staticmethod(requires_pipeline)


_register()
