"""What a debug run of the interpreter covered."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """The domain that a debug run checked and found without fault.

    Attributes
    ----------
    program
        Name of the program.
    regions
        Entries of parallel regions.
    instances
        Instances of parallel regions that ran, nested ones included.
    accesses
        Loads and stores checked.
    elements
        Elements that they touched, counted with repetition.
    opaque_calls
        Calls of opaque functions, of which nothing is checked but the addresses.
    order, reduction
        The order of instances and the grouping of reductions that ran.
    aliases
        Parameters that were passed the same array.
    """

    program: str
    regions: int
    instances: int
    accesses: int
    elements: int
    opaque_calls: int
    order: str
    reduction: str
    aliases: tuple[frozenset[str], ...] = ()

    def __str__(self) -> str:
        aliases = "; ".join(" = ".join(sorted(group)) for group in self.aliases) or "none"
        opaque = f"  {self.opaque_calls} calls of opaque functions: what they touch is not known"
        return "\n".join(
            (
                f"debug run of {self.program}: no fault found",
                f"  parallel regions entered: {self.regions}, instances run: {self.instances}",
                f"  loads and stores checked: {self.accesses}, elements touched: {self.elements}",
                f"  order of instances: {self.order}, grouping of reductions: {self.reduction}",
                f"  aliased arguments: {aliases}",
                *((opaque,) if self.opaque_calls else ()),
                "  checked: bounds, initialized reads, noninterference of parallel instances",
                "  only these inputs and this order were examined; other inputs may still have faults",
            )
        )
