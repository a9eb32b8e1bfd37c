"""The reference mapping of a program to a device: which kernels are launched, and with how many threads.

Each parallel region at the top of a program is one launch, one instance a thread. What stands between
regions runs in a launch of one thread. Inside a thread everything is serial, in the same code as on a CPU.
Values and memories that outlive a launch are global temporaries of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.ir import Range
from tvm.tirx import AttrStmt, Bind, Cast, IfThenElse, IntImm, IterVar, Var

from tvm_tile.bridges.tirx.lower.builder import Builder, sequence
from tvm_tile.bridges.tirx.lower.device.dialects import dialect_of
from tvm_tile.bridges.tirx.lower.device.workspace import WORKSPACE_BYTES, moved, oversized, size_of
from tvm_tile.bridges.tirx.lower.elements.divisions import settle_divisions
from tvm_tile.bridges.tirx.lower.fusion import Fusion
from tvm_tile.bridges.tirx.lower.memories.addresses import buffer_size
from tvm_tile.bridges.tirx.lower.operations import Environment, emit_op, note_integer
from tvm_tile.bridges.tirx.lower.regions import emit_block, emit_instance, extents_of, with_indices
from tvm_tile.bridges.tirx.lower.scalars import int64, register_dtype
from tvm_tile.bridges.tirx.lower.uses import all_uses, prune
from tvm_tile.bridges.tirx.lower.values import Stored
from tvm_tile.ir.index import free_values
from tvm_tile.ir.ops import Alloc, FromIndex, Full, Iota, Op
from tvm_tile.ir.regions import Block, Parallel, Statement
from tvm_tile.ir.values import Value

__all__ = ["emit_launches"]

#: Blocks there are before they get more than one thread, and most threads of a block.
_BLOCKS, _THREADS = 256, 128
#: Threads of a launch whose number of instances is not known before it runs.
_UNKNOWN = 1 << 14
#: Most blocks of a launch.
_MOST_BLOCKS = (1 << 31) - 1

_NO_FUSION = Fusion(frozenset(), frozenset())


def emit_launches(
    builder: Builder, block: Block, scalars: frozenset[Value], enter: Callable[[Environment], None]
) -> None:
    """Emit the launches of a program's body, in order.

    Parameters
    ----------
    builder
        Is in the frame of the function, whose statements the host runs.
    block
        The body.
    scalars
        The run-time scalars.
    enter
        Defines them in an environment, inside of each launch.
    """
    _Launches(builder, scalars, enter).program(block)


class _Launches:
    def __init__(
        self, builder: Builder, scalars: frozenset[Value], enter: Callable[[Environment], None]
    ) -> None:
        self.builder = builder
        self.scalars = scalars
        self.enter = enter
        # Values that any launch computes for itself, and those that an earlier one left behind.
        self.plain: dict[Value, Op] = {}
        self.env: Environment = {}

    def program(self, block: Block) -> None:
        groups: list[list[Statement]] = []
        for statement in block.statements:
            if isinstance(statement, Alloc):
                memory = statement.memory
                self.builder.buffers[memory] = self.builder.allocate_global(
                    memory.name, buffer_size(memory), memory.dtype
                )
            elif isinstance(statement, Op) and self._is_plain(statement):
                (result,) = statement.results
                self.plain[result] = statement
            elif _is_launch(statement) or not groups or _is_launch(groups[-1][-1]):
                groups.append([statement])
            else:
                groups[-1].append(statement)
        needed: list[set[Value]] = []
        later: set[Value] = set()
        for group in reversed(groups):
            needed.append(set(later))
            later |= {value for statement in group for value in all_uses(statement)}
        for group, after in zip(groups, reversed(needed), strict=True):
            if _is_launch(group[0]):
                (region,) = group
                assert isinstance(region, Parallel)
                self._region(region)
            else:
                self._serial(group, after)

    def _is_plain(self, statement: Op) -> bool:
        """Whether it costs nothing to compute a value again in each launch."""
        match statement:
            case Full() | Iota():
                return True
            case FromIndex(index=index):
                return all(value in self.plain or value in self.scalars for value in free_values(index))
        return False

    def _enter(self, statements: Sequence[Statement]) -> Environment:
        """What the code of a launch sees, defined at its head."""
        env = dict(self.env)
        self.enter(env)
        wanted: dict[Value, Op] = {}
        pending = [value for statement in statements for value in all_uses(statement)]
        while pending:
            value = pending.pop()
            if value in self.plain and value not in wanted:
                wanted[value] = self.plain[value]
                pending += all_uses(self.plain[value])
        for value, statement in self.plain.items():
            if value in wanted:
                emit_op(self.builder, statement, env, _NO_FUSION, {})
        return env

    def _serial(self, group: list[Statement], after: set[Value]) -> None:
        """A launch of one thread."""
        builder = self.builder
        left = [v for statement in group for v in statement.results if v in after]
        outputs = [
            builder.allocate_global(v.name or "value", v.type.size, register_dtype(v.dtype)) for v in left
        ]

        def work(_: Any) -> tuple[int, Any]:
            env = self._enter(group)
            emit_block(builder, Block(tuple(group)), left, outputs, env)
            return 1, None

        self._launch(work)
        for value, buffer in zip(left, outputs, strict=True):
            self.env[value] = Stored(value.type, buffer)
            builder.definitions.pop(value, None)
            note_integer(builder, value, self.env[value])

    def _region(self, region: Parallel) -> None:
        """A launch of one thread an instance."""
        builder = self.builder
        body = prune(region.body, ())
        if not body.statements:
            return

        def work(number: Any) -> tuple[int | None, Any]:
            env = self._enter((region,))
            settled = settle_divisions(builder, region)
            assert isinstance(settled, Parallel)
            extents = extents_of(builder, settled)
            total: Any = 1
            for extent in extents:
                if isinstance(extent, int) and isinstance(total, int):
                    total *= extent
                else:
                    total = _expression(total) * _expression(extent)
            if not isinstance(total, int):
                total = builder.hold("instances", total, "int64")
            elif total == 0:
                return 0, None

            def instance() -> None:
                emit_block(builder, body, (), (), with_indices(builder, region, env))

            with builder.block() as statements:
                emit_instance(builder, region, extents, number, instance)
            return (total if isinstance(total, int) else None), (statements, total)

        self._launch(work, 1 if region.bind == "block" else _THREADS)

    def _launch(self, work: Callable[[Any], tuple[int | None, Any]], most_threads: int = _THREADS) -> None:
        """One launch; the work gives the number of instances and what each of them does."""
        builder = self.builder
        bx, tx = Var(builder.unique("block"), "int32"), Var(builder.unique("thread"), "int32")
        thread = Var(builder.unique("thread_number"), "int64")
        number = Var(builder.unique("instance"), "int64")
        with builder.frame() as statements:
            instances, each = work(number)
            large = oversized(builder.allocations)
            blocks, threads = _shape(instances, sum(map(size_of, large)), most_threads)
            if each is not None:
                inner, total = each
                self._turns(inner, total, thread, number, blocks * threads)
        if not statements or instances == 0:
            return
        names = {str(allocation.buffer.name) for allocation in large}
        body = [s for s in statements if not (isinstance(s, tirx.AllocBuffer) and s.buffer.name in names)]
        places = self._workspaces([allocation.buffer for allocation in large], thread, blocks * threads)
        whole = sequence([Bind(thread, Cast("int64", bx) * int64(threads) + Cast("int64", tx)), *body])
        if places:
            whole = moved(whole, places)
        whole = dialect_of(builder.machine.kind).rewritten(whole)
        builder.emit(_extent(bx, "blockIdx.x", blocks, _extent(tx, "threadIdx.x", threads, whole)))

    def _workspaces(self, buffers: list[Any], thread: Any, threads: int) -> dict[str, tuple[Any, Any]]:
        """For each buffer a place in global memory: one buffer a dtype, of which each thread has a part."""
        places: dict[str, tuple[Any, Any]] = {}
        for dtype in dict.fromkeys(str(buffer.ty.dtype) for buffer in buffers):
            own = [buffer for buffer in buffers if str(buffer.ty.dtype) == dtype]
            sizes = [int(buffer.ty.shape[0]) for buffer in own]
            whole = self.builder.allocate_global(f"workspace_{dtype}", sum(sizes) * threads, dtype)
            for k, buffer in enumerate(own):
                offset = thread * int64(sum(sizes)) + int64(sum(sizes[:k]))
                places[str(buffer.name)] = whole, offset
        return places

    def _turns(self, inner: list[Any], total: Any, thread: Any, number: Any, threads: int) -> None:
        """Each thread's instances: the one of its number, and those a number of threads apart from it."""
        builder = self.builder
        static = isinstance(total, int)
        test = tirx.LT(number, _expression(total))
        if static and total <= threads:
            guarded = sequence(inner) if total == threads else IfThenElse(test, sequence(inner), None)
            builder.emit(Bind(number, thread))
            builder.emit(guarded)
            return
        turn = builder.variable("turn")
        turns = -(-total // threads) if static else tirx.floordiv(total + int64(threads - 1), int64(threads))
        whole = static and total % threads == 0
        guarded = sequence(inner) if whole else IfThenElse(test, sequence(inner), None)
        builder.emit(builder.loop(turn, turns, [Bind(number, turn * int64(threads) + thread), guarded]))


def _is_launch(statement: Statement) -> bool:
    """Whether it has instances that run apart, without a result to be joined."""
    return isinstance(statement, Parallel) and not statement.results


def _shape(instances: int | None, workspace: int, most_threads: int) -> tuple[int, int]:
    """Blocks, and threads of a block, of a launch whose threads need some workspace each, in bytes."""
    wanted = _UNKNOWN if instances is None else max(instances, 1)
    most = max(WORKSPACE_BYTES // workspace, 1) if workspace else _MOST_BLOCKS * _THREADS
    per_block = -(-wanted // _BLOCKS)
    threads = min(1 << (per_block - 1).bit_length(), most_threads)
    while threads > most:
        threads //= 2
    return min(-(-wanted // threads), max(most // threads, 1), _MOST_BLOCKS), threads


def _extent(variable: Any, tag: str, extent: int, body: Any) -> Any:
    axis = IterVar(Range(IntImm("int32", 0), IntImm("int32", extent)), variable, IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", IntImm("int32", extent), body)


def _expression(value: Any) -> Any:
    return int64(value) if isinstance(value, int) else value
