"""Saving a built program and loading it where its kernel was never imported; and files that are not right."""

import dataclasses
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.bridges.runtime import library as format_module
from tvm_tile.bridges.runtime.executable import load
from tvm_tile.bridges.runtime.library import pack, unpack
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError, UnsupportedError
from tvm_tile.ir.dtypes import numpy_dtype


def run(code, **options):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def saved(copy_program, tmp_path):
    path = tmp_path / "copy.so"
    build(copy_program((5, 3), a_strides=(6, 2))).save(path)
    return path


def test_a_saved_program_runs_where_its_kernel_is_not_known(saved):
    out = run(f"""
        import numpy as np
        from tvm_tile.bridges.runtime.executable import load
        from tvm_tile.errors import ArgumentError
        exe = load({str(saved)!r})
        a = np.arange(60, dtype="float32").reshape(10, 6)[:5, ::2]
        b = np.zeros((5, 3), "float32")
        exe(a, b)
        print((a == b).all(), exe)
        for bad in ((a.copy(), b), (a, b.astype("f8")), (a, np.zeros((5, 4), "f4")), (a,), (a, None)):
            try:
                exe(*bad)
            except ArgumentError as error:
                print(error.message)
    """)
    lines = out.splitlines()
    assert lines[0] == "True <Executable copy(A float32[5, 3], B float32[5, 3]) for llvm>"
    assert lines[1] == "parameter A expects strides (6, 2) in elements, got (3, 1)"
    assert lines[2] == "parameter B expects dtype float32, got float64"
    assert lines[3] == "parameter B expects shape (5, 3), got (5, 4)"
    assert lines[4] == "copy takes 2 arguments (A, B), got 1"
    assert lines[5].startswith("parameter B expects a float32 array of shape (5, 3), got None")


def test_the_loaded_executable_is_the_saved_one(copy_program, tmp_path):
    exe = build(copy_program((4, 3)))
    exe.save(str(tmp_path / "a.so"))
    again = load(str(tmp_path / "a.so"))
    assert again.program == exe.program
    assert str(again.target) == str(exe.target)
    assert "define" in again.source()
    assert ".text" in again.source("asm")
    assert str(again.mod) == str(exe.mod)
    again.save(tmp_path / "b.so")
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    load(tmp_path / "b.so")(a, b)
    np.testing.assert_array_equal(a, b)


def test_both_variants_work_after_loading(accumulate_program, copy_program, tmp_path):
    """Identical views run the variant that leaves aliasing to its caller; others are refused as before."""
    build(accumulate_program(7)).save(tmp_path / "accumulate.so")
    exe = load(tmp_path / "accumulate.so")
    memory = np.arange(20, dtype="float32")
    a, c = memory[:7].copy(), memory[8:15].copy()
    exe(a, c, c)
    np.testing.assert_array_equal(c, 2 * memory[8:15] + memory[:7])
    with pytest.raises(ArgumentError, match="share elements"):
        exe(memory[:7], memory[7:14], memory[8:15])
    build(copy_program((4, 3), reverse=True)).save(tmp_path / "reverse.so")
    with pytest.raises(ArgumentError, match="identical views"):
        load(tmp_path / "reverse.so")(*[np.zeros((4, 3), "float32")] * 2)


def test_scalars_and_foreign_dtypes_survive(scale_program, tmp_path):
    for dtype in ("bfloat16", "int8"):
        build(scale_program(5, dtype)).save(tmp_path / f"{dtype}.so")
        exe = load(tmp_path / f"{dtype}.so")
        a, b = np.arange(5).astype(numpy_dtype(dtype)), np.zeros(5, numpy_dtype(dtype))
        exe(a, 3, b)
        np.testing.assert_array_equal(b, (np.arange(5) + 3).astype(numpy_dtype(dtype)))
    with pytest.raises(ArgumentError, match="holds -128 to 127, got 128"):
        exe(a, 128, b)


@pytest.mark.parametrize("name", ["copy", "copy.o", "copy.dll", "copy.so.1"])
def test_a_path_that_is_no_shared_library_is_refused(copy_program, tmp_path, name):
    with pytest.raises(ArgumentError, match=r"does not end in \.so") as caught:
        build(copy_program((4, 3))).save(tmp_path / name)
    assert ".so" in caught.value.suggestion
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [None, 3, b"copy.so", "a\0.so"])
def test_what_is_no_path_is_refused(copy_program, path):
    exe = build(copy_program((4, 3)))
    for call in (exe.save, load):
        with pytest.raises(ArgumentError, match="a path is text"):
            call(path)


def test_a_folder_that_is_not_there_and_a_folder_as_file(copy_program, tmp_path):
    exe = build(copy_program((4, 3)))
    with pytest.raises(ArgumentError, match="cannot be written: No such file"):
        exe.save(tmp_path / "nowhere" / "copy.so")
    (tmp_path / "folder.so").mkdir()
    with pytest.raises(ArgumentError, match="cannot be written: Is a directory"):
        exe.save(tmp_path / "folder.so")
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        load(tmp_path / "nothing.so")
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        load(tmp_path / "folder.so")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.so"]


def test_saving_over_a_library_that_runs_elsewhere_and_here(copy_program, scale_program, tmp_path):
    """Symptom: the loader gave the old code for a path it knew, or a process crashed in a changed mapping."""
    path = tmp_path / "one.so"
    build(copy_program((4, 3))).save(path)
    code = f"""
        import sys, numpy as np
        from tvm_tile.bridges.runtime.executable import load
        exe = load({str(path)!r})
        a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
        for line in sys.stdin:
            b[...] = 0
            exe(a, b)
            print(int(b.sum()), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "12\n"
        old = load(path)
        build(scale_program(3, "float32")).save(path)
        out, _ = other.communicate("\n\n", timeout=60)
    assert (out, other.returncode) == ("12\n12\n", 0)
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    old(a, b)
    np.testing.assert_array_equal(a, b)
    x, y = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    load(path)(x, 2.0, y)
    np.testing.assert_array_equal(y, x + 2)


def test_threads_that_save_to_one_path_leave_one_whole_file(copy_program, tmp_path):
    exe, path = build(copy_program((4, 3))), tmp_path / "one.so"
    workers = [threading.Thread(target=exe.save, args=(path,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [item.name for item in tmp_path.iterdir()] == ["one.so"]
    assert load(path).program == exe.program


def rewritten(data, **fields):
    """A file whose checksum is right and whose description says something else."""
    library, description = unpack(data, "file")
    return pack(library, dataclasses.replace(description, **fields))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-1], "not a library saved by tvm_tile, or its end is missing"),
        (lambda data: data[: len(data) // 2], "its end is missing"),
        (lambda data: data[1:], "is damaged"),
        (lambda data: data[:5000] + data[9000:], "is damaged"),
        (lambda data: data[:4000] + b"\xcc" + data[4001:], "is damaged"),
        (lambda data: data[:-100] + b"\0" + data[-99:], "is damaged"),
        (lambda data: bytes(len(data)), "not a library saved by tvm_tile"),
        (lambda data: data + b"more", "not a library saved by tvm_tile"),
        (lambda data: b"", "not a library saved by tvm_tile"),
        (lambda data: b"text", "not a library saved by tvm_tile"),
        (lambda data: b"x" * 5 + data[-80:], "is damaged"),
    ],
)
def test_a_spoiled_file_is_named_and_nothing_crashes(saved, spoil, message):
    saved.write_bytes(spoil(saved.read_bytes()))
    with pytest.raises(ArgumentError, match=message) as caught:
        load(saved)
    assert str(saved) in str(caught.value)
    assert "save" in caught.value.suggestion


def test_every_flipped_byte_is_seen(saved):
    data = saved.read_bytes()
    for position in range(0, len(data), 997):
        spoiled = bytearray(data)
        spoiled[position] ^= 0x40
        with pytest.raises((ArgumentError, UnsupportedError)):
            unpack(bytes(spoiled), "file")


def test_a_library_of_someone_else_is_not_loaded(tmp_path):
    import tvm_ffi

    source = min(Path(tvm_ffi.__file__).parent.rglob("*.so"))
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(source.read_bytes())
    with pytest.raises(ArgumentError, match="not a library saved by tvm_tile"):
        load(foreign)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"features": ["avx2", "sse9"]}, r"CPU features sse9, which this machine lacks"),
        ({"architecture": "vax"}, "on vax, and this is"),
        ({"system": "Plan9"}, "has code for Plan9"),
        ({"tvm": "0.9.0"}, r"saved with TVM 0\.9\.0, and this is TVM"),
    ],
)
def test_code_for_another_machine_or_tvm_is_not_loaded(saved, fields, message):
    saved.write_bytes(rewritten(saved.read_bytes(), **fields))
    with pytest.raises(UnsupportedError, match=message):
        load(saved)


@pytest.mark.parametrize(("version", "age"), [(format_module.FORMAT_VERSION + 1, "newer"), (0, "older")])
def test_another_format_version_says_which(saved, monkeypatch, version, age):
    library, description = unpack(saved.read_bytes(), "file")
    with monkeypatch.context() as patch:
        patch.setattr(format_module, "FORMAT_VERSION", version)
        saved.write_bytes(format_module.pack(library, description))
    with pytest.raises(UnsupportedError, match=f"{age} tvm_tile: it has format {version}"):
        load(saved)


def test_a_program_that_this_version_cannot_read_says_so(saved):
    saved.write_bytes(rewritten(saved.read_bytes(), program="kernel copy() { levitate }"))
    with pytest.raises(UnsupportedError, match="a program that this version does not read"):
        load(saved)


@pytest.mark.parametrize("name", ["x" * 300 + ".so", "\ud800.so"], ids=["long", "lone surrogate"])
def test_a_name_that_no_file_can_have_is_refused_both_ways(copy_program, tmp_path, name):
    exe = build(copy_program((4, 3)))
    for function in (exe.save, load):
        with pytest.raises(ArgumentError, match=r"cannot be (written|read): File name too long|characters"):
            function(tmp_path / name)


def test_a_part_of_memory_takes_options_and_a_file_takes_none(saved):
    assert tt.load(saved).program.name
    for given, options in (((3,), {}), ((), {"fill": 0})):
        with pytest.raises(ArgumentError, match=r"takes nothing beside the path[\s\S]*A.at\[idx\]"):
            tt.load(saved, *given, **options)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null"])
def test_what_is_no_file_is_not_read_to_its_end(place):
    with pytest.raises(ArgumentError, match="is no file"):
        load(place)


def test_without_room_for_temporary_files_building_goes_on(copy_program, tmp_path, monkeypatch):
    from tvm_tile.bridges.runtime import linking

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(linking.tempfile, "TemporaryDirectory", full)
    exe = build(copy_program((4, 3), name="without_room"))
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    exe(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(UnsupportedError, match=r"temporary files cannot be written.*No space") as caught:
        exe.save(tmp_path / "copy.so")
    assert "TMPDIR" in caught.value.suggestion


def test_a_missing_symbol_is_an_error_of_loading_and_no_crash(tmp_path):
    """Symptom: a lazily bound symbol ends the process at the first call."""
    import tvm
    from tvm import tirx

    from tvm_tile.bridges.runtime.linking import link, load_library, object_code

    A = tirx.decl_buffer((1,), "int32", "A")
    store = tirx.BufferStore(A, tirx.call_extern("int32", "no_such_function_anywhere"), [0])
    function = tirx.PrimFunc([A], store, attrs=tvm.ir.make_node("ir.DictAttrs", global_symbol="f"))
    generated = tvm.compile(function, {"kind": "llvm"}).mod
    with pytest.raises(UnsupportedError, match="no_such_function_anywhere"):
        load_library(link(object_code(generated)), "the file")


def test_without_a_linker_saving_says_so_and_building_goes_on(copy_program, tmp_path, monkeypatch):
    from tvm_tile.bridges.runtime import linking

    monkeypatch.setattr(linking, "_linker", lambda: None)
    monkeypatch.setenv("TVM_TILE_CACHE_DIR", str(tmp_path / "cache"))
    exe = build(copy_program((4, 3), name="unlinked"))
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    exe(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(UnsupportedError, match="needs a linker") as caught:
        exe.save(tmp_path / "copy.so")
    assert "install" in caught.value.suggestion
    assert not (tmp_path / "cache").exists()
