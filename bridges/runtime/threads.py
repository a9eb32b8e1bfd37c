"""How many threads a call of a built program runs on.

TVM keeps one pool for each *calling* thread, created at that thread's first parallel call with a fixed
number of workers; afterwards only the number in use can change. The number asked for is therefore one
setting of the process, and each calling thread brings its own pool into line before a call
(:func:`apply_to_calling_thread`).

Nothing here binds threads to cores. TVM would, the calling thread included, and to the first cores of
the machine rather than to those that the process may use.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import cycle, islice
from typing import Any, Final

from tvm_tile.errors import ArgumentError

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "apply_to_calling_thread",
    "get_num_threads",
    "set_num_threads",
    "usable_cores",
]

ENVIRONMENT_VARIABLE = "TVM_TILE_NUM_THREADS"

#: A pool has at least so many workers, so that the number can still be raised on a small machine. Not
#: more: a worker that has nothing to do burns a core for about 100 ms before it sleeps.
_SMALLEST_POOL = 4
#: More are refused: starting so many takes long, and TVM waits for all of them to spin.
_MOST: Final = 1024
#: Mode "the threads share the given cores" of ``runtime.config_threadpool``. It is the one that also
#: fixes TVM's idea of the available concurrency, which otherwise is half the cores.
_SHARE_CORES = -3

_log = logging.getLogger("tvm_tile.runtime.threads")
_lock = threading.Lock()


class _State:
    """The setting of the process; ``requested`` is read without the lock."""

    requested: int | None = None
    #: Workers of every pool that has started, or ``None`` before the first.
    limit: int | None = None
    #: In a forked child the workers of the parent's pool do not exist.
    forked_with_pool: bool = False


class _ThreadState(threading.local):
    """What the pool of one calling thread is configured to; 0 before its first call."""

    applied: int = 0
    capacity: int = 0


_state = _State()
_thread = _ThreadState()


@cache
def usable_cores() -> int:
    """Cores on which this process may run, as seen when this was first asked."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _cores() -> list[str]:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = sorted(affinity(0)) if affinity is not None else range(os.cpu_count() or 1)
    return [str(core) for core in cores]


def get_num_threads() -> int:
    """Number of threads on which calls of built programs run.

    It is what :func:`set_num_threads` was given, else the environment variable
    ``TVM_TILE_NUM_THREADS``, else the number of usable cores.

    Raises
    ------
    ArgumentError
        The environment variable is not an integer from 1 to 1024.
    """
    if _state.requested is None:
        _state.requested = _from_environment()
    return _state.requested


def set_num_threads(n: int) -> None:
    """Set the number of threads for calls of built programs, in every thread of this process.

    Parameters
    ----------
    n
        From 1 to 1024. More than there are cores is allowed; what a pool can hold is fixed when it starts,
        so large numbers have to be set before the first call.

    Raises
    ------
    ArgumentError
        Not an integer in that range, or more than a pool that has already started can hold.
    """
    if isinstance(n, bool) or not hasattr(type(n), "__index__"):
        raise ArgumentError(
            f"the number of threads must be an integer, not {n!r}", suggestion="tt.set_num_threads(4)"
        )
    number = n.__index__()
    if number < 1:
        raise ArgumentError(
            f"the number of threads must be at least 1, not {number}", suggestion="tt.set_num_threads(1)"
        )
    if number > _MOST:
        raise ArgumentError(
            f"the number of threads must be at most {_MOST}, not {number}",
            suggestion=f"tt.set_num_threads({usable_cores()}), one for each usable core",
        )
    with _lock:
        if _state.limit is not None and number > _state.limit:
            raise ArgumentError(
                f"{number} threads are more than the {_state.limit} of the thread pool that has started",
                suggestion=f"call tt.set_num_threads({number}) before the first call, "
                f"or start with {ENVIRONMENT_VARIABLE}={number} in the environment",
            )
        _state.requested = number


def _from_environment() -> int:
    text = os.environ.get(ENVIRONMENT_VARIABLE)
    if text is None or not text.strip():
        return usable_cores()
    digits = text.strip().removeprefix("+")
    # Python refuses to convert thousands of digits; so many are too many anyway.
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
    if not 1 <= number <= _MOST:
        raise ArgumentError(
            f"the environment variable {ENVIRONMENT_VARIABLE} must be an integer from 1 to {_MOST}, "
            f"not {text!r:.60}",
            suggestion=f"{ENVIRONMENT_VARIABLE}={usable_cores()}, or unset it",
        )
    return number


def apply_to_calling_thread() -> None:
    """Bring the calling thread's pool to the number of threads that is set; almost free if it is there."""
    if _thread.applied != _state.requested:
        _configure()


def _configure() -> None:
    import tvm_ffi

    with _lock:
        wanted = get_num_threads()
        if _state.forked_with_pool:
            # Handing work to the parent's workers would wait for ever: stay in the calling thread.
            with _unbound_threads():
                tvm_ffi.get_global_func("runtime.config_threadpool")(_SHARE_CORES, 1, ["0"])
            _log.warning(
                "this process was forked from one whose thread pool had started, and runs tile programs on "
                "one thread; start it with the 'spawn' method to use %d",
                wanted,
            )
            _thread.applied = wanted
            return
        if _thread.capacity == 0:
            _thread.capacity = _state.limit or max(wanted, usable_cores(), _SMALLEST_POOL)
        _configure_pool(tvm_ffi, wanted)
        _thread.applied = wanted


def _configure_pool(tvm_ffi: Any, wanted: int) -> None:
    """Start the calling thread's pool if there is none, and use ``wanted`` of its workers."""
    # The length of this list sets the pool's size. The entries matter only if the user has threads bound.
    places = list(islice(cycle(_cores()), _thread.capacity))
    with _unbound_threads():
        tvm_ffi.get_global_func("runtime.config_threadpool")(_SHARE_CORES, wanted, places)
    used = int(tvm_ffi.get_global_func("runtime.NumThreads")())
    if used < wanted:
        _log.warning(
            "the TVM thread pool of thread %r was started elsewhere with %d threads, so tile programs run on "
            "that many instead of %d; run a tile program first, or start with TVM_NUM_THREADS=%d set",
            threading.current_thread().name,
            used,
            wanted,
            wanted,
        )
        return
    _state.limit = _thread.capacity


@contextmanager
def _unbound_threads() -> Iterator[None]:
    """Keep TVM from binding the pool's threads, and the calling one, to cores while it configures them."""
    before = os.environ.get("TVM_BIND_THREADS")
    if before is not None:
        # The user decides.
        yield
        return
    os.environ["TVM_BIND_THREADS"] = "0"
    try:
        yield
    finally:
        del os.environ["TVM_BIND_THREADS"]


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _state.forked_with_pool = _thread.capacity > 0
    _state.limit = None
    _thread.applied = 0
    _thread.capacity = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
