"""Everything that touches TVM: code generation for tile programs and running what comes out.

``tirx`` has the lowering and its surroundings, ``runtime`` what a call of a built program does. Open
:mod:`tvm_tile.bridges.tirx.pipeline` first; the entry point below registers what it defines.
"""

from __future__ import annotations

__all__: list[str] = []


def _autoload() -> None:
    """Entry point of the group ``tvm.backends``, called by ``import tvm`` in every process.

    Registers our operators and our TIR pipeline, so that a module of ours can be compiled where
    ``tvm_tile`` was never imported by name. Loads nothing else. The number of usable cores is noted
    here because TVM's thread pool may narrow the affinity of the calling thread later.
    """
    from tvm_tile.bridges.runtime import threads
    from tvm_tile.bridges.tirx.pipeline import register_pipeline

    threads.usable_cores()
    register_pipeline()
