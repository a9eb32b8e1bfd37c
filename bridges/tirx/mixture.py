"""Modules that hold functions of both of TVM's IR dialects, as a Relax program with our kernels does.

The operators that Relax legalizes become ``s_tir`` functions, made of blocks, which ``"tirx"`` does not
lower; ours are ``tirx`` functions, whose layouts ``"s_tir"`` ignores. TVM picks one pipeline a module. The
one made here parts the module by dialect, runs each part's own pipeline and joins what comes out.

Some Relax passes look for a block at the root of every function, whatever its dialect, so a function
passes through Relax in one that says nothing, :func:`in_root_block`, which is removed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx.compilation_pipeline import get_tir_pipeline

from tvm_tile.errors import UnsupportedError

__all__ = ["in_root_block", "mixed_pipeline", "without_root_block"]

_ROOT = "root"

#: Set by TVM on the only function of a module. Each part may have one where the whole has none.
_ENTRY = "tirx.is_entry_func"

PipelineFactory = Callable[[], tuple[Any, Any, Any]]


def in_root_block(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with its body in a block without iterations, reads or writes."""
    block = SBlock([], [], [], _ROOT, func.body)
    return func.with_body(SBlockRealize([], tirx.const(True, "bool"), block))


def without_root_block(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Undo :func:`in_root_block`; a function without such a block is returned as it is."""
    realize = func.body
    if not isinstance(realize, SBlockRealize) or len(realize.iter_values):
        return func
    block = realize.block
    if str(block.name_hint) != _ROOT or len(block.alloc_buffers) or len(block.match_buffers) or block.init:
        return func
    return func.with_body(block.body)


def mixed_pipeline(name: str, factory: PipelineFactory) -> PipelineFactory:
    """Extend a pipeline for ``tirx`` functions to modules that also hold ``s_tir`` functions.

    Parameters
    ----------
    name
        Of the pass that is made.
    factory
        Gives a module pass, host finalization and device finalization. TVM's two pipelines share the
        finalizations, so those of ``factory`` serve for both parts.
    """

    def mixed() -> tuple[Any, Any, Any]:
        own_pass, finalize_host, finalize_device = factory()

        def run(mod: tvm.IRModule, _context: Any) -> tvm.IRModule:
            blocks = {var: func for var, func in mod.functions_items() if _is_s_tir(func)}
            rest = {
                var: without_root_block(func) if isinstance(func, tirx.PrimFunc) else func
                for var, func in mod.functions_items()
                if var not in blocks
            }
            own = own_pass(tvm.IRModule(rest, attrs=mod.attrs))
            if not blocks:
                return own
            s_tir_pass, _, _ = get_tir_pipeline("s_tir")
            return _joined(s_tir_pass(tvm.IRModule(blocks, attrs=mod.attrs)), own)

        return tvm.transform.module_pass(run, opt_level=0, name=name), finalize_host, finalize_device

    return mixed


def _is_s_tir(func: Any) -> bool:
    return isinstance(func, tirx.PrimFunc) and bool(func.attrs and func.attrs.get("s_tir", False))


def _joined(a: tvm.IRModule, b: tvm.IRModule) -> tvm.IRModule:
    """Both modules in one.

    Raises
    ------
    UnsupportedError
        Both have a function of one name. Splitting off device code makes names, unique in each part only.
    """
    if len(b.functions) == 0:
        return a
    functions: dict[Any, Any] = {}
    names: set[str] = set()
    for var, func in (*a.functions_items(), *b.functions_items()):
        if var.name_hint in names:
            raise UnsupportedError(
                f"two functions of the module become {var.name_hint} when device code is split off",
                suggestion="rename the kernel",
            )
        names.add(var.name_hint)
        functions[var] = func.without_attr(_ENTRY) if isinstance(func, tirx.PrimFunc) else func
    return tvm.IRModule(functions, attrs=a.attrs)
