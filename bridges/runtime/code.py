"""Generated code of one program for this CPU: made by LLVM, or taken from a library that was saved."""

from __future__ import annotations

import logging
import platform
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from tvm_tile.bridges.runtime import disk_cache
from tvm_tile.bridges.runtime.features import required_features
from tvm_tile.bridges.runtime.library import Description
from tvm_tile.bridges.runtime.linking import link, load_library, object_code
from tvm_tile.bridges.tirx.pipeline import PIPELINE
from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.regions import Program

__all__ = ["Code", "describe", "generate", "generate_or_look_up", "in_memory", "loaded"]

Alignments = tuple[int, ...]

#: Makes the TIRx module, the name of its function, and the alignments of its tensors.
Lower = Callable[[], tuple[tvm.IRModule, str, Alignments]]

_log = logging.getLogger("tvm_tile.runtime.code")


@dataclass(frozen=True)
class Code:
    """Code in memory.

    Attributes
    ----------
    library
        ``tvm.runtime.Module`` that holds it.
    function
        Takes TVM tensors and numbers.
    ir
        LLVM IR, compressed with zlib, where the library itself does not know it any more.
    """

    library: Any
    function: Any
    ir: bytes | None = None

    def source(self, kind: str) -> str:
        """LLVM IR (``"ll"``) or assembly (``"asm"``)."""
        if self.ir is None:
            return str(self.library.inspect_source(kind))
        text = zlib.decompress(self.ir).decode()
        if kind == "ll":
            return text
        with tempfile.TemporaryDirectory(prefix="tvm_tile_") as folder:
            path = Path(folder, "code.ll")
            path.write_text(text)
            return str(tvm.runtime.load_module(str(path)).inspect_source(kind))


def generate(module: tvm.IRModule, target: Target) -> Any:
    """The LLVM module of a TIRx module, not yet in executable memory."""
    return tvm.compile(module, target=target, tir_pipeline=PIPELINE).mod


def describe(
    program: Program,
    target: Target,
    alignments: tuple[int, ...],
    generated: Any,
    function: str,
    aliasing: str | None = None,
) -> Description:
    """What is to be written beside generated code for someone who has only the file."""
    return Description(
        program=str(program),
        target=str(target),
        alignments=alignments,
        function=function,
        aliasing=aliasing,
        system=platform.system(),
        architecture=platform.machine(),
        features=required_features(target),
        tvm=str(tvm.__version__),
        ir=zlib.compress(str(generated.inspect_source("ll")).encode(), 1),
    )


def loaded(library: bytes, description: Description, name: str) -> tuple[Code, Code | None]:
    """The functions of a saved library, in memory: the usual one and the one for arguments that alias."""
    module = load_library(library, name)
    code = Code(module, module.get_function(description.function), description.ir)
    if description.aliasing is None:
        return code, None
    return code, Code(module, module.get_function(description.aliasing), description.ir)


def generate_or_look_up(
    program: Program, target: Target, variant: str, lower: Lower
) -> tuple[Code, Alignments]:
    """Code and alignments of a program, from the cache on disk where they are there.

    Parameters
    ----------
    variant
        Part of the key: which function of the program.
    """
    if disk_cache.limit() == 0:
        module, name, alignments = lower()
        return in_memory(generate(module, target), name), alignments
    key = disk_cache.entry_key(program, str(target), variant)
    entry = disk_cache.look_up(key)
    if entry is not None:
        library, description = entry
        try:
            return loaded(library, description, f"cache entry {key}")[0], description.alignments
        except UnsupportedError as error:
            _log.info("%s; generating the code anew", error.message)
    module, name, alignments = lower()
    generated = generate(module, target)
    try:
        library = link(object_code(generated))
        description = describe(program, target, alignments, generated, name)
        code, _ = loaded(library, description, program.name)
    except UnsupportedError as error:
        # Without a linker, or a folder that code may run from, LLVM's own loader does.
        _log.info("code is not kept on disk: %s", error.message)
        return in_memory(generated, name), alignments
    disk_cache.store(key, library, description)
    return code, alignments


def in_memory(generated: Any, name: str) -> Code:
    """Code in the memory that LLVM's own loader gives it."""
    return Code(generated, generated.get_function(name))
