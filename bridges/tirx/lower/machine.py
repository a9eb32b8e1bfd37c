"""What the code generator needs to know of a CPU: vector width and number of vector registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.target import Target
from tvm.target.codegen import target_has_features

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import bits

__all__ = ["Machine", "machine_of"]


@dataclass(frozen=True)
class Machine:
    """Vector unit of a CPU: bytes in a register, and how many registers there are."""

    vector_bytes: int
    registers: int

    def lanes(self, *dtypes: str) -> int:
        """Elements of the widest dtype that fill a vector register."""
        return self.vector_bytes * 8 // max(bits(dtype) for dtype in dtypes)

    @property
    def accumulators(self) -> int:
        """Vector registers that may hold partial sums while others carry operands."""
        return self.registers * 3 // 4


def machine_of(target: Target) -> Machine:
    """The vector unit of an LLVM target.

    Raises
    ------
    UnsupportedError
        The target is not a CPU that LLVM compiles for.
    """
    if target.kind.name != "llvm":
        raise UnsupportedError(
            f"there is no lowering for target kind {target.kind.name!r}",
            suggestion='lower for a CPU, for example tvm.target.Target({"kind": "llvm"})',
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
