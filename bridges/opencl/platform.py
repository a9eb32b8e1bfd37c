"""The OpenCL device of this process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from tvm_tile.bridges.opencl.pocl import name_unknown_processor
from tvm_tile.errors import UnsupportedError

__all__ = ["Device", "open_device"]

_REMEDY = 'pip install "tvm-tile[opencl]"'

_lock = threading.Lock()
_device: list[Device] = []
#: In a forked child, its parent's devices, whose threads do not exist there.
_inherited: list[Device] = []


@dataclass(frozen=True)
class Device:
    """A device with a context and an in-order queue."""

    device: Any
    context: Any
    queue: Any

    @property
    def has_doubles(self) -> bool:
        """Whether it computes in float64."""
        return bool(self.device.double_fp_config)

    @property
    def options(self) -> list[str]:
        """Options that make its compiler keep to IEEE 754."""
        import pyopencl

        rounded = pyopencl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        exact = bool(self.device.single_fp_config & rounded)
        return ["-cl-fp32-correctly-rounded-divide-sqrt"] if exact else []


def open_device() -> Device:
    """The first GPU of the first platform that has one, else the first device; opened once.

    Raises
    ------
    UnsupportedError
        PyOpenCL is not installed, or there is no platform or device; or this process was forked from one that
        had opened its device.
    """
    if _inherited:
        raise UnsupportedError(
            "this process was forked from one that had opened its OpenCL device; a call here would never end",
            suggestion="start processes with the 'spawn' method, or fork before the first call",
        )
    with _lock:
        if not _device:
            _device.append(_open())
        return _device[0]


def _open() -> Device:
    try:
        import pyopencl
    except ImportError as error:
        raise UnsupportedError(
            f"OpenCL code runs through PyOpenCL, which cannot be imported: {error}", suggestion=_REMEDY
        ) from error
    try:
        devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    except pyopencl.Error as error:
        raise UnsupportedError(f"there is no OpenCL platform: {error}", suggestion=_REMEDY) from error
    if not devices:
        raise UnsupportedError("no OpenCL platform has a device", suggestion=_REMEDY)
    gpus = [device for device in devices if device.type & pyopencl.device_type.GPU]
    device = (gpus or devices)[0]
    name_unknown_processor(device)
    context = pyopencl.Context([device])
    return Device(device, context, pyopencl.CommandQueue(context))


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_device)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
