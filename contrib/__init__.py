"""What is built with the public API: the kernel library, and later atoms, cost models and tools.

Open :mod:`tvm_tile.contrib.kernels` first. Nothing in the compiler imports from here.
"""
