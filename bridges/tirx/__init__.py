"""TIRx: lowering of programs, and what surrounds it.

``lower`` makes functions of programs, :mod:`~tvm_tile.bridges.tirx.prologue` their first statements,
:mod:`~tvm_tile.bridges.tirx.pipeline` compiles them, :mod:`~tvm_tile.bridges.tirx.operators` has the
operators that we add to TVM, and :mod:`~tvm_tile.bridges.tirx.target` the target descriptions.
"""

# Before any module in here: importing TVM calls our entry point, which imports some of them, and it must
# not find one of them half imported.
import tvm  # noqa: F401
