"""What a call of a built program does, from Python objects to the generated function and back.

:mod:`~tvm_tile.bridges.runtime.executable` is the callable; open it first. Its fast path hands the
arguments to TVM as they are. The other modules serve the path behind it: ``arguments`` says exactly what
does not fit, ``overlap`` which arguments share memory, ``staging`` makes operands of arrays that TVM does
not take as they are, ``threads`` keeps the number of threads. Code generation is in
:mod:`tvm_tile.bridges.tirx`.
"""
