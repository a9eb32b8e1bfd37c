"""The intermediate representation: regions, tile operations, SSA values, effects.

Start with :mod:`~tvm_tile.ir.regions` (the grammar) and :mod:`~tvm_tile.ir.ops` (the leaves).
:mod:`~tvm_tile.ir.values` has values and memories, :mod:`~tvm_tile.ir.index` the integer expressions of
subscripts and domains, :mod:`~tvm_tile.ir.typing` the result types. :mod:`~tvm_tile.ir.printer` and
:mod:`~tvm_tile.ir.parser` are inverse to each other, and :mod:`~tvm_tile.ir.verifier` reports all
structural faults of a program. :mod:`~tvm_tile.ir.reductions` derives merges and judges policies,
:mod:`~tvm_tile.ir.uses` and :mod:`~tvm_tile.ir.dependence` follow values. Nothing here runs a program,
and nothing imports TVM.
"""
