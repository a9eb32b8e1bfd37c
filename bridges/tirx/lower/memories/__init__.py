"""Memory in generated code: loads, stores, explicit memory and its addresses, atomics, opaque calls.

Open :mod:`~tvm_tile.bridges.tirx.lower.memories.memory` first.
"""
