"""Arguments that share memory: read-only ones freely, identical views by proof, partial overlap never."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.bridges.runtime.arguments import Placed
from tvm_tile.bridges.runtime.overlap import find_overlap, overlaps_itself
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.values import Memory


def test_parameters_that_are_only_read_may_overlap_in_any_way(accumulate_program):
    exe = build(accumulate_program(4))
    memory = np.arange(16, dtype="float32")
    for a, b in ((slice(0, 4), slice(0, 4)), (slice(0, 4), slice(2, 6))):
        c = np.ones(4, "float32")
        exe(memory[a], memory[b], c)
        np.testing.assert_array_equal(c, 1 + memory[a] + memory[b])


def test_identical_views_run_where_no_conflict_is_proved(accumulate_program, copy_program):
    exe = build(accumulate_program(5))
    for rest in (1.0, 2.0):
        c = np.full(5, 3, "float32")
        exe(np.full(5, rest, "float32"), c, c)
        np.testing.assert_array_equal(c, np.full(5, 6 + rest))
    c = np.full(5, 3, "float32")
    exe(c, c, c)
    np.testing.assert_array_equal(c, np.full(5, 9.0))
    a = np.arange(12, dtype="float32").reshape(4, 3)
    build(copy_program((4, 3)))(a, a)
    np.testing.assert_array_equal(a, np.arange(12).reshape(4, 3))


def test_identical_views_are_refused_with_the_proof_where_a_conflict_exists(copy_program):
    exe = build(copy_program((4, 3), reverse=True))
    a = np.arange(12, dtype="float32").reshape(4, 3)
    before = a.copy()
    for _ in range(2):
        with pytest.raises(
            ArgumentError, match=r"parameters A and B got identical views[\s\S]*disproved[\s\S]*instance"
        ):
            exe(a, a)
    np.testing.assert_array_equal(a, before)
    b = np.zeros_like(a)
    exe(a, b)
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_partial_overlap_is_refused(copy_program, shift):
    exe = build(copy_program((4, 3)))
    memory = np.arange(24, dtype="float32").reshape(8, 3)
    before = memory.copy()
    for a, b in ((memory[:4], memory[shift : shift + 4]), (memory[shift : shift + 4], memory[:4])):
        with pytest.raises(ArgumentError, match="parameters A and B share elements without being identical"):
            exe(a, b)
    np.testing.assert_array_equal(memory, before)
    exe(memory[:4], memory[4:])
    np.testing.assert_array_equal(memory[4:], before[:4])


def test_partial_overlap_by_bytes_is_refused_though_elements_are_unaligned(copy_program):
    exe = build(copy_program((4,)))
    storage = np.zeros(40, np.uint8)
    with pytest.raises(ArgumentError, match="share elements"):
        exe(storage[:16].view("float32"), storage[2:18].view("float32"))


def test_interleaved_views_share_nothing(copy_program):
    exe = build(copy_program((6,), a_strides=(2,), b_strides=(2,)))
    memory = np.arange(12, dtype="float32")
    exe(memory[::2], memory[1::2])
    np.testing.assert_array_equal(memory, np.repeat(np.arange(0, 12, 2), 2))
    columns = np.arange(24, dtype="float32").reshape(4, 6)
    exe = build(copy_program((4, 3), a_strides=(6, 1), b_strides=(6, 1)))
    exe(columns[:, :3], columns[:, 3:])
    np.testing.assert_array_equal(columns[:, :3], columns[:, 3:])
    with pytest.raises(ArgumentError, match="share elements"):
        exe(columns[:, :3], columns[:, 2:5])


def test_unaligned_identical_views_see_each_other(accumulate_program):
    exe = build(accumulate_program(4))
    storage = np.zeros(20, np.uint8)
    c = storage[1:17].view("float32")
    c[...] = 3
    exe(np.ones(4, "float32"), c, c)
    np.testing.assert_array_equal(c, np.full(4, 7.0))


def _placed(array, name):
    strides = tuple(s // array.itemsize for s in array.strides)
    memory = Memory(name, array.shape, str(array.dtype), strides)
    return Placed(memory, array, array.__array_interface__["data"][0], array.strides)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_overlap_is_decided_as_by_looking_at_every_byte(data):
    storage = np.zeros(400, np.uint8)

    def view(name):
        dtype = np.dtype(data.draw(st.sampled_from(["int8", "int16", "float32"])))
        shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
        strides = tuple(data.draw(st.integers(-6, 6)) * dtype.itemsize for _ in shape)
        array = np.ndarray(shape, dtype, storage, 200 + data.draw(st.integers(-20, 20)), strides)
        return array, _placed(array, name)

    def bytes_of(array):
        positions = {0}
        for extent, stride in zip(array.shape, array.strides, strict=True):
            positions = {p + k * stride for p in positions for k in range(extent)}
        start = array.__array_interface__["data"][0]
        return {start + p + k for p in positions for k in range(array.itemsize)}

    (a, placed_a), (b, placed_b) = view("A"), view("B")
    shared = bytes_of(a) & bytes_of(b)
    same = (
        a.shape == b.shape
        and a.dtype == b.dtype
        and placed_a.address == placed_b.address
        and placed_a.relevant_strides == placed_b.relevant_strides
    )
    try:
        overlap = find_overlap([placed_a, placed_b], frozenset((placed_b.memory,)))
    except ArgumentError:
        assert shared
        assert not same
    else:
        assert overlap.groups == ((frozenset("AB"),) if shared else ())
        assert not shared or same
    assert find_overlap([placed_a, placed_b], frozenset()).groups == ()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_self_overlap_is_decided_as_by_counting_elements(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=3)))
    strides = tuple(data.draw(st.integers(-9, 9)) for _ in shape)
    places = [0]
    for extent, stride in zip(shape, strides, strict=True):
        places = [p + k * stride for p in places for k in range(extent)]
    assert overlaps_itself(Memory("A", shape, "int8", strides)) == (len(set(places)) < len(places))
