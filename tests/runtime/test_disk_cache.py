"""Generated code kept on disk: what is one entry and what is two, damage, limits, many processes."""

import ast
import logging
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from tvm_tile.bridges.runtime import code as code_module
from tvm_tile.bridges.runtime import disk_cache
from tvm_tile.bridges.runtime.jit import cache_clear
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Load, ReduceTile, Slice, Store, View
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.values import Memory, TileType, Value


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TVM_TILE_CACHE_SIZE", raising=False)
    cache_clear()
    disk_cache._reported().clear()
    return tmp_path / "cache"


@pytest.fixture
def generated(monkeypatch):
    """Names of the programs for which code was generated."""
    names = []
    original = code_module.generate

    def counted(module, target):
        names.append(next(iter(module.get_global_vars())).name_hint)
        return original(module, target)

    monkeypatch.setattr(code_module, "generate", counted)
    return names


def built(program, **options):
    """As a new process would: with nothing kept in memory."""
    cache_clear()
    return build(program, **options)


def row_sum(policy="unordered_tree", fma=True, written="B"):
    """Sum of the rows of A into B, or into C."""
    A, B, C = Memory("A", (4, 30), "float32"), Memory("B", (4,), "float32"), Memory("C", (4,), "float32")
    x, y = Value(0, TileType((4, 30), "float32")), Value(1, TileType((4,), "float32"))
    load = Load(x, View(A, (Slice(IndexConst(0), 4), Slice(IndexConst(0), 30))))
    out = {"B": B, "C": C}[written]
    store = Store(View(out, (Slice(IndexConst(0), 4),)), y)
    return Program(
        "rows", (A, B, C), Block((load, ReduceTile(y, x, (1,), "add", False, policy), store)), fma=fma
    )


def test_a_second_process_generates_nothing(copy_program, generated, place):
    for _ in range(3):
        exe = built(copy_program((4, 3)))
        a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
        exe(a, b)
        np.testing.assert_array_equal(a, b)
        assert "define" in exe.source()
    assert generated == ["copy"]
    assert len(list(place.iterdir())) == 1


def test_the_variant_for_aliasing_arguments_is_kept_too(accumulate_program, generated):
    for _ in range(2):
        exe = built(accumulate_program(5))
        c = np.ones(5, "float32")
        exe(np.ones(5, "float32"), c, c)
        np.testing.assert_array_equal(c, np.full(5, 3, "float32"))
    assert generated == ["accumulate", "accumulate"]


def test_all_that_lowering_imports_is_part_of_the_key():
    folder = Path(disk_cache.__file__).parents[1] / "tirx"
    imported = {
        node.module
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tvm_tile.")
    }
    hashed = ("tvm_tile.bridges.tirx", *(f"tvm_tile.{name}" for name in disk_cache._SOURCES))
    assert {name for name in imported if not name.startswith(hashed)} == {"tvm_tile.errors"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (row_sum("unordered_tree"), row_sum("fold_left")),
        (row_sum("fold_left"), row_sum("ordered_tree")),
        (row_sum(written="B"), row_sum(written="C")),
        (row_sum(fma=True), row_sum(fma=False)),
    ],
    ids=["policy", "ordered policy", "output", "fma"],
)
def test_programs_that_differ_in_one_thing_are_two_entries(one, other, generated, place):
    for program in (one, other, one, other):
        a = np.random.default_rng(0).random((4, 30)).astype("float32")
        b, c = np.zeros(4, "float32"), np.zeros(4, "float32")
        built(program)(a, b, c)
        written = {memory.name for memory in program.writes}
        for name, array in (("B", b), ("C", c)):
            expected = a.sum(1, dtype="float64") if name in written else np.zeros(4)
            np.testing.assert_allclose(array, expected, rtol=1e-6)
    assert len(generated) == 2
    assert len(list(place.iterdir())) == 2


def test_names_and_targets_are_part_of_the_key(copy_program, generated):
    for program, target in (
        (copy_program((4, 3)), "llvm"),
        (copy_program((4, 3), name="other"), "llvm"),
        (copy_program((4, 3), names="XY"), "llvm"),
        (copy_program((4, 3)), {"kind": "llvm"}),
        (copy_program((4, 3)), {"kind": "llvm", "opt-level": 1}),
    ):
        for _ in range(2):
            built(program, target=target)
    assert len(generated) == 5


def test_versions_and_our_own_source_are_part_of_the_key(copy_program, generated, monkeypatch):
    built(copy_program((4, 3)))
    for number, _ in enumerate(disk_cache._surroundings()):
        surroundings = list(disk_cache._surroundings())
        surroundings[number] += " of another day"
        with monkeypatch.context() as patch:
            patch.setattr(disk_cache, "_surroundings", lambda parts=tuple(surroundings): parts)
            built(copy_program((4, 3)))
    assert len(generated) == 1 + len(disk_cache._surroundings())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-200],
        lambda data: data[:3000] + b"!" + data[3001:],
        lambda data: bytes(len(data)),
    ],
    ids=["empty", "cut", "changed", "zeros"],
)
def test_a_damaged_entry_is_built_anew(copy_program, generated, place, caplog, spoil):
    built(copy_program((4, 3)))
    (entry,) = place.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(spoil(whole))
    with caplog.at_level(logging.WARNING):
        exe = built(copy_program((4, 3)))
    assert "building anew" in caplog.text
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    exe(a, b)
    np.testing.assert_array_equal(a, b)
    assert generated == ["copy", "copy"]
    disk_cache.unpack(entry.read_bytes(), "entry")


def test_the_least_recently_used_goes_first(copy_program, generated, place, monkeypatch):
    programs = [copy_program((n, 3), name=f"copy{n}") for n in (4, 5, 6)]
    for program in programs[:2]:
        built(program)
    now = time.time()
    sizes = []
    for number, entry in enumerate(sorted(place.iterdir(), key=lambda path: path.stat().st_mtime)):
        os.utime(entry, (now - 100 + number, now - 100 + number))
        sizes.append(entry.stat().st_size)
    built(programs[0])
    monkeypatch.setenv("TVM_TILE_CACHE_SIZE", str(sum(sizes) + 1000))
    built(programs[2])
    info = disk_cache.folder_info()
    assert info.entries == 2
    assert info.size <= info.limit == sum(sizes) + 1000
    generated.clear()
    built(programs[0])
    built(programs[2])
    assert generated == []
    built(programs[1])
    assert generated == ["copy5"]


def test_a_size_of_zero_is_no_cache(copy_program, generated, place, monkeypatch):
    monkeypatch.setenv("TVM_TILE_CACHE_SIZE", "0")
    for _ in range(2):
        built(copy_program((4, 3)))
    assert generated == ["copy", "copy"]
    assert not place.exists()
    monkeypatch.setenv("TVM_TILE_CACHE_SIZE", "10")
    built(copy_program((4, 3)))
    assert not place.exists()


@pytest.mark.parametrize("text", ["-1", "1.5", "lots", "5 MB", "9" * 5000])
def test_a_bad_size_is_named(copy_program, monkeypatch, text):
    monkeypatch.setenv("TVM_TILE_CACHE_SIZE", text)
    with pytest.raises(ArgumentError, match=r"TVM_TILE_CACHE_SIZE must be a number of bytes"):
        built(copy_program((4, 3)))


def test_a_folder_that_cannot_be_made_is_reported_once_and_done_without(
    copy_program, place, caplog, monkeypatch, generated
):
    place.write_text("a file is in the way")
    with caplog.at_level(logging.WARNING):
        for n in (4, 5):
            exe = built(copy_program((n, 3)))
            a, b = np.ones((n, 3), "float32"), np.zeros((n, 3), "float32")
            exe(a, b)
            np.testing.assert_array_equal(a, b)
    assert caplog.text.count("generated code is not kept") == 1
    assert str(place) in caplog.text
    assert "TVM_TILE_CACHE_DIR" in caplog.text


def test_a_disk_without_room_is_reported_and_leaves_nothing(copy_program, place, caplog, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache, "write_atomically", full)
    with caplog.at_level(logging.WARNING):
        built(copy_program((4, 3)))
    assert "No space left on device" in caplog.text
    assert list(place.iterdir()) == []


def test_what_other_programs_left_is_not_touched_but_our_own_remains_go(copy_program, place):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    stale, fresh = place / ".a.tile.1.ff.tmp", place / ".b.tile.1.ff.tmp"
    for path in (stale, fresh):
        path.write_bytes(b"x")
    os.utime(stale, (1, 1))
    built(copy_program((4, 3)))
    names = {path.name for path in place.iterdir() if not path.name.endswith(".tile")}
    assert names == {"notes.txt", fresh.name}
    assert disk_cache.clear().entries == 1
    assert disk_cache.folder_info().entries == 0
    assert (place / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that share one import are made by fork")
def test_processes_that_build_the_same_and_others_at_once(place):
    """One of them is killed while it builds and writes; all others get their results."""
    code = """
        import os, signal, sys, time, traceback
        import numpy as np, tvm
        import tvm_tile as tt
        import tvm_tile.bridges.runtime.artifact

        def make(n):
            @tt.kernel
            def scaled(X, Y):
                for i in tt.parallel(X.shape[0]):
                    Y[tt.ds(i, 1)] = X[tt.ds(i, 1)] * float(n)
            return scaled

        def build(numbers):
            for n in numbers:
                x, y = np.arange(7, dtype="float32"), np.zeros(7, "float32")
                make(n)(x, y)
                assert (y == x * n).all(), (n, y)

        def child(numbers):
            process = os.fork()
            if process == 0:
                try:
                    build(numbers)
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            return process

        doomed = child(range(100, 100000))
        workers = [child((1, own, 2, 1, own, 2)) for own in (10, 11, 12, 13)]
        time.sleep(0.5)
        os.kill(doomed, signal.SIGKILL)
        assert os.waitpid(doomed, 0)[1] == signal.SIGKILL
        sys.exit(any(os.waitpid(worker, 0)[1] for worker in workers))
    """
    # A file, as kernels need their source.
    script = place.parent / "script.py"
    script.write_text(textwrap.dedent(code))
    # An entry takes about 30 kB: some of what one process writes another one removes.
    environment = os.environ | {"TVM_TILE_CACHE_SIZE": "100000"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    entries = list(place.glob("*.tile"))
    assert entries
    for path in entries:
        disk_cache.unpack(path.read_bytes(), path.name)
    # At most what the killed one had begun to write; it goes an hour later.
    assert len(list(place.glob(".*.tmp"))) <= 1
    assert {path.suffix for path in place.iterdir()} <= {".tile", ".tmp"}


@pytest.mark.parametrize("folder", ["~nobody_of_that_name/cache", "~"])
def test_a_home_that_is_not_known_gets_no_folder_of_its_name(
    copy_program, tmp_path, monkeypatch, caplog, generated, folder
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TVM_TILE_CACHE_DIR", folder)
    if folder == "~":
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            built(copy_program((4, 3)))
    known = folder == "~"
    assert ("the home folder is not known; set TVM_TILE_CACHE_DIR" in caplog.text) != known
    assert (tmp_path / "home").is_dir() == known
    assert not list(tmp_path.glob("~*"))
    assert generated == ["copy"] * (1 if known else 2)


def test_the_default_folder_is_the_users_cache(monkeypatch):
    import platformdirs

    monkeypatch.delenv("TVM_TILE_CACHE_DIR")
    assert disk_cache.folder() == Path(platformdirs.user_cache_dir("tvm-tile", appauthor=False))
    assert disk_cache.limit() == 512 * 2**20
