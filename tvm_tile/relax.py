"""Tile kernels in Relax programs, ``tt.relax``: the one public module that imports TVM when it is loaded."""

from tvm_tile.bridges.relax.call import call

__all__ = ["call"]
