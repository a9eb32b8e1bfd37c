"""Bookkeeping of debug runs: bounds, initialized elements, and which instances touched what.

Instances are numbered on through all entries of one region, so that what an earlier entry left in the
books is told from this entry's by its number, and entering a region costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_tile.errors import IllegalError
from tvm_tile.ir.ops import Atomic, Extern, Load, Store
from tvm_tile.ir.regions import Parallel, Program
from tvm_tile.ir.values import Memory
from tvm_tile.semantics.conflicts import Conflict, Touch
from tvm_tile.semantics.races import RACE_REMEDY
from tvm_tile.semantics.rounding import Array
from tvm_tile.semantics.views import Window, part_of

__all__ = ["Frame", "Monitor", "ShadowMemory"]

Coordinates = tuple[tuple[str, int], ...]
Index = tuple[int | slice, ...]

#: A lane, the number of an instance that touched its element, and what it did.
Found = tuple[tuple[int, ...], int, str] | None


@dataclass
class Frame:
    """One entry of a parallel region, while it runs.

    Attributes
    ----------
    region
        The region; its identity separates the books of different regions.
    base
        Number of the entry's first instance.
    started
        Coordinates of the instances started so far, in the order in which they ran.
    """

    region: Parallel
    base: int
    started: list[Coordinates] = field(default_factory=list)

    @property
    def current(self) -> int:
        """Number of the running instance."""
        return self.base + len(self.started) - 1


@dataclass
class _Owners:
    """Last writer of each element, and two of its readers and of its atomic updaters; -1 for none.

    Two distinct readers are enough: a write by an instance conflicts with one of them unless every
    reader is that instance. Likewise for atomics, which conflict with everything but each other.
    """

    writer: Array
    reader: Array
    other_reader: Array
    updater: Array
    other_updater: Array

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> _Owners:
        return cls(*(np.full(shape, -1, np.int64) for _ in range(5)))

    def books(self, *verbs: str) -> tuple[tuple[Array, str], ...]:
        """The records of these kinds of touch, each with its verb."""
        records = {
            "writes": (self.writer,),
            "reads": (self.reader, self.other_reader),
            "updates": (self.updater, self.other_updater),
        }
        return tuple((book, verb) for verb in verbs for book in records[verb])


class ShadowMemory:
    """What is known of one memory, element by element.

    Parameters
    ----------
    shape
        Extents of the memory.
    names
        Parameters that name this memory; several if the same array was passed for them.
    initialized
        Whether its elements hold values from the start, as those of parameters do.
    written
        Whether the program writes it; if not, no instances can conflict on it.
    """

    def __init__(
        self, shape: tuple[int, ...], names: Sequence[str], *, initialized: bool, written: bool = True
    ) -> None:
        self.shape = shape
        self.names = tuple(names)
        self.written = written
        self.initialized = np.full(shape, initialized, np.bool_)
        self._owners: dict[int, _Owners] = {}

    def uninitialized(self, index: Index, selected: Array) -> tuple[int, ...] | None:
        """A selected lane whose element has never been written, or ``None``."""
        return _first(~part_of(self.initialized, index) & selected)

    def read(self, index: Index, selected: Array, frame: Frame) -> Found:
        """Enter a read by the frame's running instance.

        Returns
        -------
        tuple or None
            A lane whose element another instance of this entry wrote or updated, that instance's number, and
            which of the two it did.
        """
        owners = self._of(frame)
        found = _other(owners.books("writes", "updates"), index, selected, frame)
        if found is None:
            _enter(owners.reader, owners.other_reader, index, selected, frame)
        return found

    def update(self, index: Index, selected: Array, frame: Frame) -> Found:
        """Enter an atomic update by the frame's running instance; as :meth:`read`, against plain touches."""
        owners = self._of(frame)
        found = _other(owners.books("writes", "reads"), index, selected, frame)
        if found is None:
            _enter(owners.updater, owners.other_updater, index, selected, frame)
        return found

    def write(self, index: Index, selected: Array, frame: Frame) -> Found:
        """Enter a write by the frame's running instance; as :meth:`read`, against all touches."""
        owners = self._of(frame)
        found = _other(owners.books("writes", "reads", "updates"), index, selected, frame)
        if found is None:
            np.copyto(part_of(owners.writer, index), frame.current, where=selected)
        return found

    def mark_initialized(self, index: Index, selected: Array) -> None:
        """Enter that the selected lanes hold values now."""
        np.copyto(part_of(self.initialized, index), True, where=selected)

    def _of(self, frame: Frame) -> _Owners:
        region = id(frame.region)
        if region not in self._owners:
            self._owners[region] = _Owners.none(self.shape)
        return self._owners[region]


def _other(books: tuple[tuple[Array, str], ...], index: Index, selected: Array, frame: Frame) -> Found:
    """A touch by another instance of the frame's entry."""
    for book, verb in books:
        part = part_of(book, index)
        lane = _first((part >= frame.base) & (part != frame.current) & selected)
        if lane is not None:
            return lane, int(part[lane]), verb
    return None


def _enter(first: Array, second: Array, index: Index, selected: Array, frame: Frame) -> None:
    """Note the running instance in the first of two records, or in the second if that has another one."""
    one, two, me = part_of(first, index), part_of(second, index), frame.current
    known = one >= frame.base
    np.copyto(two, me, where=known & (one != me) & selected)
    np.copyto(one, me, where=~known & selected)


def _first(faulty: Array) -> tuple[int, ...] | None:
    """Coordinates of the first true element."""
    if not faulty.any():
        return None
    return tuple(int(c) for c in np.unravel_index(int(np.argmax(faulty)), faulty.shape))


class Monitor:
    """Checks every access of a debug run.

    Parameters
    ----------
    program
        The program that runs.
    aliases
        Groups of its parameters that were passed the same array.
    """

    def __init__(self, program: Program, aliases: Sequence[frozenset[str]]) -> None:
        self.entries = 0
        self.instances = 0
        self.accesses = 0
        self.elements = 0
        self.opaque_calls = 0
        self._shadows: dict[str, ShadowMemory] = {}
        self._frames: list[Frame] = []
        self._next: dict[int, int] = {}
        writes = {memory.name for memory in program.writes}
        for memory in program.tensors:
            if memory.name not in self._shadows:
                group = next((g for g in aliases if memory.name in g), frozenset((memory.name,)))
                written = not writes.isdisjoint(group)
                shadow = ShadowMemory(memory.shape, sorted(group), initialized=True, written=written)
                self._shadows.update(dict.fromkeys(group, shadow))

    def allocate(self, memory: Memory) -> None:
        """Enter a new memory; its elements hold nothing yet."""
        self._shadows[memory.name] = ShadowMemory(memory.shape, (memory.name,), initialized=False)

    def enter(self, region: Parallel) -> None:
        """A parallel region starts."""
        self._frames.append(Frame(region, self._next.setdefault(id(region), 0)))
        self.entries += 1

    def instance(self, point: tuple[int, ...]) -> None:
        """The next instance of the innermost region starts."""
        frame = self._frames[-1]
        names = (index.name or str(index) for index in frame.region.indices)
        frame.started.append(tuple(zip(names, point, strict=True)))
        self.instances += 1

    def leave(self) -> None:
        """The innermost parallel region ends."""
        frame = self._frames.pop()
        self._next[id(frame.region)] += len(frame.started)

    def load(self, op: Load, window: Window, mask: Array | None) -> None:
        """Check a load before it is done.

        Raises
        ------
        IllegalError
            Obligation ``bounds``, ``initialization`` or ``noninterference``.
        """
        name, selected = self._check(op, window, mask)
        if not selected.size:
            return
        shadow = self._shadows[name]
        self._require_initialized(op, window, shadow, selected)
        for depth, frame in enumerate(self._frames if shadow.written else ()):
            found = shadow.read(window.memory, selected, frame)
            if found is not None:
                self._refuse(op, window, found, depth)

    def update(self, op: Atomic, window: Window, mask: Array | None) -> None:
        """Check an atomic update before it is done; raises as :meth:`load` does."""
        name, selected = self._check(op, window, mask)
        if not selected.size:
            return
        shadow = self._shadows[name]
        self._require_initialized(op, window, shadow, selected)
        for depth, frame in enumerate(self._frames):
            found = shadow.update(window.memory, selected, frame)
            if found is not None:
                self._refuse(op, window, found, depth)

    def opaque(self, op: Extern) -> None:
        """Note a call of an opaque function; what it touches of the memories it may write is unknown."""
        self.opaque_calls += 1
        for memory in op.writes:
            self._shadows[memory.name].initialized[...] = True

    def _require_initialized(
        self, op: Load | Atomic, window: Window, shadow: ShadowMemory, selected: Array
    ) -> None:
        lane = shadow.uninitialized(window.memory, selected)
        if lane is None:
            return
        name, element = op.view.memory.name, _element(window, lane)
        raise IllegalError(
            f"{name}[{', '.join(map(str, element))}] is read before anything is written to it",
            span=op.span,
            obligation="initialization",
            counterexample=Touch(self._coordinates(), "reads", name, element),
            suggestion="store to it first",
        )

    def store(self, op: Store, window: Window, mask: Array | None) -> None:
        """Check a store before it is done; raises as :meth:`load` does."""
        name, selected = self._check(op, window, mask)
        if not selected.size:
            return
        shadow = self._shadows[name]
        for depth, frame in enumerate(self._frames):
            found = shadow.write(window.memory, selected, frame)
            if found is not None:
                self._refuse(op, window, found, depth)
        shadow.mark_initialized(window.memory, selected)

    def _check(self, op: Load | Store | Atomic, window: Window, mask: Array | None) -> tuple[str, Array]:
        """Check bounds, count, and give the memory's name and the lanes in bounds that touch it."""
        memory = op.view.memory
        if not isinstance(op, Atomic) and op.bounds == "assume" and not window.complete:
            outside = np.ones(window.shape, np.bool_)
            if not window.empty:
                part_of(outside, window.lanes)[...] = False
            lane = _first(outside if mask is None else outside & mask)
            if lane is not None:
                element = window.element(lane)
                verb = "reads" if isinstance(op, Load) else "writes"
                raise IllegalError(
                    f'bounds="assume" does not hold: element {element} of {memory.name} is outside of '
                    f"its extents {memory.shape}",
                    span=op.span,
                    obligation="bounds",
                    counterexample=Touch(self._coordinates(), verb, memory.name, element),
                    suggestion='bounds="fill"',
                )
        self.accesses += 1
        if window.empty:
            return memory.name, np.zeros((0,), np.bool_)
        shape = tuple(lanes.stop - lanes.start for lanes in window.lanes)
        selected = np.ones(shape, np.bool_) if mask is None else part_of(mask, window.lanes)
        self.elements += int(np.count_nonzero(selected))
        return memory.name, selected

    def _coordinates(self, depth: int | None = None) -> Coordinates:
        frames = self._frames if depth is None else self._frames[: depth + 1]
        return tuple(pair for frame in frames for pair in frame.started[-1])

    def _refuse(
        self, op: Load | Store | Atomic, window: Window, found: tuple[tuple[int, ...], int, str], depth: int
    ) -> None:
        lane, number, verb = found
        frame, memory = self._frames[depth], op.view.memory.name
        names = self._shadows[memory].names
        element = _element(window, lane)
        outer = self._coordinates(depth - 1) if depth else ()
        earlier = Touch((*outer, *frame.started[number - frame.base]), verb, " = ".join(names), element)
        now = {Load: "reads", Store: "writes", Atomic: "updates"}[type(op)]
        later = Touch(self._coordinates(depth), now, memory, element)
        alias = f" ({' and '.join(names)} are the same array)" if len(names) > 1 else ""
        raise IllegalError(
            f"two instances of one parallel region touch one element of {memory}, and one writes it{alias}",
            span=op.span,
            obligation="noninterference",
            counterexample=Conflict(earlier, later),
            suggestion=RACE_REMEDY,
        )


def _element(window: Window, lane: tuple[int, ...]) -> tuple[int, ...]:
    """Element of a lane counted among those in bounds."""
    return window.element(tuple(c + part.start for c, part in zip(lane, window.lanes, strict=True)))
