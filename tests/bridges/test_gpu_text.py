"""Generated text for devices: what is launched, what the text says, and that compilers take it."""

import os
import shutil

import numpy as np
import pytest
import tvm

import tvm_tile as tt
from tvm_tile.bridges.tirx.device import Launch, Temporary
from tvm_tile.bridges.tirx.lower.device.workspace import WORKSPACE_BYTES
from tvm_tile.bridges.tirx.target import resolve_target
from tvm_tile.contrib import kernels

DEVICES = ("cuda", "metal", "opencl")
MARKS = {"cuda": "__global__", "metal": "kernel void", "opencl": "__kernel"}

devices = pytest.mark.parametrize("target", DEVICES)


def cuda(arch):
    return tvm.target.Target({"kind": "cuda", "arch": arch}, host=resolve_target("llvm"))


@tt.kernel
def scaled(X, Y, *, factor=1.1, block=8):
    for i in tt.parallel(tt.cdiv(X.shape[0], block)):
        Y[tt.ds(i * block, block)] = X[tt.ds(i * block, block)] * factor


@tt.kernel
def centred(X, Y):
    m = tt.mean(X[...])
    for i in tt.parallel(X.shape[0]):
        Y[i] = X[i] - m


@tt.kernel
def nothing(X):
    for _ in tt.parallel(0):
        X[0] = 1


def vector(n=100, dtype="float32"):
    return tt.spec((n,), dtype), tt.spec((n,), dtype)


@devices
def test_text_has_the_marks_of_its_language(target):
    exe = tt.build(scaled.trace(*vector()), target)
    assert MARKS[target] in exe.source()
    assert exe.source(target) == exe.source()
    assert all(launch.kernel in exe.source() for launch in exe.launches)


@devices
@pytest.mark.parametrize("kind", ["ll", "ptxx", ""])
def test_an_unknown_kind_of_source_is_refused(target, kind):
    exe = tt.build(scaled.trace(*vector()), target)
    with pytest.raises(tt.ArgumentError, match="kind"):
        exe.source(kind)


@devices
def test_kinds_of_other_targets_are_refused(target):
    exe = tt.build(scaled.trace(*vector()), target)
    for other in {"cuda", "metal", "opencl", "ptx", "cubin"} - {target}:
        if target == "cuda" and other in ("ptx", "cubin"):
            continue
        with pytest.raises(tt.ArgumentError, match="kind"):
            exe.source(other)


@devices
@pytest.mark.parametrize("pipeline", ["tirx", "default", "tvm_tile"])
def test_plain_tvm_compiles_what_lower_gives(target, pipeline):
    described = resolve_target(target)
    module = tt.lower(centred.trace(*vector()), target)
    options = {} if pipeline == "default" else {"tir_pipeline": pipeline}
    library = tvm.compile(module, target=described, **options)
    assert MARKS[target] in library.mod.imports[0].inspect_source()


@devices
def test_one_instance_is_one_thread(target):
    (launch,) = tt.build(scaled.trace(*vector(100)), target).launches
    assert launch == Launch(launch.kernel, (13, 1, 1), (1, 1, 1), ("X", "Y"))


@devices
def test_many_instances_share_blocks(target):
    (launch,) = tt.build(scaled.trace(*vector(100_000), block=1), target).launches
    assert launch.block == (128, 1, 1)
    assert launch.grid == (tt.cdiv(100_000, 128), 1, 1)


@devices
def test_statements_between_regions_are_a_launch_whose_values_are_kept(target):
    exe = tt.build(centred.trace(*vector()), target)
    first, second = exe.launches
    assert first.grid == first.block == (1, 1, 1)
    (temporary,) = exe.temporaries
    assert isinstance(temporary, Temporary)
    assert temporary.size == 1
    assert temporary.nbytes == 4
    assert temporary.name in first.arguments
    assert temporary.name in second.arguments


@devices
def test_a_program_without_instances_launches_nothing(target):
    exe = tt.build(nothing.trace(tt.spec((3,), "float32")), target)
    assert exe.launches == ()
    assert exe.temporaries == ()


@devices
def test_large_tiles_live_in_a_workspace_of_bounded_size(target):
    arrays = [tt.spec((1 << 14, 1 << 14), "float32") for _ in range(3)]
    exe = tt.build(kernels.gemm.trace(*arrays), target)
    (launch,) = exe.launches
    (workspace,) = exe.temporaries
    threads = launch.grid[0] * launch.block[0]
    instances = (1 << 8) ** 2
    assert workspace.name in launch.arguments
    assert workspace.nbytes == threads * 3 * 64 * 64 * 4 <= WORKSPACE_BYTES
    assert threads < instances


@devices
def test_small_tiles_have_no_workspace(target):
    arrays = [tt.spec((64, 64), "float32") for _ in range(3)]
    assert tt.build(kernels.gemm.trace(*arrays, bm=8, bn=8, bk=8), target).temporaries == ()


@devices
def test_literals_keep_their_last_bit(target):
    """TVM prints seven digits for OpenCL and Metal; 1.1 in float32 needs nine."""
    factor = float(np.nextafter(np.float32(1.1), np.float32(2)))
    text = tt.build(scaled.trace(*vector(), factor=factor), target).source()
    expected = {"cuda": "0x1.19999c", "metal": "as_type<float>", "opencl": "as_float"}[target]
    assert expected in text
    assert "1.100000e+00f" not in text


@devices
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"])
def test_narrow_elements_are_words(target, dtype):
    @tt.kernel
    def copied(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i]

    text = tt.build(copied.trace(*vector(8, dtype)), target).source()
    signature = text[text.rindex("copied_kernel") :].split(")")[0]
    assert ("ushort" if dtype in ("float16", "bfloat16") else "uchar") in signature
    assert "half" not in signature


def test_products_without_contraction_are_separate():
    @tt.kernel(fma=False)
    def combined(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i] * X[i] + Y[i]

    program = combined.trace(*vector())
    assert "__fmul_rn(" in tt.build(program, "cuda").source()
    assert "as_float(as_int(" in tt.build(program, "opencl").source()
    assert "fma(" in tt.build(program, "metal").source()


@pytest.mark.parametrize("target", ["cuda", "metal"])
def test_a_call_without_the_device_is_refused(target):
    x, y = np.zeros(100, "f4"), np.zeros(100, "f4")
    exe = tt.build(scaled.trace(x, y), target)
    with pytest.raises(tt.UnsupportedError, match=target):
        exe(x, y)


@devices
def test_device_code_is_not_saved(target, tmp_path):
    exe = tt.build(scaled.trace(*vector()), target)
    with pytest.raises(tt.UnsupportedError, match="saved"):
        exe.save(tmp_path / "x.so")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_accepts_the_text(arch):
    program = kernels.softmax.trace(tt.spec((7, 100), "float16"), tt.spec((7, 100), "float16"))
    exe = tt.build(program, cuda(arch))
    assert shutil.which("nvcc"), "these tests need nvcc"
    ptx, cubin = exe.source("ptx"), exe.source("cubin")
    assert f".target {arch}" in ptx
    assert ".visible .entry softmax_kernel(" in ptx
    assert isinstance(cubin, bytes)
    assert cubin.startswith(b"\x7fELF")


def test_without_nvcc_ptx_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    exe = tt.build(scaled.trace(*vector()), "cuda")
    assert "__global__" in exe.source()
    with pytest.raises(tt.UnsupportedError, match="nvcc"):
        exe.source("ptx")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/no/such/interpreter\n", "cannot be run: No such file or directory"),
        (
            "#!/bin/sh\nprintf 'odd \\377 bytes' >&2\nexit 3\n",
            "does not compile the kernels for sm_.*odd . bytes",
        ),
        ("#!/bin/sh\nexit 0\n", "ended without a result"),
    ],
)
def test_another_program_of_that_name_is_told_from_nvcc(monkeypatch, tmp_path, script, message):
    (tmp_path / "nvcc").write_text(script)
    (tmp_path / "nvcc").chmod(0o755)
    exe = tt.build(scaled.trace(*vector()), "cuda")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(tt.UnsupportedError, match=message):
        exe.source("ptx")


def test_what_nvcc_refuses_is_shown():
    exe = tt.build(scaled.trace(*vector()), cuda("sm_999"))
    with pytest.raises(tt.UnsupportedError, match="sm_999"):
        exe.source("ptx")


@devices
def test_names_beyond_ascii_are_the_programs_and_not_the_texts(target):
    """Symptom: nvcc refuses a kernel with such a name."""

    @tt.kernel
    def größe(Ä, ß, d: tt.Scalar["float32"]):  # noqa: F821
        for ä in tt.parallel(Ä.shape[0]):
            ß[ä] = Ä[ä] * d

    exe = tt.build(größe.trace(*vector(), 2.0), target)
    assert exe.program.name == "größe"
    assert [memory.name for memory in exe.program.tensors] == ["Ä", "ß"]
    assert exe.source().isascii()
    assert exe.launches[0].kernel == "gr__e_kernel"
    assert exe.launches[0].arguments[:2] == ("Ä", "ß")
    if target == "opencl":
        x, y = np.arange(100, dtype="f4"), np.zeros(100, "f4")
        exe(x, y, 2.0)
        np.testing.assert_array_equal(y, x * 2)
