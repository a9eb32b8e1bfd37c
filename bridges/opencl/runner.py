"""Kernels of one program, compiled on first use, and runs of them on arrays of the host."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tvm_tile.bridges.opencl.platform import Device, open_device
from tvm_tile.bridges.tirx.device import DeviceCode
from tvm_tile.errors import UnsupportedError

__all__ = ["Runner"]


class Runner:
    """Runs device code.

    Parameters
    ----------
    code
        OpenCL text and its launches.
    name
        Of the program, for messages.
    fma
        Whether products may be contracted with sums.
    """

    def __init__(self, code: DeviceCode, name: str, fma: bool) -> None:
        self._code = code
        self._name = name
        self._fma = fma
        self._lock = threading.Lock()
        self._kernels: dict[str, Any] = {}

    def run(
        self, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, np.generic], written: Collection[str]
    ) -> None:
        """Run all launches.

        Parameters
        ----------
        arrays
            Dense arrays by parameter. Those that are one object share a buffer.
        scalars
            Run-time scalars of the dtype that the kernels take.
        written
            Parameters whose elements are copied back.

        Raises
        ------
        UnsupportedError
            There is no device, or it lacks something that the kernels need.
        """
        device = open_device()
        import pyopencl as cl

        # Arguments are set on kernel objects, which calls of several threads would share.
        with self._lock:
            kernels = self._compiled(device)
            shared = {id(array): self._buffer(device, array.nbytes) for array in arrays.values()}
            for array in arrays.values():
                if array.size:
                    cl.enqueue_copy(device.queue, shared[id(array)], array, is_blocking=False)
            places: dict[str, Any] = {name: shared[id(array)] for name, array in arrays.items()}
            places |= scalars
            for temporary in self._code.temporaries:
                places[temporary.name] = self._buffer(device, temporary.nbytes)
            for launch in self._code.launches:
                kernel = kernels[launch.kernel]
                kernel.set_args(*(places[name] for name in launch.arguments))
                whole = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
                cl.enqueue_nd_range_kernel(device.queue, kernel, whole, launch.block)
            for name in written:
                if arrays[name].size:
                    cl.enqueue_copy(device.queue, arrays[name], places[name], is_blocking=False)
            device.queue.finish()

    def _buffer(self, device: Device, nbytes: int) -> Any:
        """Memory of whole words, since atomic updates of narrow elements exchange words."""
        import pyopencl as cl

        return cl.Buffer(device.context, cl.mem_flags.READ_WRITE, max(-(-nbytes // 8), 1) * 8)

    def _compiled(self, device: Device) -> dict[str, Any]:
        import pyopencl as cl

        if self._kernels or not self._code.launches:
            return self._kernels
        if "double" in self._code.text and not device.has_doubles:
            raise UnsupportedError(
                f"{self._name} computes in float64, which {device.device.name} does not have",
                suggestion="use float32",
            )
        text = self._code.text if self._fma else f"#pragma OPENCL FP_CONTRACT OFF\n{self._code.text}"
        try:
            program = cl.Program(device.context, text).build(device.options)
        except cl.Error as error:
            raise UnsupportedError(
                f"{device.device.name} does not compile {self._name}: {error}",
                suggestion='build for another target, such as "llvm"',
            ) from error
        self._kernels = {name: cl.Kernel(program, name) for name in self._code.kernels}
        return self._kernels
