"""How long calls of an executable take."""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import ArgumentError

__all__ = ["Timing", "measure"]

#: Seconds of warming up after the first call: worker threads wake, clocks rise, caches fill.
_WARM_UP = 0.02
#: Seconds that one run should last at least; shorter calls are timed several at a time.
_SHORTEST_RUN = 2e-4


@dataclass(frozen=True)
class Timing:
    """Wall times of one call, in seconds.

    Attributes
    ----------
    median, minimum
        Over the runs.
    spread
        Half the distance between the quartiles of the runs.
    runs
        The single times, in order of measurement.
    calls
        Calls that each run averages.
    """

    median: float
    minimum: float
    spread: float
    runs: tuple[float, ...]
    calls: int

    def __str__(self) -> str:
        per_run = f" of {self.calls} calls" if self.calls > 1 else ""
        return (
            f"{_readable(self.median)} ± {_readable(self.spread)} "
            f"(minimum {_readable(self.minimum)}, {len(self.runs)} runs{per_run})"
        )


def _readable(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def measure(call: Callable[..., Any], arguments: Sequence[Any], repeat: Any) -> Timing:
    """Time a call.

    Raises
    ------
    ArgumentError
        ``repeat`` is no positive integer; or what the call raises.
    """
    if isinstance(repeat, bool) or not hasattr(type(repeat), "__index__") or operator.index(repeat) < 1:
        raise ArgumentError(f"repeat must be a positive integer, not {repeat!r:.60}", suggestion="repeat=20")
    call(*arguments)
    start = time.perf_counter()
    warm_calls = 0
    while warm_calls == 0 or time.perf_counter() - start < _WARM_UP:
        call(*arguments)
        warm_calls += 1
    each = (time.perf_counter() - start) / warm_calls
    calls = max(1, round(_SHORTEST_RUN / each))
    runs = []
    for _ in range(operator.index(repeat)):
        start = time.perf_counter()
        for _ in range(calls):
            call(*arguments)
        runs.append((time.perf_counter() - start) / calls)
    quartiles = statistics.quantiles(runs, n=4, method="inclusive") if len(runs) > 1 else runs * 3
    spread = (quartiles[2] - quartiles[0]) / 2
    return Timing(statistics.median(runs), min(runs), spread, tuple(runs), calls)
