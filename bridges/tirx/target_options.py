"""Options of LLVM targets that TVM passes on unchecked: what LLVM does not know, and what changes meaning.

For a CPU or feature that it does not know LLVM prints a line and generates other code; for an unknown
architecture TVM crashes. Fast-math options let LLVM reorder and simplify floating-point arithmetic, which
the language forbids unless the program itself admits it.
"""

from __future__ import annotations

import difflib
import re

from tvm.target import Target
from tvm.target.codegen import (
    llvm_get_cpu_archlist,
    llvm_get_cpu_features,
    llvm_get_system_triple,
    llvm_get_targets,
    llvm_is_valid_cpu,
)

from tvm_tile.errors import ArgumentError, IllegalError, UnsupportedError
from tvm_tile.ir.regions import Program
from tvm_tile.semantics.legality import ordered_folds

__all__ = ["check_arithmetic", "check_options"]

#: Architectures under the other names that target triples have for them.
_SYNONYMS = {"amd64": "x86_64", "arm64": "aarch64", "i486": "i386", "i586": "i386", "i686": "i386"}

#: All but contraction, which a program admits unless it has ``fma=False``.
_FAST_MATH = (
    "fast-math",
    "fast-math-nnan",
    "fast-math-ninf",
    "fast-math-nsz",
    "fast-math-arcp",
    "fast-math-reassoc",
)
_REORDERING = ("fast-math", "fast-math-reassoc")
_CONTRACTION = "fast-math-contract"

_LARGEST_OPT_LEVEL = 3

#: Options that are sizes; one that is not positive makes TVM fail somewhere later, or is ignored.
_SIZES = (
    "max_num_threads",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "num-cores",
    "thread_warp_size",
    "vector-width",
)
#: Options with few values, which TVM looks at only when it generates code.
_WORDS = {"jit": ("orcjit", "mcjit"), "mfloat-abi": ("hard", "soft")}

_CUDA_ARCHITECTURE = re.compile(r"sm_[1-9]\d{1,2}[af]?")


def check_options(target: Target) -> None:
    """Refuse options of an LLVM target, or of a target's LLVM host, that LLVM would ignore.

    Raises
    ------
    ArgumentError
        Unknown architecture, CPU, feature, optimization level or other value of an option; or a host that
        is a device.
    UnsupportedError
        Options of LLVM itself (``cl-opt``), whose effect on the meaning of code is not known.
    """
    _check_values(target)
    if target.kind.name != "llvm":
        if target.host is not None:
            _check_host(target, target.host)
            check_options(target.host)
        return
    triple = str(target.attrs.get("mtriple", None) or llvm_get_system_triple())
    _check_architecture(triple)
    _check_cpu(target, triple)
    for feature in target.attrs.get("mattr", None) or ():
        _check_feature(str(feature), triple)
    level = target.attrs.get("opt-level", None)
    if level is not None and not 0 <= int(level) <= _LARGEST_OPT_LEVEL:
        raise ArgumentError(
            f"opt-level {int(level)} is none of LLVM's",
            suggestion=f"0 to {_LARGEST_OPT_LEVEL}, or leave it out",
        )
    options = [str(option) for option in target.attrs.get("cl-opt", None) or ()]
    if options:
        raise UnsupportedError(
            f"options of LLVM itself ({', '.join(options)}) may change what code means and are not admitted",
            suggestion="leave out cl-opt",
        )


def _check_values(target: Target) -> None:
    for name in _SIZES:
        size = target.attrs.get(name, None)
        if size is not None and int(size) < 1:
            raise ArgumentError(
                f"{name} of target {target.kind.name} must be at least 1, not {int(size)}",
                suggestion=f"leave out {name}",
            )
    for name, words in _WORDS.items():
        word = target.attrs.get(name, None)
        if word is not None and str(word) not in words:
            raise ArgumentError(
                f"{name} {str(word)!r} is none of LLVM's",
                suggestion=f"one of {', '.join(map(repr, words))}, or leave it out",
            )
    arch = target.attrs.get("arch", None)
    if target.kind.name == "cuda" and arch is not None and not _CUDA_ARCHITECTURE.fullmatch(str(arch)):
        raise ArgumentError(
            f"arch {str(arch)!r} is no architecture of CUDA", suggestion="as 'sm_80', 'sm_90a'"
        )


def _check_host(target: Target, host: Target) -> None:
    if host.kind.name not in ("llvm", "c"):
        raise ArgumentError(
            f"the host of target {target.kind.name} is to be a CPU, not {host.kind.name}",
            suggestion=f'tvm.target.Target({{"kind": "{target.kind.name}"}}, host="llvm"), or leave it out',
        )


def _check_architecture(triple: str) -> None:
    name = triple.split("-", 1)[0]
    name = _SYNONYMS.get(name, name)
    known = [str(item) for item in llvm_get_targets()]
    # Versions of Arm, such as armv7a and thumbv8, are many.
    if name not in known and not name.startswith(("armv", "thumbv")):
        raise ArgumentError(
            f"mtriple {triple!r} has the unknown architecture {name!r}",
            suggestion=_similar(name, known, "one of " + ", ".join(known)),
        )


def _check_cpu(target: Target, triple: str) -> None:
    cpu = str(target.attrs.get("mcpu", None) or "")
    if cpu and not llvm_is_valid_cpu(cpu, triple):
        known = [str(item) for item in llvm_get_cpu_archlist(Target({"kind": "llvm", "mtriple": triple}))]
        raise ArgumentError(
            f"mcpu {cpu!r} is no CPU that LLVM knows for {triple}",
            suggestion=_similar(cpu, known, 'target "llvm", which is this machine'),
        )


def _check_feature(feature: str, triple: str) -> None:
    name = feature[1:]
    if not feature.startswith(("+", "-")):
        raise ArgumentError(
            f"mattr {feature!r} says neither that the feature is there nor that it is not",
            suggestion=f"'+{feature}' or '-{feature}'",
        )
    probe = Target({"kind": "llvm", "mtriple": triple, "mattr": [f"+{name}"]})
    if name not in {str(item) for item in llvm_get_cpu_features(probe)}:
        raise ArgumentError(
            f"mattr {feature!r} is no feature that LLVM knows for {triple}",
            suggestion="leave it out, or use LLVM's name for it, such as '+avx2'",
        )


def _similar(name: str, known: list[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def check_arithmetic(program: Program, target: Target) -> None:
    """Refuse a target whose floating-point options change what a program means.

    Raises
    ------
    IllegalError
        They reorder a fold of the program that has an order.
    UnsupportedError
        They are not admitted by the language, or the program forbids contraction.
    """
    if target.kind.name != "llvm":
        if target.host is not None:
            check_arithmetic(program, target.host)
        return
    given = [name for name in _FAST_MATH if target.attrs.get(name, None)]
    reordering = [name for name in given if name in _REORDERING]
    if reordering:
        for fold in ordered_folds(program):
            raise IllegalError(
                f"target option {reordering[0]!r} reorders {fold.what}, whose policy {fold.policy!r} fixes "
                "the order",
                span=fold.span,
                obligation="order of floating-point folds",
                suggestion="give the fold policy='unordered_tree', which admits any order, and leave out the "
                "option",
            )
    if given:
        raise UnsupportedError(
            f"target option {given[0]!r}: fast-math is not permitted by the language",
            suggestion="leave it out; policy='unordered_tree' lets a reduction be reordered, and "
            "multiplications fuse with additions unless fma=False",
        )
    if target.attrs.get(_CONTRACTION, None) and not program.fma:
        raise UnsupportedError(
            f"target option {_CONTRACTION!r} contracts a * b + c, which fma=False of {program.name} forbids",
            suggestion="leave the option out",
        )
