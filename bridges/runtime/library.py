"""The file that holds a built program: a shared library with a description after its last byte.

The loader of the operating system ignores what follows the library proper, so one file is both. The
description is JSON (program text, target, alignments, names of the functions, versions), then comes LLVM IR,
both compressed. A footer of fixed size closes the file, with lengths, the version of the format and a
checksum. A file is looked at as bytes and loaded only if all of it is as it was written: the loader itself
would crash the process on a damaged library.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_tile.errors import ArgumentError, UnsupportedError

__all__ = ["FORMAT_VERSION", "Description", "pack", "unpack", "write_atomically"]

#: Raised by every change of what a file holds or of how its functions are called.
FORMAT_VERSION = 1

_MAGIC = b"\x00tvm_tile library"
#: Checksum of all before it, bytes of library, of description and of IR, version; then the magic.
_FOOTER = struct.Struct("<32sQQQI")
_FOOTER_SIZE = _FOOTER.size + len(_MAGIC)


@dataclass(frozen=True)
class Description:
    """What a file says of the code in it.

    Attributes
    ----------
    program
        Text of the program, as ``tt.parse`` reads it.
    target
        The TVM target, as JSON.
    alignments
        Bytes to which the code needs each tensor parameter to be aligned, by position.
    function
        Symbol of the function for arguments that share no memory.
    aliasing
        Symbol of the function that leaves aliasing to its caller, if there is one.
    system, architecture
        Of the machine that the code is for, as :mod:`platform` names them.
    features
        CPU features that the code may use, by LLVM's names.
    tvm
        Version of TVM whose run time the code calls.
    ir
        LLVM IR of the code, compressed with zlib: it is long, and rarely looked at.
    """

    program: str
    target: str
    alignments: tuple[int, ...]
    function: str
    aliasing: str | None
    system: str
    architecture: str
    features: tuple[str, ...]
    tvm: str
    ir: bytes


def pack(library: bytes, description: Description) -> bytes:
    """The bytes of a file."""
    fields = asdict(description)
    ir: bytes = fields.pop("ir")
    text = zlib.compress(json.dumps(fields).encode(), 1)
    body = library + text + ir
    checksum = hashlib.sha256(body).digest()
    return body + _FOOTER.pack(checksum, len(library), len(text), len(ir), FORMAT_VERSION) + _MAGIC


def unpack(data: bytes, name: str) -> tuple[bytes, Description]:
    """Library and description in the bytes of a file.

    Parameters
    ----------
    name
        Of the file, for messages.

    Raises
    ------
    ArgumentError
        The file is none of ours, or not as it was written.
    UnsupportedError
        It has another format version.
    """
    if len(data) < _FOOTER_SIZE or not data.endswith(_MAGIC):
        raise ArgumentError(
            f"{name} is not a library saved by tvm_tile, or its end is missing",
            suggestion="save it again: tt.build(program, target).save(path)",
        )
    checksum, library_size, text_size, ir_size, version = _FOOTER.unpack_from(data, len(data) - _FOOTER_SIZE)
    if version != FORMAT_VERSION:
        age = "a newer" if version > FORMAT_VERSION else "an older"
        raise UnsupportedError(
            f"{name} was saved by {age} tvm_tile: it has format {version}, this version reads "
            f"{FORMAT_VERSION}",
            suggestion="build and save the program with the version that loads it",
        )
    body = memoryview(data)[: len(data) - _FOOTER_SIZE]
    if library_size + text_size + ir_size != len(body) or hashlib.sha256(body).digest() != checksum:
        raise ArgumentError(
            f"{name} is damaged: its bytes are not those that were saved",
            suggestion="save it again: tt.build(program, target).save(path)",
        )
    text, ir = body[library_size : library_size + text_size], body[library_size + text_size :]
    fields: dict[str, Any] = json.loads(zlib.decompress(text))
    fields |= {key: tuple(fields[key]) for key in ("alignments", "features")}
    return bytes(body[:library_size]), Description(**fields, ir=bytes(ir))


def write_atomically(path: Path, data: bytes) -> None:
    """Put a file in place so that readers see the old bytes or the new ones, also if this process ends.

    A process that runs code from the old file keeps it.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written, or has no room.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
