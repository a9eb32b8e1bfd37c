"""Whether code for a target can run on this machine's CPU."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

from tvm.target import Target
from tvm.target.codegen import llvm_get_cpu_features, llvm_get_system_triple

from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.errors import UnsupportedError

__all__ = ["check_machine", "check_target", "required_features"]

#: Features that change which instructions LLVM selects, as opposed to how it tunes for a CPU. Matrix units
#: (AMX, SME) are left out: LLVM uses them only where a program asks for them.
_X86 = frozenset((
    "sse3", "ssse3", "sse4.1", "sse4.2", "sse4a", "popcnt", "lzcnt", "movbe", "avx", "avx2", "fma", "f16c",
    "bmi", "bmi2", "adx", "aes", "pclmul", "sha", "gfni", "vaes", "vpclmulqdq", "avx512f", "avx512dq",
    "avx512cd", "avx512bw", "avx512vl", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni",
    "avx512bitalg", "avx512vpopcntdq", "avx512vp2intersect", "avx512bf16", "avx512fp16", "avxvnni",
    "avxifma", "avxvnniint8", "avxvnniint16", "avxneconvert",
))  # fmt: skip
_ARM64 = frozenset((
    "neon", "fullfp16", "fp16fml", "dotprod", "i8mm", "bf16", "sve", "sve2", "lse", "aes", "sha2", "crc",
))  # fmt: skip

_KNOWN = _X86 | _ARM64


def required_features(target: Target) -> tuple[str, ...]:
    """CPU features that code for an LLVM target may use, by LLVM's names, sorted."""
    return tuple(sorted(_KNOWN & {str(name) for name in llvm_get_cpu_features(target)}))


@cache
def _present_features() -> frozenset[str]:
    return frozenset(required_features(host_target()))


def check_target(target: Target) -> None:
    """Refuse an LLVM target whose code would not run here.

    Raises
    ------
    UnsupportedError
        It is for another architecture or system, or may use instructions that this CPU lacks.
    """
    triple: Any = target.attrs.get("mtriple", None)
    here = str(llvm_get_system_triple())
    if triple is not None and _is_elsewhere(str(triple), here):
        raise _elsewhere(target, f"it is for {triple}, and this is {here}")
    lacking = [name for name in required_features(target) if name not in _present_features()]
    if lacking:
        raise _elsewhere(target, f"its CPU features {', '.join(lacking)} are absent")


def check_machine(name: str, system: str, architecture: str, features: tuple[str, ...]) -> None:
    """Refuse saved code that does not run here; see :func:`check_target`."""
    here = platform.system(), platform.machine()
    if (system, architecture) != here:
        raise UnsupportedError(
            f"{name} has code for {system} on {architecture}, and this is {here[0]} on {here[1]}",
            suggestion="build and save the program on a machine like this one",
        )
    lacking = [feature for feature in features if feature not in _present_features()]
    if lacking:
        raise UnsupportedError(
            f"{name} has code that may use the CPU features {', '.join(lacking)}, which this machine lacks",
            suggestion="build and save the program on a machine like this one, or for a target without them",
        )


def _architecture(triple: str) -> str:
    name = triple.split("-", 1)[0]
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _is_elsewhere(triple: str, here: str) -> bool:
    """Whether a target triple has another architecture or system; the vendor does not matter."""
    if _architecture(triple) != _architecture(here):
        return True
    return "-" in triple and ("linux" in triple) != ("linux" in here)


def _elsewhere(target: Target, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"code for {target} does not run on this machine: {reason}",
        suggestion="tvm.compile(tt.lower(program, target), target) generates it without loading it",
    )
