"""Static check that the instances of a parallel region do not update one element of an outer tile."""

from __future__ import annotations

from itertools import combinations, islice

from tvm_tile.errors import IllegalError
from tvm_tile.ir.patches import Patches, patched_states
from tvm_tile.ir.regions import Parallel, Program
from tvm_tile.ir.structure import walk
from tvm_tile.relations.presburger import DEFAULT_OPERATIONS
from tvm_tile.semantics.footprints import Access, accesses_of
from tvm_tile.semantics.separation import separate

__all__ = ["check_patches"]

#: Pairs of different updates of one tile that are decided; there are as many as the square of the updates.
_PAIRS = 512


def check_patches(program: Program) -> None:
    """Refuse partial updates that certainly meet.

    What depends on data, or takes too long to decide, is left to the interpreter, which checks every update:
    each update with itself in other instances, and pairs of different ones up to a limit.

    Raises
    ------
    IllegalError
        Two instances update one element without a ``combine``, whatever the data is.
    """
    regions = [s for s in walk(program) if isinstance(s, Parallel) and any(patched_states(s))]
    if not regions:
        return
    accesses = accesses_of(program)
    for region in regions:
        for arg, result, patched in zip(region.args, region.yields, patched_states(region), strict=True):
            inserts = Patches(region.body, arg).inserts_of(result)
            if patched and inserts[0].combine is None:
                own = [access for access in accesses if any(access.op is insert for insert in inserts)]
                _check(program, region, arg.name or str(arg), own)


def _check(program: Program, region: Parallel, name: str, inserts: list[Access]) -> None:
    for a, b in (*((a, a) for a in inserts), *islice(combinations(inserts, 2), _PAIRS)):
        depth = next(k for k, step in enumerate(a.path) if step.loop is region)
        answer = separate(program, a, b, depth, DEFAULT_OPERATIONS)
        # One that needs certain run-time scalars may never happen.
        if answer.is_disproved and not answer.counterexample.context:
            raise IllegalError(
                f"two instances of one parallel region update one element of {name}",
                span=b.op.span,
                obligation="noninterference",
                counterexample=answer.counterexample,
                suggestion="let each instance update its own elements, or give combine=tt.add or another "
                "function",
            )
