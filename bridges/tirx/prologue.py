"""Assertions at the head of a generated function, on which the rest of its code relies.

Generated code assumes that data pointers are aligned and, when it is marked ``tirx.noalias``, that a
written parameter shares no memory with another one. TVM checks neither, so the statements made here
do, in any pipeline, at a cost of a few instructions a parameter. The caller's side
(:mod:`tvm_tile.bridges.runtime`) recognizes a failure by :data:`GUARD_PREFIX`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import tirx
from tvm.ir import StringImm

from tvm_tile.bridges.tirx.operators import address as address_of
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory

__all__ = ["DEBUG_PREFIX", "GUARD_PREFIX", "argument_guards", "byte_range", "debug_assertion"]

#: Start of the message of every failed guard.
GUARD_PREFIX = "tvm_tile argument guard"

#: Pairs of parameters up to which each pair has an assertion of its own.
_MOST_PAIRS = 64

#: Start of the message of every failed check of a debug build.
DEBUG_PREFIX = "tvm_tile debug check"


def byte_range(memory: Memory) -> tuple[int, int] | None:
    """Bytes that a memory spans, ``[low, high)`` relative to its first element; ``None`` if it is empty."""
    if 0 in memory.shape:
        return None
    itemsize = bits(memory.dtype) // 8
    reach = [
        (extent - 1) * stride for extent, stride in zip(memory.shape, memory.element_strides, strict=True)
    ]
    low = sum(r for r in reach if r < 0)
    high = sum(r for r in reach if r > 0) + 1
    return low * itemsize, high * itemsize


def argument_guards(
    program: Program,
    buffers: Mapping[Memory, Any],
    noalias: bool,
    *,
    groups: Sequence[frozenset[Memory]] = (),
) -> list[Any]:
    """Statements to place first in the body of the function generated for a program.

    They assert that each data pointer has the alignment that the code assumes (the buffer's
    ``data_alignment``, and at least the element size), and that the bytes spanned by a written
    parameter do not meet those of another parameter.

    Parameters
    ----------
    program
        Says which parameters are written.
    buffers
        The ``tirx`` buffer of each tensor parameter.
    noalias
        Whether the function is marked ``tirx.noalias``. All pairs are then checked.
    groups
        Only without ``noalias``: sets of parameters that may be identical views of one another. A
        pair in one group must start at one address or be disjoint, any other pair disjoint. Without
        groups a function that is not ``noalias`` leaves aliasing to its caller.

    Returns
    -------
    list of tvm.tirx.Stmt
        May be empty.
    """
    if noalias and groups:
        raise ValueError("a noalias function has no parameters that may be identical views")
    statements: list[Any] = []
    addresses = {}
    for memory in program.tensors:
        address = tirx.Var(f"{buffers[memory].name}_address", "uint64")
        statements.append(tirx.Bind(address, address_of(tirx.buffer.buffer_data(buffers[memory]))))
        addresses[memory] = address

    checks = [
        check for m in program.tensors if (check := _alignment_check(m, buffers[m], addresses[m])) is not None
    ]
    if noalias or groups:
        checks += _overlap_checks(program, addresses, groups)
    return [*statements, *checks] if checks else []


def debug_assertion(condition: Any, message: str) -> Any:
    """A statement of a debug build that stops the function with a message if a condition does not hold."""
    return tirx.AssertStmt(condition, StringImm("ValueError"), [StringImm(f"{DEBUG_PREFIX}: {message}")])


def _assertion(condition: Any, message: str) -> Any:
    return tirx.AssertStmt(condition, StringImm("ValueError"), [StringImm(f"{GUARD_PREFIX}: {message}")])


def _alignment_check(memory: Memory, buffer: Any, address: Any) -> Any | None:
    alignment = max(bits(memory.dtype) // 8, int(buffer.ty.data_alignment))
    if alignment == 1 or 0 in memory.shape:
        return None
    rest = tirx.bitwise_and(address, tirx.const(alignment - 1, "uint64"))
    return _assertion(
        tirx.EQ(rest, tirx.const(0, "uint64")), f"parameter {memory.name} is not aligned to {alignment} bytes"
    )


def _overlap_checks(
    program: Program, addresses: Mapping[Memory, Any], groups: Sequence[frozenset[Memory]]
) -> list[Any]:
    """Statements that assert of every pair of parameters, one of them written, that it is apart.

    One assertion for each pair says which two overlap. TVM simplifies each under all that come before it,
    which takes minutes for thousands; many pairs are therefore compared in a loop.
    """
    written = program.writes
    memories = sorted(
        (m for m in program.tensors if byte_range(m) is not None), key=lambda m: m not in written
    )
    first = sum(memory in written for memory in memories)
    pairs = [(a, b) for position, a in enumerate(memories[:first]) for b in memories[position + 1 :]]
    if len(pairs) > _MOST_PAIRS and not groups:
        return _overlap_loop(memories, first, addresses)
    order = {memory: position for position, memory in enumerate(program.tensors)}
    checks = []
    for a, b in pairs:
        one, other = sorted((a, b), key=order.__getitem__)
        together = any(a in group and b in group for group in groups)
        apart = _apart(one, other, addresses[one], addresses[other], together)
        checks.append(_assertion(apart, f"parameters {one.name} and {other.name} overlap"))
    return checks


def _overlap_loop(memories: Sequence[Memory], written: int, addresses: Mapping[Memory, Any]) -> list[Any]:
    """The comparisons as two loops over tables of addresses; the first ``written`` memories are written."""
    count = len(memories)
    low, high = (tirx.decl_buffer((count,), "uint64", f"argument_{end}") for end in ("starts", "ends"))
    statements: list[Any] = [tirx.AllocBuffer(low), tirx.AllocBuffer(high)]
    for position, memory in enumerate(memories):
        span = byte_range(memory)
        assert span is not None
        for buffer, distance in zip((low, high), span, strict=True):
            statements.append(tirx.BufferStore(buffer, _offset(addresses[memory], distance), [position]))
    i, k = tirx.Var("one", "int32"), tirx.Var("distance", "int32")
    j = i + k + 1
    apart = tirx.any(
        tirx.BufferLoad(high, [i]) <= tirx.BufferLoad(low, [j]),
        tirx.BufferLoad(high, [j]) <= tirx.BufferLoad(low, [i]),
    )
    check = _assertion(apart, "a parameter that is written overlaps another parameter")
    inner = tirx.For(k, 0, count - 1 - i, tirx.ForKind.SERIAL, check)
    return [*statements, tirx.For(i, 0, written, tirx.ForKind.SERIAL, inner)]


def _apart(a: Memory, b: Memory, address_a: Any, address_b: Any, identical: bool) -> Any:
    range_a, range_b = byte_range(a), byte_range(b)
    assert range_a is not None
    assert range_b is not None
    apart = tirx.any(
        _offset(address_a, range_a[1]) <= _offset(address_b, range_b[0]),
        _offset(address_b, range_b[1]) <= _offset(address_a, range_a[0]),
    )
    return tirx.any(tirx.EQ(address_a, address_b), apart) if identical else apart


def _offset(address: Any, distance: int) -> Any:
    """``address + distance``; uint64 literals have no sign."""
    step = tirx.const(abs(distance), "uint64")
    return address + step if distance >= 0 else address - step
