"""Questions about Presburger sets, answered by isl within a budget of operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tvm_tile.relations.proof import Proof

if TYPE_CHECKING:
    import islpy

__all__ = ["DEFAULT_OPERATIONS", "Point", "prove_empty"]

#: Budget of one question, in isl operations: up to about a second.
DEFAULT_OPERATIONS = 200_000

#: A point of a set: parameters first, then the tuple's coordinates, by name.
Point = dict[str, int]

_METHOD = "isl emptiness"


def prove_empty(question: str | islpy.Set, *, operations: int = DEFAULT_OPERATIONS) -> Proof:
    """Prove that a set has no point, whatever its parameters are.

    Parameters
    ----------
    question
        An ``islpy.Set``, or isl's text: ``"[n] -> { [i, j] : 0 <= i < n and j = 2 i and j = 1 }"``. The
        tuple's coordinates need names.
    operations
        Budget in isl operations. A budget bounds work, not seconds.

    Returns
    -------
    Proof
        Proved if the set is empty; disproved with a :data:`Point` of it; unknown if the budget ran out.

    Raises
    ------
    ValueError
        The text is not a Presburger set; products of two variables are not.
    """
    import islpy as isl

    # Text gets a context of its own, so that a question that runs out of budget leaves nothing behind.
    context = isl.Context() if isinstance(question, str) else question.get_ctx()
    with _budget(context, operations):
        try:
            # Reading simplifies, which may be all the work there is: the budget covers it too.
            domain = isl.Set.read_from_str(context, question) if isinstance(question, str) else question
            if domain.is_empty():
                return Proof.proved(_METHOD)
            return Proof.disproved(_coordinates(domain, domain.sample_point()), _METHOD)
        except isl.Error as error:
            if _exhausted(context):
                reason = f"the budget of {operations} isl operations ran out"
                return Proof.unknown(reason, _METHOD, operations)
            if isinstance(question, str):
                raise ValueError(f"not a Presburger set: {question}") from error
            raise


def _exhausted(context: islpy.Context) -> bool:
    """Whether a context's budget is spent: then even the simplest operation fails.

    The message of the failed call does not tell, because isl's parser turns it into a syntax error.
    """
    import islpy as isl

    try:
        isl.Set.read_from_str(context, "{ [i] : 0 <= i < 2 }").is_empty()
    except isl.Error:
        return True
    return False


@contextmanager
def _budget(context: islpy.Context, operations: int) -> Iterator[None]:
    """Bound the operations of a context, and lift the bound again."""
    earlier = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
    finally:
        context.reset_operations()
        context.set_max_operations(earlier)


def _coordinates(domain: islpy.Set, sample: islpy.Point) -> Point:
    import islpy as isl

    point: Point = {}
    for kind in (isl.dim_type.param, isl.dim_type.set):
        for k in range(domain.dim(kind)):
            name = domain.get_dim_name(kind, k) or f"{'p' if kind == isl.dim_type.param else 'x'}{k}"
            # Parameters that no constraint mentions may be missing from the sample's space.
            position = sample.get_space().find_dim_by_name(kind, name) if kind == isl.dim_type.param else k
            point[name] = 0 if position < 0 else int(sample.get_coordinate_val(kind, position).to_python())
    return point
