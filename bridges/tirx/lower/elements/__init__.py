"""Arithmetic on one element, or on a vector of them: functions, conversions, narrow floats.

Open :mod:`~tvm_tile.bridges.tirx.lower.elements.elementwise` first. Nothing here knows of tiles or memory.
"""
