"""Every kernel of the library on every target and element type, against its float64 oracle."""

import shutil
import subprocess

import pytest

import tvm_tile as tt
from tvm_tile.contrib import kernels

from .case import check
from .cases import CASES

RUN = ("interpreter", "llvm", "opencl")
TEXT = {"cuda": "__global__", "metal": "kernel void"}


def each(*targets):
    """All cases on targets; of devices, one element type a case is quick and the others are for the sweep."""
    return pytest.mark.parametrize(
        ("target", "case", "dtype"),
        [
            pytest.param(
                target,
                case,
                dtype,
                id=f"{target}-{case}-{dtype}",
                marks=[]
                if target in ("interpreter", "llvm") or dtype == case.typical_dtype
                else pytest.mark.slow,
            )
            for target in targets
            for case in CASES
            for dtype in case.dtypes
        ],
    )


def program_of(case, dtype):
    inputs, outputs = case.arguments(dtype)
    return case.kernel.trace(*inputs, *outputs, **case.constants), inputs, outputs


def test_every_kernel_has_a_case():
    assert {case.kernel.__name__ for case in CASES} == set(kernels.__all__)


@each(*RUN)
def test_a_kernel_gives_what_its_oracle_gives(target, case, dtype):
    program, inputs, outputs = program_of(case, dtype)
    if target == "interpreter":
        tt.interpret(program, *inputs, *outputs, debug=True)
    elif case.is_refused(target, dtype):
        with pytest.raises(tt.UnsupportedError):
            tt.build(program, target)
        return
    else:
        tt.build(program, target)(*inputs, *outputs)
    originals, _ = case.arguments(dtype)
    for output, right in zip(outputs, case.expected(originals), strict=True):
        check(output, right, case.tolerance)


@each(*TEXT)
def test_a_kernel_has_code_for_a_device_that_is_not_here(target, case, dtype):
    program, _, _ = program_of(case, dtype)
    if case.is_refused(target, dtype):
        with pytest.raises(tt.UnsupportedError):
            tt.build(program, target)
        return
    assert TEXT[target] in tt.build(program, target).source()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nvcc_compiles_the_cuda_code(case, tmp_path):
    program, _, _ = program_of(case, case.typical_dtype)
    source, result = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(tt.build(program, "cuda").source())
    command = ["nvcc", "-arch=sm_80", "-ptx", "-o", str(result), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
