"""Lowering of programs to TIRx functions: a direct mapping that is right for every valid program.

Open :mod:`~tvm_tile.bridges.tirx.lower.function` first (the signature and assembly), then
:mod:`~tvm_tile.bridges.tirx.lower.regions` (order, state, threads) and
:mod:`~tvm_tile.bridges.tirx.lower.loops` (how one tile is computed).
:mod:`~tvm_tile.bridges.tirx.lower.values` says what a tile value is in here, and
:mod:`~tvm_tile.bridges.tirx.lower.fusion` which values are stored at all. The folders hold the operations:
``elements`` (arithmetic), ``tiles``, ``memories``, and ``device`` (launches, dialects of GPUs). Nothing here
chooses tile sizes or reorders regions: that is done on the program, by schedules.
"""

from tvm_tile.bridges.tirx.lower.function import lower_program

__all__ = ["lower_program"]
