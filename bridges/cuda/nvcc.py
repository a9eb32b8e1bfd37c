"""PTX and machine code from CUDA text, by ``nvcc``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tvm_tile.errors import UnsupportedError

__all__ = ["compile_text"]


def compile_text(text: str, kind: str, architecture: str) -> str | bytes:
    """Compile CUDA text.

    Parameters
    ----------
    text
        Of one translation unit.
    kind
        ``"ptx"`` gives text, ``"cubin"`` bytes.
    architecture
        As ``"sm_90"``.

    Raises
    ------
    UnsupportedError
        There is no ``nvcc``, or it does not work, or it refuses the text.
    """
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise UnsupportedError(
            f"{kind} is made by nvcc, which is not on the path", suggestion="install the CUDA toolkit"
        )
    with tempfile.TemporaryDirectory(prefix="tvm_tile_") as folder:
        source, result = Path(folder, "kernels.cu"), Path(folder, f"kernels.{kind}")
        source.write_text(text)
        command = [compiler, f"--{kind}", f"-arch={architecture}", "-O3", "-o", str(result), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise UnsupportedError(
                f"{compiler} cannot be run: {error.strerror}", suggestion="install the CUDA toolkit"
            ) from error
        if done.returncode:
            raise UnsupportedError(
                f"nvcc does not compile the kernels for {architecture}: {done.stderr.strip()}",
                suggestion="another architecture: tt.build(program, {'kind': 'cuda', 'arch': 'sm_80'})",
            )
        if not result.is_file():
            raise UnsupportedError(
                f"{compiler} ended without a result: it is not NVIDIA's compiler",
                suggestion="put the nvcc of the CUDA toolkit first on the path",
            )
        return result.read_text() if kind == "ptx" else result.read_bytes()
