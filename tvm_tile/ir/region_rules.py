"""Rules of regions: arity and types of what flows in and out, domains, stages, effects and policies."""

from __future__ import annotations

from collections.abc import Iterator

from tvm_tile.ir.dependence import dependent_values
from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.faults import Fault, agreement_faults
from tvm_tile.ir.index import constant_of
from tvm_tile.ir.merge_rules import region_merge_faults
from tvm_tile.ir.op_rules import index_faults, type_fault
from tvm_tile.ir.ops import POLICIES, Alloc, Atomic, Extern, Load, Op, Stage
from tvm_tile.ir.patches import Patches, patched_states
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Pipeline, Reduce, Statement
from tvm_tile.ir.structure import walk
from tvm_tile.ir.uses import merge_of, merge_parts
from tvm_tile.ir.values import TileType, Value

__all__ = ["BINDINGS", "effect_faults", "region_faults", "stage_faults"]

#: Scopes that a parallel region may be bound to; a target may refuse one it does not have.
BINDINGS = ("device", "cluster", "block", "warpgroup", "warp", "lane", "thread", "worker", "vector")

_INDEX_TYPE = TileType((), "int64")
_BOOL = TileType((), "bool")


def region_faults(region: If | Loop) -> Iterator[Fault]:
    """Faults of one region itself, not of what is nested in it."""
    for value in region.results:
        yield from _value_type(value, region)
    if isinstance(region, If):
        yield from _branch_faults(region)
        return
    yield from _domain_faults(region)
    yield from _carried_faults(region)
    match region:
        case Parallel():
            yield from _parallel_faults(region)
        case Pipeline():
            for what, count in (("versions", region.versions), ("ii", region.ii)):
                if count is not None and count < 1:
                    message = f"a pipeline has {what}={count}, which must be 1 or more"
                    yield Fault(message, region.span, "pipeline", f"leave {what} out")
        case Reduce():
            yield from _reduce_faults(region)


def _value_type(value: Value, region: If | Loop) -> Iterator[Fault]:
    problem = type_fault(value.type)
    if problem is not None:
        span = value.span or region.span
        yield Fault(f"value {value}: {problem}", span, "type", "use a dtype and extents that exist")


def _branch_faults(region: If) -> Iterator[Fault]:
    span, condition = region.span, region.condition
    if condition.type != _BOOL:
        yield Fault(
            f"the condition {condition} is {condition.type}, not a bool scalar",
            span,
            "condition",
            "compare it, or reduce it with tt.any or tt.all",
        )
    for arm, yields in (("then", region.then_yields), ("else", region.else_yields)):
        yield from agreement_faults(f"the {arm} arm of a branch yields", yields, region.results, region.span)


def _domain_faults(region: Loop) -> Iterator[Fault]:
    span, extents = region.span, region.domain.extents
    if len(region.indices) != len(extents):
        yield Fault(
            f"a region has {len(region.indices)} indices for {len(extents)} extents",
            span,
            "domain",
            "give one index an extent",
        )
    for index in region.indices:
        if index.type != _INDEX_TYPE:
            message = f"the index {index} is {index.type}, not {_INDEX_TYPE}"
            yield Fault(message, index.span or span, "domain", "make loop indices int64 scalars")
    for extent in extents:
        yield from index_faults(extent, span)
        constant = constant_of(extent)
        if constant is not None and constant < 0:
            message = f"a region over {_names(region)} has the negative extent {constant}"
            yield Fault(message, span, "domain", "use an extent of 0 or more")
    if region.domain.where is not None:
        yield from index_faults(region.domain.where, span)


def _names(region: Loop) -> str:
    return ", ".join(v.name or str(v) for v in region.indices) or "no index"


def _carried_faults(region: Loop) -> Iterator[Fault]:
    for value in region.args:
        yield from _value_type(value, region)
    yield from agreement_faults("a region starts from", region.inits, region.args, region.span)
    yield from agreement_faults("a region yields", region.yields, region.args, region.span)
    yield from agreement_faults("a region leaves", region.args, region.results, region.span)


def _parallel_faults(region: Parallel) -> Iterator[Fault]:
    if region.bind is not None and region.bind not in BINDINGS:
        message = f"there is no scope {region.bind!r} to bind a parallel region to"
        yield Fault(message, region.span, "binding", f"use one of {', '.join(BINDINGS)}")
    by_index = dependent_values(region.body, region.indices)
    by_load = dependent_values(region.body, (), lambda op: isinstance(op, (Load, Atomic)))
    patched = patched_states(region) if len(region.args) == len(region.yields) else ()
    for k, value in enumerate(region.yields):
        if k < len(patched) and patched[k]:
            yield from _patch_faults(region, k)
            continue
        reason = "its indices" if value in by_index else "a load in it" if value in by_load else None
        if reason is not None:
            state = region.args[k] if k < len(region.args) else value
            name = repr(state.name) if state.name else str(state)
            yield Fault(
                f"{name} is assigned as a whole by every instance of the parallel region "
                f"over {_names(region)}, but its value depends on {reason}",
                value.span or region.span,
                "competing whole-tile writes",
                "write each instance's own part with tt.update, or accumulate in a tt.reduce region; "
                "or use another name if this value is local to the loop",
            )


def _patch_faults(region: Parallel, k: int) -> Iterator[Fault]:
    """Partial updates of one state agree on how the values of several instances combine."""
    inserts = Patches(region.body, region.args[k]).inserts_of(region.yields[k])
    ways = list(dict.fromkeys(insert.combine for insert in inserts))
    if len(ways) > 1:
        listed = " and ".join("no combine" if way is None else way for way in ways)
        yield Fault(
            f"the partial updates of {region.args[k].name or region.args[k]} in the parallel region over "
            f"{_names(region)} have {listed}",
            inserts[-1].span or region.span,
            "patch join",
            "give all of them one combine=",
        )


def _reduce_faults(region: Reduce) -> Iterator[Fault]:
    if region.policy not in POLICIES:
        yield Fault(
            f"policy {region.policy!r} is not one of {', '.join(POLICIES)}",
            region.span,
            "policy",
            f"use policy={POLICIES[0]!r}",
        )
    yield from region_merge_faults(region)


def stage_faults(block: Block, pipeline: bool = False) -> Iterator[Fault]:
    """Stages that are not directly in a pipeline's body, or share a name there."""
    seen: set[str] = set()
    for statement in block.statements:
        match statement:
            case Stage(name=name) if not pipeline:
                yield Fault(
                    f"stage {name!r} is not directly in the body of a pipeline",
                    statement.span,
                    "stage order",
                    "move it to the outermost level of a tt.pipeline body",
                )
            case Stage(name=name) if name in seen:
                message = f"stage {name!r} appears twice in one pipeline"
                yield Fault(message, statement.span, "stage order", "give each stage its own name")
            case Stage(name=name):
                seen.add(name)
            case If(then=then, orelse=orelse):
                yield from stage_faults(then)
                yield from stage_faults(orelse)
            case Loop(body=body):
                yield from stage_faults(body, isinstance(statement, Pipeline))
                yield from _merge_stages(statement)
            case _:
                yield from _merge_stages(statement)


def _merge_stages(statement: Statement) -> Iterator[Fault]:
    merge = merge_of(statement)
    if merge is not None:
        for _, part in merge_parts(merge):
            yield from stage_faults(part.body)


def effect_faults(block: Block) -> Iterator[Fault]:
    """Writes in reductions, and reads or writes in the functions of a merge.

    Memory that is allocated there is the contribution's own.
    """
    reported: set[int] = set()
    for statement in walk(block):
        if isinstance(statement, Reduce):
            for op in _outward(statement.body, reads=False):
                # A reduction within a reduction holds the same ops again.
                if id(op) not in reported:
                    reported.add(id(op))
                    yield _effect(
                        op, "writes", "the body of a reduction", "tt.serial for a loop with effects"
                    )
        merge = merge_of(statement)
        for name, part in merge_parts(merge) if merge is not None else ():
            # A lift makes a coordinate's contribution, as the body does, and may read what the body may.
            for op in _outward(part.body, reads=name != "lift"):
                if id(op) not in reported:
                    reported.add(id(op))
                    verb = "writes" if effects_of(op).writes else "reads"
                    yield _effect(op, verb, f"the {name} of a merge", "values from before the region")


def _outward(block: Block, *, reads: bool) -> Iterator[Op]:
    """Ops that write memory from outside of a block, or read it if that counts."""
    ops = [statement for statement in walk(block) if isinstance(statement, Op)]
    own = {op.memory for op in ops if isinstance(op, Alloc)}
    for op in ops:
        effects = effects_of(op)
        if effects.writes - own or (reads and effects.reads - own) or isinstance(op, Extern):
            yield op


def _effect(op: Op, verb: str, where: str, remedy: str) -> Fault:
    effects = effects_of(op)
    names = sorted(repr(m.name) for m in (effects.writes or effects.reads))
    what = f"memory {', '.join(names)}" if names else "what an opaque function touches"
    return Fault(f"{where} {verb} {what}", op.span, "effects", f"use {remedy}")
