"""Partial updates of outer tiles in parallel loops: what may be joined as patches and what may not."""

from __future__ import annotations

from tvm_tile.errors import IllegalError
from tvm_tile.ir.dependence import dependent_values
from tvm_tile.ir.ops import Insert
from tvm_tile.ir.patches import Patches
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.structure import walk

__all__ = ["check_updates"]


def check_updates(region: Parallel, what: str) -> None:
    """Refuse a carried tile that a parallel loop both updates in parts and assigns in another way.

    Raises
    ------
    IllegalError
        The parts that instances update are joined after the loop; a whole value of one instance is no part.
    """
    for arg, value in zip(region.args, region.yields, strict=True):
        chain = Patches(region.body, arg)
        if chain.inserts_of(value):
            continue
        updated = [result for result, inserts in chain.of.items() if inserts]
        mixes = bool(updated) and value in dependent_values(region.body, updated)
        if not mixes and value in dependent_values(region.body, region.indices):
            others = [op.result for op in walk(region.body) if isinstance(op, Insert)]
            mixes = value in dependent_values(region.body, others)
        if mixes:
            name = arg.name or str(arg)
            raise IllegalError(
                f"{name!r} is updated in part with tt.update and also assigned as a whole in {what}, so that "
                "its value after the loop is no join of parts",
                span=value.span or region.span,
                obligation="patches of an outer tile",
                suggestion=f"assign {name} by {name} = tt.update({name}, ...) alone, and give other values "
                "names of their own",
            )
