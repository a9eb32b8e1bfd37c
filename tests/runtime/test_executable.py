"""Calling a built program: what is taken, and what is refused with a word on why."""

import copy
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.build import build
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.dtypes import numpy_dtype

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def some(shape, dtype="float32"):
    values = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape)
    return values.astype(numpy_dtype(dtype))


class Exporter:
    """A DLPack producer that is no array, on a device of choice."""

    def __init__(self, array, device=(1, 0), versioned=True):
        self.array, self.device, self.versioned = array, device, versioned

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.versioned and options:
            raise TypeError("no options")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_from_numpy(copy_program, dtype):
    exe = build(copy_program((5, 3), dtype))
    a, b = some((5, 3), dtype), np.zeros((5, 3), numpy_dtype(dtype))
    for _ in range(2):
        b[...] = 0
        exe(a, b)
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (3, 0), (1, 7), (7, 1), (2, 3, 5)])
def test_every_shape(copy_program, shape):
    exe = build(copy_program(shape))
    a, b = some(shape), np.zeros(shape, "float32")
    exe(a, b)
    exe(a, b)
    np.testing.assert_array_equal(a, b)


def test_tvm_tensors_and_other_producers(copy_program):
    exe = build(copy_program((4, 3)))
    a, b = some((4, 3)), np.zeros((4, 3), "float32")
    tensor = tvm.runtime.tensor(np.zeros((4, 3), "float32"))
    for _ in range(2):
        exe(tvm.runtime.tensor(a), tensor)
        np.testing.assert_array_equal(tensor.numpy(), a)
        for versioned in (True, False):
            b[...] = 0
            exe(Exporter(a, versioned=versioned), Exporter(b, versioned=versioned))
            np.testing.assert_array_equal(b, a)


def test_memory_maps_and_subclasses_are_arrays(copy_program, tmp_path):
    exe = build(copy_program((4, 3)))
    a = some((4, 3))
    mapped = np.memmap(tmp_path / "b", "float32", "w+", shape=(4, 3))
    exe(a.view(np.matrix), mapped)
    np.testing.assert_array_equal(np.asarray(mapped), a)


def test_read_only_input_is_taken_and_read_only_output_refused(copy_program):
    exe = build(copy_program((4, 3)))
    a, b = some((4, 3)), np.zeros((4, 3), "float32")
    frozen = a.copy()
    frozen.flags.writeable = False
    for _ in range(3):
        b[...] = 0
        exe(frozen, b)
        np.testing.assert_array_equal(b, a)
        with pytest.raises(ArgumentError, match=r"parameter B is written.*read-only"):
            exe(a, frozen)
        with pytest.raises(ArgumentError, match="read-only"):
            exe(a, Exporter(frozen))
    np.testing.assert_array_equal(frozen, a)


def test_read_only_input_of_a_foreign_dtype(copy_program):
    exe = build(copy_program((4, 3), "bfloat16"))
    a, b = some((4, 3), "bfloat16"), np.zeros((4, 3), ml_dtypes.bfloat16)
    a.flags.writeable = False
    for _ in range(2):
        exe(a, b)
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ArgumentError, match="read-only"):
        exe(b, a)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda a: None, r"parameter A expects a float32 array of shape \(4, 3\), got None"),
        (lambda a: a.tolist(), r"parameter A expects .*list"),
        (lambda a: 3.0, "parameter A expects .*float"),
        (lambda a: "text", "parameter A expects .*str"),
        (lambda a: np.ndarray, "parameter A expects .*type"),
        (lambda a: a.astype("float64"), "parameter A expects dtype float32, got float64"),
        (lambda a: a.astype("int32"), "parameter A expects dtype float32, got int32"),
        (lambda a: a.astype(">f4"), "parameter A expects float32, got byte-swapped >f4"),
        (lambda a: a.astype(object), "parameter A expects dtype float32, got object"),
        (lambda a: a.astype("complex64"), "got complex64"),
        (lambda a: a[:, 0], "parameter A expects 2 axes.*got 1"),
        (lambda a: a[None], "parameter A expects 2 axes.*got 3"),
        (lambda a: a[:3], r"parameter A expects shape \(4, 3\), got \(3, 3\)"),
        (lambda a: a.T, r"parameter A expects shape \(4, 3\), got \(3, 4\)"),
        (lambda a: np.asfortranarray(a), r"strides \(3, 1\) in elements, got \(1, 4\)"),
        (lambda a: a[::-1], r"strides \(3, 1\) in elements, got \(-3, 1\)"),
        (lambda a: np.ma.masked_array(a, a > 3), "masked array"),
        (lambda a: Exporter(a, (2, 0)), "parameter A expects memory of the CPU, got memory of cuda"),
        (lambda a: Exporter(a.astype("int64")), "parameter A expects dtype float32, got int64"),
        (lambda a: Exporter(a[::2].astype(">f4")), "does not export its memory"),
        (lambda a: tvm.runtime.tensor(a[:2]), r"got \(2, 3\)"),
    ],
)
def test_what_does_not_fit_is_named(copy_program, bad, message):
    exe = build(copy_program((4, 3)))
    a, b = some((4, 3)), np.zeros((4, 3), "float32")
    exe(a, b)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=message) as caught:
            exe(bad(a), b)
        assert caught.value.suggestion
    np.testing.assert_array_equal(a, b)


def test_wrong_number_of_arguments(copy_program):
    exe = build(copy_program((4, 3)))
    a = some((4, 3))
    for arguments in ((), (a,), (a, a, a)):
        with pytest.raises(ArgumentError, match=r"copy takes 2 arguments \(A, B\), got"):
            exe(*arguments)


def test_strided_programs_take_exactly_their_strides(copy_program):
    exe = build(copy_program((4, 3), a_strides=(6, 2), b_strides=(-3, 1)))
    a, b = some((8, 6))[:4, ::2], np.zeros((4, 3), "float32")[::-1]
    for _ in range(2):
        exe(a, b)
        np.testing.assert_array_equal(a, b)
    with pytest.raises(
        ArgumentError, match=r"parameter A expects strides \(6, 2\) in elements, got \(3, 1\)"
    ):
        exe(a.copy(), b)
    with pytest.raises(
        ArgumentError, match=r"parameter B expects strides \(-3, 1\) in elements, got \(3, 1\)"
    ):
        exe(a, b.copy())


def test_strides_that_mean_nothing_do_not_matter(copy_program):
    exe = build(copy_program((1, 3)))
    a = np.lib.stride_tricks.as_strided(some((4, 3)), (1, 3), (4 * 17, 4))
    b = np.zeros((1, 3), "float32")
    exe(a, b)
    np.testing.assert_array_equal(a, b)
    exe = build(copy_program((1, 3), a_strides=(3, 2)))
    wide = some((1, 6))[:, ::2]
    for stride in (4, 400):
        exe(np.lib.stride_tricks.as_strided(wide, (1, 3), (stride, 8)), b)
        np.testing.assert_array_equal(wide, b)


def test_broadcast_input_is_taken_and_a_program_that_writes_one_is_refused(copy_program):
    exe = build(copy_program((4, 3), a_strides=(0, 1)))
    row, b = some(3), np.zeros((4, 3), "float32")
    for _ in range(2):
        exe(np.broadcast_to(row, (4, 3)), b)
        np.testing.assert_array_equal(b, np.tile(row, (4, 1)))
    with pytest.raises(ArgumentError, match=r"parameter B is written.*overlap"):
        build(copy_program((4, 3), b_strides=(0, 1)))
    with pytest.raises(ArgumentError, match="overlap"):
        build(copy_program((4, 3), b_strides=(1, 1)))
    build(copy_program((4, 3), b_strides=(1, 4)))
    build(copy_program((3, 2), b_strides=(2, 3)))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "bfloat16"])
def test_unaligned_arrays_give_the_same_result(copy_program, dtype):
    exe = build(copy_program((5, 3), dtype))
    a, itemsize = some((5, 3), dtype), numpy_dtype(dtype).itemsize
    for shift in range(1, itemsize):
        storage = np.zeros(15 * itemsize + itemsize, np.uint8)
        unaligned = storage[shift : shift + 15 * itemsize].view(numpy_dtype(dtype)).reshape(5, 3)
        exe(a, unaligned)
        np.testing.assert_array_equal(unaligned, a)
        assert not storage[:shift].any()
        assert not storage[shift + 15 * itemsize :].any()
        b = np.zeros((5, 3), numpy_dtype(dtype))
        exe(unaligned, b)
        np.testing.assert_array_equal(b, a)


def test_fields_of_records_are_no_whole_number_of_elements_apart(copy_program):
    records = np.zeros(5, np.dtype([("a", "i1"), ("b", "f4")]))
    records["a"] = 7
    exe = build(copy_program((5,)))
    a, b = some(5), np.zeros(5, "float32")
    exe(a, records["b"])
    exe(records["b"], b)
    np.testing.assert_array_equal(b, a)
    assert (records["a"] == 7).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 7), st.integers(0, 7), st.booleans(), st.booleans())
def test_any_shift_of_input_and_output_copies_exactly(shift_a, shift_b, frozen, again):
    from tvm_tile.ir.regions import Program

    exe = _byte_copy()
    assert isinstance(exe.program, Program)
    storage_a = np.arange(100, dtype=np.uint8)
    storage_b = np.full(100, 255, np.uint8)
    a = storage_a[shift_a : shift_a + 88].view("float64")
    b = storage_b[shift_b : shift_b + 88].view("float64")
    a.flags.writeable = not frozen
    for _ in range(1 + again):
        exe(a, b)
    assert a.tobytes() == b.tobytes()
    assert (storage_b[:shift_b] == 255).all()
    assert (storage_b[shift_b + 88 :] == 255).all()


_cached = []


def _byte_copy():
    if not _cached:
        from tvm_tile.ir.index import IndexConst
        from tvm_tile.ir.ops import Load, Slice, Store, View
        from tvm_tile.ir.regions import Block, Program
        from tvm_tile.ir.values import Memory, TileType, Value

        A, B = (Memory(name, (11,), "float64") for name in "AB")
        x, all_of = Value(0, TileType((11,), "float64")), (Slice(IndexConst(0), 11),)
        body = Block((Load(x, View(A, all_of)), Store(View(B, all_of), x)))
        _cached.append(build(Program("copy", (A, B), body)))
    return _cached[0]


@pytest.mark.parametrize(
    ("dtype", "good"),
    [
        ("float32", [2, 2.5, np.float32(0.5), np.float64(1.5), np.int8(3)]),
        ("float64", [2, 2.5, ml_dtypes.bfloat16(0.5)]),
        ("int32", [-5, 0, np.int64(7), np.uint8(200), 2**31 - 1 - 100]),
        ("uint8", [0, 155, np.int64(12)]),
        ("uint64", [0, 2**63, 2**64 - 101]),
        ("int64", [-(2**63), 2**63 - 101]),
    ],
)
def test_run_time_scalars(scale_program, dtype, good):
    exe = build(scale_program(3, dtype))
    a, b = some(3, dtype), np.zeros(3, dtype)
    for value in good:
        exe(a, value, b)
        expected = a.astype(object) + (float(value) if dtype.startswith("float") else int(value))
        np.testing.assert_array_equal(b.astype(object), expected)


@pytest.mark.parametrize(
    ("dtype", "bad", "message"),
    [
        ("float32", True, "parameter s expects a float32 number, got True"),
        ("float32", "1", "parameter s expects a float32 number"),
        ("float32", None, "parameter s expects a float32 number"),
        ("float32", 1j, "parameter s expects a float32 number"),
        ("float32", np.zeros(1), "parameter s expects a float32 number"),
        ("float32", np.complex64(1), "parameter s expects a float32 number"),
        ("float32", np.str_("1"), "parameter s expects a float32 number"),
        ("float64", np.bytes_(b"1"), "parameter s expects a float64 number"),
        ("float32", np.timedelta64(1), "parameter s expects a float32 number"),
        ("int32", np.timedelta64(1), "parameter s expects a int32 number"),
        ("int32", 1.0, "parameter s expects a int32 number"),
        ("int32", True, "parameter s expects a int32 number"),
        ("int32", 2**31, "holds -2147483648 to 2147483647, got 2147483648"),
        ("int32", -(2**31) - 1, "got -2147483649"),
        ("uint8", -1, "holds 0 to 255, got -1"),
        ("uint8", 256, "got 256"),
        ("uint64", 2**64, "got 18446744073709551616"),
        ("int64", 2**63, "got 9223372036854775808"),
    ],
)
def test_run_time_scalars_that_do_not_fit(scale_program, dtype, bad, message):
    exe = build(scale_program(3, dtype))
    a, b = some(3, dtype), np.zeros(3, dtype)
    exe(a, 1, b)
    before = b.copy()
    with pytest.raises(ArgumentError, match=message):
        exe(a, bad, b)
    np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda exe: pickle.loads(pickle.dumps(exe))],
    ids=["copy", "deep", "pickle"],
)
def test_a_copy_of_an_executable_runs_the_same_program(copy_program, copied, debug):
    exe = build(copy_program((4, 3)), debug=debug)
    other = copied(exe)
    assert type(other) is type(exe)
    assert (other.program, str(other.target)) == (exe.program, str(exe.target))
    a, b = some((4, 3), "float32"), np.zeros((4, 3), "float32")
    other(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ArgumentError, match="parameter A expects shape"):
        other(a[:2], b)


def test_what_an_executable_shows(copy_program):
    exe = build(copy_program((4, 3), name="shown"))
    assert repr(exe) == "<Executable shown(A float32[4, 3], B float32[4, 3]) for llvm>"
    assert exe.program == copy_program((4, 3), name="shown")
    assert exe.target.kind.name == "llvm"
    assert "shown" in [variable.name_hint for variable in exe.mod.get_global_vars()]
    assert "define" in exe.source()
    assert exe.source("ll") == exe.source()
    assert ".text" in exe.source("asm")
    with pytest.raises(ArgumentError, match=r"no source of kind 'ptx'[\s\S]*'ll', 'asm'"):
        exe.source("ptx")


def test_the_raw_function_takes_arrays_too(copy_program):
    exe = build(copy_program((4, 3)))
    a, b = some((4, 3)), np.zeros((4, 3), "float32")
    exe.function(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="overlap"):
        exe.function(a, a)


def test_nothing_crashes_the_process():
    script = """
        import ctypes, numpy as np, sys
        sys.path.insert(0, {folder!r})
        from conftest import make_copy
        from tvm_tile.build import build
        from tvm_tile.errors import ArgumentError
        exe = build(make_copy((64, 33), "float64"))
        a = np.random.default_rng(0).random((64, 33))
        storage = np.zeros(a.nbytes + 16, np.uint8)
        for shift in range(9):
            out = storage[shift : shift + a.nbytes].view("float64").reshape(64, 33)
            exe(a, out)
            assert (out == a).all()
        class Junk:
            def __dlpack_device__(self): return 1, 0
            def __dlpack__(self, **options): return "no capsule"
        for junk in (ctypes.c_void_p(8), Junk(), Junk, object(), b"1234", memoryview(b"1234"), 8, [a]):
            for arguments in ((junk, a), (a, junk), (junk,), (junk, junk, junk)):
                try:
                    exe(*arguments)
                except ArgumentError:
                    continue
                raise SystemExit(f"accepted {{junk}}")
        print("alive")
    """
    code = textwrap.dedent(script).format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "alive"


def test_arguments_by_name_are_refused_with_the_way_to_give_constants(copy_program):
    exe = build(copy_program((5, 3)))
    with pytest.raises(ArgumentError, match="by position; got 'b' by name") as caught:
        exe(some((5, 3)), some((5, 3)), b=4)
    assert "kernel.trace" in caught.value.suggestion


def test_a_producer_that_fails_to_say_its_device_is_named(copy_program):
    exe = build(copy_program((5, 3)))
    with pytest.raises(ArgumentError, match=r"parameter A .* has no usable device"):
        exe(Exporter(some((5, 3)), device=("nowhere", 0)), some((5, 3)))
    exe(Exporter(some((5, 3))), some((5, 3)))
