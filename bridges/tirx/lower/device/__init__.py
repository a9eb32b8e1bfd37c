"""What devices add: launches, workspaces, atomics, and the dialects of their C languages.

Open :mod:`~tvm_tile.bridges.tirx.lower.device.launches` first. One instance runs in one thread, by the same
lowering as on a CPU.
"""
