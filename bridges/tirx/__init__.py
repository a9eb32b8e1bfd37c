"""From programs to TIRx: lowering, the guards of arguments, targets, and the pipeline that builds it all.

Open :mod:`~tvm_tile.bridges.tirx.lower` first: it makes the function of a program.
:mod:`~tvm_tile.bridges.tirx.prologue` makes the assertions at its head,
:mod:`~tvm_tile.bridges.tirx.pipeline` is how it is compiled, :mod:`~tvm_tile.bridges.tirx.target` for what,
and :mod:`~tvm_tile.bridges.tirx.operators` has the operators that we add to TVM. Running compiled functions
is not done here but in :mod:`tvm_tile.bridges.runtime`.
"""

# Before any module in here: importing TVM calls our entry point, which imports some of them, and it must
# not find one of them half imported.
import tvm  # noqa: F401
