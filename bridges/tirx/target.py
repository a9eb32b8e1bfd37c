"""TVM targets: the short names of the public API, and the features of this host.

LLVM's name for the host CPU is not enough: it may stand for an older CPU than the features that are
present, or for features that a hypervisor masks. The operating system knows, so what it reports is
compared with what LLVM assumes for the name, and the differences are written into the target.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target
from tvm.target.codegen import llvm_get_cpu_features, llvm_get_system_cpu

from tvm_tile.bridges.tirx.target_options import check_options
from tvm_tile.errors import ArgumentError

__all__ = ["SHORT_NAMES", "host_target", "reported_flags", "resolve_target"]

#: Names that stand for a whole target description.
SHORT_NAMES = ("llvm", "cuda", "metal", "opencl")

#: Feature flags of ``/proc/cpuinfo`` on x86 whose LLVM name differs, beside ``_`` for ``.`` or nothing.
_X86_RENAMED = {
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "pclmulqdq": "pclmul",
    "sha_ni": "sha",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_vp2intersect": "avx512vp2intersect",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx_vnni": "avxvnni",
    "avx_ifma": "avxifma",
    "avx_vnni_int8": "avxvnniint8",
    "avx_vnni_int16": "avxvnniint16",
    "avx_ne_convert": "avxneconvert",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
    "amx_fp16": "amx-fp16",
    "amx_complex": "amx-complex",
}
_X86_SAME = (
    "ssse3", "sse4a", "popcnt", "avx", "avx2", "fma", "f16c", "bmi2", "movbe", "aes", "gfni", "vaes",
    "vpclmulqdq", "avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx512ifma", "avx512vbmi",
)  # fmt: skip
_X86 = {**_X86_RENAMED, **{flag: flag for flag in _X86_SAME}}

#: The same on 64-bit Arm.
_ARM64 = {
    "asimd": "neon",
    "asimdhp": "fullfp16",
    "asimdfhm": "fp16fml",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
    "atomics": "lse",
    "aes": "aes",
    "sha2": "sha2",
    "crc32": "crc",
}


def resolve_target(target: Any) -> Target:
    """The TVM target of a short name, or of anything that ``tvm.target.Target`` takes.

    ``"llvm"`` is this host with its features probed, ``"cuda"`` the local device's architecture or
    else ``sm_80``. Any other description is taken as it is, with this host as host where it has none.

    Raises
    ------
    ArgumentError
        TVM knows no such target, or LLVM no such CPU or feature.
    UnsupportedError
        It has options whose effect is not known.
    """
    if isinstance(target, Target):
        check_options(target)
        return _with_host(target)
    if isinstance(target, str) and target in SHORT_NAMES:
        return _short_name(target)
    try:
        described = Target(target)
    except Exception as error:  # TVM raises several unrelated classes, all about the description.
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise ArgumentError(
            f"{target!r} is not a target: {reason}",
            suggestion="one of the short names "
            + ", ".join(map(repr, SHORT_NAMES))
            + ', or a dict such as {"kind": "llvm"}',
        ) from error
    check_options(described)
    return _with_host(described)


def _with_host(target: Target) -> Target:
    """A device with this host, if it has none; TVM splits kernels from what launches them only with one."""
    if target.kind.name == "llvm" or target.kind.name not in SHORT_NAMES or target.host is not None:
        return target
    return target.with_host(host_target())


@cache
def _short_name(name: str) -> Target:
    match name:
        case "llvm":
            return host_target()
        case "cuda":
            return Target({"kind": "cuda", "arch": _local_cuda_arch() or "sm_80"}, host=host_target())
        case _:
            return Target({"kind": name}, host=host_target())


@cache
def host_target() -> Target:
    """The LLVM target of the CPU this runs on."""
    description: dict[str, Any] = {"kind": "llvm", "mcpu": str(llvm_get_system_cpu())}
    attributes = _feature_differences(description["mcpu"])
    if attributes:
        description["mattr"] = attributes
    return Target(description)


def _feature_differences(cpu: str) -> list[str]:
    """What to add to the features that LLVM assumes for a CPU, and to take away, to get this host's."""
    names = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM64, "arm64": _ARM64}.get(
        platform.machine().lower()
    )
    flags = reported_flags()
    if names is None or not flags:
        return []
    assumed = {str(feature) for feature in llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": cpu}))}
    present = {name for flag, name in names.items() if flag in flags}
    absent = set(names.values()) - present
    differences = [f"+{name}" for name in sorted(present - assumed)] + [
        f"-{name}" for name in sorted(absent & assumed)
    ]
    if "avx512f" in present and "prefer-256-bit" in assumed:
        # A tuning choice for code with few vectors in it, which ours is not.
        differences.append("-prefer-256-bit")
    return differences


def reported_flags() -> frozenset[str]:
    """CPU feature flags as Linux reports them; empty where it does not."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return frozenset()
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _local_cuda_arch() -> str | None:
    device = tvm.cuda(0)
    if not device.exist:
        return None
    return "sm_" + str(device.compute_version).replace(".", "")
