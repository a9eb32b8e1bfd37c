"""Targets without TVM: scopes, memories, features and instruction contracts of a machine.

A TVM target description is resolved in :mod:`tvm_tile.bridges.tirx.target`.
"""
