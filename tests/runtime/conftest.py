"""Small programs built by hand, for the tests of running them."""

from collections.abc import Callable

import pytest

from tvm_tile.ir.index import IndexConst, IndexVar, add, mul
from tvm_tile.ir.ops import Broadcast, Elementwise, Load, Point, Slice, Store, View
from tvm_tile.ir.regions import Block, Domain, Parallel, Program
from tvm_tile.ir.values import Memory, TileType, Value


def _rows(memory: Memory, row: object) -> View:
    return View(memory, (Point(row), *(Slice(IndexConst(0), n) for n in memory.shape[1:])))


def make_copy(
    shape, dtype="float32", a_strides=None, b_strides=None, *, reverse=False, name="copy", names="AB"
) -> Program:
    """``B[i] = A[i]`` for all rows in parallel; with ``reverse`` row ``i`` of B is row ``n - 1 - i`` of A."""
    A, B = Memory(names[0], shape, dtype, a_strides), Memory(names[1], shape, dtype, b_strides)
    i, row = Value(0, TileType((), "int64"), "i"), Value(1, TileType(shape[1:], dtype), "row")
    at = IndexVar(i)
    source = add(IndexConst(shape[0] - 1), mul(IndexConst(-1), at)) if reverse else at
    body = Block((Load(row, _rows(A, source)), Store(_rows(B, at), row)))
    return Program(name, (A, B), Block((Parallel(Domain((IndexConst(shape[0]),)), (i,), body),)))


def make_scale(n, dtype, *, name="scale") -> Program:
    """``B[i] = A[i] + s`` with a run-time scalar ``s``."""
    A, B = Memory("A", (n,), dtype), Memory("B", (n,), dtype)
    s = Value(0, TileType((), dtype), "s")
    i, x, t, y = (Value(1, TileType((), "int64"), "i"), *(Value(k, TileType((1,), dtype)) for k in (2, 3, 4)))
    sub = (Slice(IndexVar(i), 1),)
    body = Block(
        (Load(x, View(A, sub)), Broadcast(t, s), Elementwise(y, "add", (x, t)), Store(View(B, sub), y))
    )
    return Program(name, (A, s, B), Block((Parallel(Domain((IndexConst(n),)), (i,), body),)))


def make_accumulate(n, dtype="float32", *, name="accumulate") -> Program:
    """``C[i] = C[i] + A[i] + B[i]``: C is read and written."""
    A, B, C = (Memory(m, (n,), dtype) for m in "ABC")
    i = Value(0, TileType((), "int64"), "i")
    a, b, c, x, y = (Value(k, TileType((1,), dtype)) for k in range(1, 6))
    sub = (Slice(IndexVar(i), 1),)
    body = Block((
        Load(a, View(A, sub)), Load(b, View(B, sub)), Load(c, View(C, sub)),
        Elementwise(x, "add", (c, a)), Elementwise(y, "add", (x, b)), Store(View(C, sub), y),
    ))  # fmt: skip
    return Program(name, (A, B, C), Block((Parallel(Domain((IndexConst(n),)), (i,), body),)))


@pytest.fixture
def copy_program() -> Callable[..., Program]:
    return make_copy


@pytest.fixture
def scale_program() -> Callable[..., Program]:
    return make_scale


@pytest.fixture
def accumulate_program() -> Callable[..., Program]:
    return make_accumulate
