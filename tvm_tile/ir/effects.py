"""Effects of statements on memory, by memory: what may be read, what may be written."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_tile.ir.ops import Atomic, Extern, Load, Store
from tvm_tile.ir.regions import Block, If, Loop, Statement
from tvm_tile.ir.values import Memory

__all__ = ["Effects", "effects_of"]


@dataclass(frozen=True)
class Effects:
    """Memories read and written; none of either means pure."""

    reads: frozenset[Memory] = frozenset()
    writes: frozenset[Memory] = frozenset()

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.reads | other.reads, self.writes | other.writes)

    @property
    def pure(self) -> bool:
        """Neither reads nor writes memory."""
        return not self.reads and not self.writes


def effects_of(node: Block | Statement) -> Effects:
    """Union of the effects of everything inside."""
    match node:
        case Load(view=view):
            return Effects(reads=frozenset((view.memory,)))
        case Store(view=view):
            return Effects(writes=frozenset((view.memory,)))
        case Atomic(view=view):
            return Effects(reads=frozenset((view.memory,)), writes=frozenset((view.memory,)))
        case Extern(reads=reads, writes=writes):
            return Effects(reads=frozenset(reads), writes=frozenset(writes))
        case If(then=then, orelse=orelse):
            return effects_of(then) | effects_of(orelse)
        case Loop(body=body):
            return effects_of(body)
        case Block(statements):
            total = Effects()
            for statement in statements:
                total |= effects_of(statement)
            return total
    return Effects()
