"""What a program means, and what it may touch.

:mod:`~tvm_tile.semantics.interpreter` runs a program on NumPy arrays and is the reference for every
backend: open it first. :mod:`~tvm_tile.semantics.elementwise`, :mod:`~tvm_tile.semantics.rounding`,
:mod:`~tvm_tile.semantics.tiles` and :mod:`~tvm_tile.semantics.views` give the meaning of the leaves,
:mod:`~tvm_tile.semantics.orders` the admitted orders and groupings. :mod:`~tvm_tile.semantics.shadow` is
the bookkeeping of debug runs. :mod:`~tvm_tile.semantics.footprints` has the access relations of a
program, and :mod:`~tvm_tile.semantics.aliasing` proves with them that arguments may be the same array.
Nothing here changes a program, and nothing imports TVM.
"""
