"""Rules of merges: what flows in and out of their functions, and which policies they admit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.faults import Fault, agreement_faults, counted
from tvm_tile.ir.functions import REDUCIBLE, identity_of
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.op_rules import type_fault
from tvm_tile.ir.ops import POLICIES, Elementwise, Full
from tvm_tile.ir.reductions import TREES, check_policy, derive_merge
from tvm_tile.ir.regions import Merge, Reduce
from tvm_tile.ir.span import Span
from tvm_tile.ir.uses import merge_parts
from tvm_tile.ir.values import Value

__all__ = ["merge_op_faults", "region_merge_faults"]

_SCAN_POLICIES = ("ordered_tree", "fold_left")


def region_merge_faults(region: Reduce) -> Iterator[Fault]:
    """Faults of the merge and the policy of a reduction region."""
    if region.args:
        names = ", ".join(arg.name or str(arg) for arg in region.args)
        yield from _policy_faults(region.policy, region.merge, names, region.span)
    if region.merge is None:
        return
    yield from _merge_faults(region.merge, region.args, region.span)
    yield from _body_faults(region, region.merge)
    if region.merge.lift is not None:
        params = region.merge.lift.params
        yield from agreement_faults("a merge's lift takes", region.indices, params, region.span)


def _body_faults(region: Reduce, merge: Merge) -> Iterator[Fault]:
    """A body whose updates combine in one way, under a merge that combines in another."""
    if region.policy not in TREES or merge.builtin is None or merge.lift is not None:
        return
    ids = itertools.count(-1, -1)
    own = derive_merge(region.args, region.body, region.yields, lambda t: Value(next(ids), t))
    found = None if own is None else own.builtin
    if found == merge.builtin or (found is None and merge.provenance != "derived"):
        return
    names = ", ".join(arg.name or str(arg) for arg in region.args)
    way = "in no known way" if found is None else f"by {', '.join(found)}"
    merged = ", ".join(merge.builtin)
    yield Fault(
        f"the body of the reduction updates {names} {way}, but its merge combines by {merged}",
        region.span,
        "reduction policy",
        "leave merge= out, or update the states in the way of the merge",
    )


def merge_op_faults(op: MergeReduce | Scan) -> Iterator[Fault]:
    """Faults of the merge and the policy of a reduction or scan of tiles."""
    names = ", ".join(value.name or str(value) for value in op.outputs) or "nothing"
    if isinstance(op, Scan) and op.policy in POLICIES and op.policy not in _SCAN_POLICIES:
        yield Fault(
            f"policy {op.policy!r} of a scan would change the order of the contributions to its prefixes",
            op.span,
            "reduction policy",
            'a scan never permutes: use policy="ordered_tree" or "fold_left"',
        )
    yield from _policy_faults(op.policy, op.merge, names, op.span)
    yield from _merge_faults(op.merge, op.merge.identity.yields, op.span)


def _policy_faults(policy: str, merge: Merge | None, names: str, span: Span | None) -> Iterator[Fault]:
    for message, suggestion in check_policy(policy, merge, names):
        yield Fault(message, span, "reduction policy", suggestion)


def _merge_faults(merge: Merge, states: tuple[Value, ...], span: Span | None) -> Iterator[Fault]:
    for name, part in merge_parts(merge):
        for value in part.params:
            problem = type_fault(value.type)
            if problem is not None:
                message = f"value {value}: {problem}"
                yield Fault(message, value.span or span, "type", "use a dtype and extents that exist")
        yield from agreement_faults(f"the {name} of a merge yields", part.yields, states, span)
    yield from agreement_faults("a merge's combine joins", (*states, *states), merge.combine.params, span)
    yield from agreement_faults("a merge's identity takes", (), merge.identity.params, span)
    if merge.builtin is not None:
        unknown = [fn for fn in merge.builtin if fn not in REDUCIBLE]
        if unknown or len(merge.builtin) != len(states):
            listed = ", ".join(merge.builtin) or "none"
            yield Fault(
                f"a merge of {counted(states)} has the built-in functions {listed}",
                span,
                "reduction policy",
                f"name one of {', '.join(REDUCIBLE)} a state",
            )
        else:
            yield from _form_faults(merge, merge.builtin, span)


def _form_faults(merge: Merge, functions: tuple[str, ...], span: Span | None) -> Iterator[Fault]:
    """Code for a built-in function is generated from its name, so the merge has to be that function.

    A merge with other faults, in its arity or its effects, is not looked at.
    """
    made = {op.result: op for op in merge.identity.body.statements if isinstance(op, Full)}
    joined = {op.result: op for op in merge.combine.body.statements if isinstance(op, Elementwise)}
    count = len(functions)
    sizes = len(merge.identity.yields), len(merge.combine.yields), len(merge.combine.params)
    if sizes != (count, count, 2 * count):
        return
    effects = [effects_of(part.body) for part in (merge.combine, merge.identity)]
    if any(found.reads or found.writes for found in effects):
        return
    for k, fn in enumerate(functions):
        unit, total = made.get(merge.identity.yields[k]), joined.get(merge.combine.yields[k])
        if total is None or total.fn != fn or total.operands != merge.combine.params[k::count]:
            yield Fault(
                f"a merge with the built-in function {fn} combines in another way",
                span,
                "reduction policy",
                f"combine the two states by {fn} alone, or leave out builtin",
            )
        elif unit is None or unit.value.value != identity_of(fn, unit.result.dtype):
            yield Fault(
                f"a merge with the built-in function {fn} starts from "
                f"{'another value' if unit is None else unit.value} instead of its identity",
                span,
                "reduction policy",
                f"start from {identity_of(fn, merge.identity.yields[k].dtype)}, or leave out builtin",
            )
