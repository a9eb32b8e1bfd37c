"""Running generated OpenCL text through PyOpenCL, on whatever platform the machine has.

Open :mod:`~tvm_tile.bridges.opencl.runner`; :mod:`~tvm_tile.bridges.opencl.platform` finds the device.
"""
