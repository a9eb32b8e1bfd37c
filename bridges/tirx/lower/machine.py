"""What the code generator needs to know of a target: its vector unit, and how it keeps elements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tvm.target import Target
from tvm.target.codegen import target_has_features

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import STORAGE_ONLY

__all__ = ["DEVICE_KINDS", "Machine", "is_device", "machine_of"]

#: Target kinds whose code runs as kernels on a device.
DEVICE_KINDS = ("cuda", "metal", "opencl")

_WORDS = {"bool": "uint8", "float16": "uint16", "bfloat16": "uint16"} | dict.fromkeys(STORAGE_ONLY, "uint8")


@dataclass(frozen=True)
class Machine:
    """A CPU with vectors, or one thread of a device.

    Attributes
    ----------
    vector_bytes
        Size of a vector register; 0 where there are none.
    registers
        Number of them.
    kind
        Of the target.
    """

    vector_bytes: int
    registers: int
    kind: str = "llvm"

    def lanes(self, width: int) -> int:
        """Elements of ``width`` bytes that are computed together, at least one."""
        return max(self.vector_bytes // width, 1)

    @property
    def accumulators(self) -> int:
        """Vector registers that may hold partial sums while others carry operands."""
        return self.registers * 3 // 4

    @property
    def is_device(self) -> bool:
        """Whether code runs in the threads of kernels."""
        return self.kind in DEVICE_KINDS

    @property
    def scope(self) -> str:
        """Storage scope of temporaries: TVM keeps small ``"global"`` ones of a CPU on its stack."""
        return "local" if self.is_device else "global"

    def identifier(self, hint: str) -> str:
        """A name for generated code, made from another; compilers for devices want it in ASCII."""
        name = re.sub(r"\W", "_", hint, flags=re.ASCII if self.is_device else 0)
        return f"_{name}" if name[:1].isdigit() else name

    def storage(self, dtype: str) -> str:
        """The dtype in which memory holds elements.

        On devices, whose compilers may lack narrow floats, these are words, and so are truth values.
        """
        return _WORDS.get(dtype, dtype) if self.is_device else dtype


def is_device(target: Target) -> bool:
    """Whether a target's code runs as kernels on a device."""
    return target.kind.name in DEVICE_KINDS


def machine_of(target: Target) -> Machine:
    """The vector unit of an LLVM target, or the thread of a device.

    Raises
    ------
    UnsupportedError
        There is no lowering for the target.
    """
    kind = target.kind.name
    if kind in DEVICE_KINDS:
        return Machine(0, 0, kind)
    if kind != "llvm":
        raise UnsupportedError(
            f"there is no lowering for target kind {kind!r}",
            suggestion="one of the targets " + ", ".join(map(repr, ("llvm", *DEVICE_KINDS))),
        )
    triple = str(_attribute(target, "mtriple") or "")
    if triple.startswith(("aarch64", "arm64")):
        return Machine(16, 32)
    if _has(target, "avx512f"):
        return Machine(64, 32)
    return Machine(32, 16) if _has(target, "avx") else Machine(16, 16)


def _attribute(target: Target, name: str) -> Any:
    return target.attrs.get(name, None) if hasattr(target, "attrs") else None


def _has(target: Target, feature: str) -> bool:
    return bool(target_has_features(feature, target))
