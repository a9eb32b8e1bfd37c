"""Tile kernels in Relax programs: one call in a graph that TVM's Relax compiles and its VM runs.

Open :mod:`~tvm_tile.bridges.relax.call` first: it adds a kernel to a program that is being built.
:mod:`~tvm_tile.bridges.relax.destinations` says which kernels can be called, and
:mod:`~tvm_tile.bridges.relax.function` makes the function that Relax calls. How a module of such functions
and of TVM's own is compiled is in :mod:`tvm_tile.bridges.tirx.mixture`.
"""

# As in the sibling package: never half imported by TVM's own import.
import tvm  # noqa: F401
