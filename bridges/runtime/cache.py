"""A bounded cache in which each value is made once, also when several threads ask at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

__all__ = ["CacheInfo", "CircularError", "OnceCache"]

V = TypeVar("V")


class CacheInfo(NamedTuple):
    """Counts of a cache, as ``functools.lru_cache`` gives them."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class CircularError(RuntimeError):
    """A value was asked for by the thread that is making it."""


class OnceCache(Generic[V]):
    """From keys to values, the least recently used dropped first.

    A value whose making fails is not kept; everyone who waits for it gets the error.
    """

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._entries: OrderedDict[Hashable, Future[V]] = OrderedDict()
        # Of values that are being made, the threads that make them.
        self._makers: dict[Future[V], int] = {}
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made by this call or by one that came first.

        Raises
        ------
        CircularError
            ``make`` of this key, further up in this thread, asks for its own value.
        """
        thread = threading.get_ident()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._hits += 1
                self._entries.move_to_end(key)
            else:
                self._misses += 1
                own: Future[V] = Future()
                self._entries[key] = own
                self._makers[own] = thread
                if len(self._entries) > self._maxsize:
                    self._entries.popitem(last=False)
        if entry is not None:
            if self._makers.get(entry) == thread:
                raise CircularError("a value is needed to make itself")
            return entry.result()
        try:
            own.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is own:
                    del self._entries[key]
            own.set_exception(error)
            raise
        finally:
            del self._makers[own]
        return own.result()

    def info(self) -> CacheInfo:
        """Hits, misses, bound and current size."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._entries))

    def clear(self) -> None:
        """Forget everything, counts too."""
        with self._lock:
            self._entries.clear()
            self._hits = self._misses = 0
