"""Partial updates of an outer tile in a parallel region: which carried states are joins of patches.

A carried state of a :class:`~tvm_tile.ir.regions.Parallel` is *patched* if the body makes its next value
from its value at entry by :class:`~tvm_tile.ir.ops.Insert` alone, through branches and nested loops that
carry it. Every instance then starts from the value before the region, and after it each element has the
value of the one instance that wrote it, or the value from before. Other states are anchored: one value,
computed once.
"""

from __future__ import annotations

from tvm_tile.ir.ops import Insert
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Reduce
from tvm_tile.ir.values import Value

__all__ = ["Patches", "patched_states"]


def patched_states(region: Parallel) -> tuple[bool, ...]:
    """For each carried state, whether it is a join of patches and not anchored."""
    chains = [Patches(region.body, arg) for arg in region.args]
    return tuple(bool(chain.inserts_of(value)) for chain, value in zip(chains, region.yields, strict=True))


class Patches:
    """The values that a body makes of an entry value by partial updates alone.

    Parameters
    ----------
    body
        The statements to look through, nested regions included.
    entry
        The value before any update.

    Attributes
    ----------
    of
        From each such value to the inserts that may have led to it; empty for the entry value itself.
    """

    def __init__(self, body: Block, entry: Value) -> None:
        self.of: dict[Value, tuple[Insert, ...]] = {entry: ()}
        self._block(body)

    def inserts_of(self, value: Value) -> tuple[Insert, ...]:
        """The inserts behind a value; empty if there are none, or it is made in another way."""
        return self.of.get(value, ())

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            match statement:
                case Insert(result=result, operand=operand) if operand in self.of:
                    self.of[result] = (*self.of[operand], statement)
                case If(then=then, orelse=orelse, results=results):
                    self._block(then)
                    self._block(orelse)
                    # The verifier looks through programs that are not well formed, too: nothing here
                    # relies on as many yields as there are results.
                    pairs = zip(results, statement.then_yields, statement.else_yields, strict=False)
                    for result, a, b in pairs:
                        self._join(result, a, b)
                case Reduce():
                    pass
                case Loop(inits=inits, args=args, body=body, yields=yields, results=results):
                    # Carried values are looked at with the inserts of the value that comes in, so that
                    # what a later turn starts from is a patch of the entry value too.
                    states = zip(inits, args, yields, results, strict=False)
                    carried = [state for state in states if state[0] in self.of]
                    for init, arg, _, _ in carried:
                        self.of[arg] = self.of[init]
                    self._block(body)
                    for init, _, value, result in carried:
                        self._join(result, init, value)

    def _join(self, result: Value, a: Value, b: Value) -> None:
        if a in self.of and b in self.of:
            first = self.of[a]
            self.of[result] = (*first, *(insert for insert in self.of[b] if insert not in first))
