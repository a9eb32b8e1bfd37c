"""The cache in which each value is made once."""

import threading

import pytest

from tvm_tile.bridges.runtime.cache import CacheInfo, CircularError, OnceCache


def test_a_value_is_made_once_and_counted():
    cache, made = OnceCache(4), []
    for _ in range(3):
        assert cache.get("a", lambda: made.append(1) or len(made)) == 1
    assert cache.info() == CacheInfo(hits=2, misses=1, maxsize=4, currsize=1)
    cache.clear()
    assert cache.info() == CacheInfo(hits=0, misses=0, maxsize=4, currsize=0)
    assert cache.get("a", lambda: 7) == 7


def test_the_least_recently_used_is_dropped():
    cache = OnceCache(2)
    for key in "abab":
        cache.get(key, lambda key=key: key)
    cache.get("c", lambda: "c")
    assert cache.info().currsize == 2
    assert cache.get("b", lambda: "made again") == "b"
    assert cache.get("a", lambda: "made again") == "made again"


def test_a_failure_is_raised_and_not_kept():
    cache = OnceCache(2)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.info().currsize == 0
    assert cache.get("a", lambda: 5) == 5


def test_threads_that_ask_at_the_same_time_share_one_making():
    cache, made, results = OnceCache(2), [], []
    entered, go = threading.Event(), threading.Event()

    def make():
        made.append(1)
        entered.set()
        assert go.wait(10)
        return object()

    workers = [threading.Thread(target=lambda: results.append(cache.get("a", make))) for _ in range(4)]
    workers[0].start()
    assert entered.wait(10)
    for worker in workers[1:]:
        worker.start()
    go.set()
    for worker in workers:
        worker.join(10)
    assert len(made) == 1
    assert len(results) == 4
    assert len(set(map(id, results))) == 1


def test_a_value_that_needs_itself_is_an_error_and_not_a_hang():
    cache = OnceCache(2)
    with pytest.raises(CircularError):
        cache.get("a", lambda: cache.get("b", lambda: cache.get("a", int)))
    assert cache.get("a", lambda: cache.get("b", lambda: 3)) == 3
    assert cache.get("a", int) == 3


def test_threads_that_wait_for_a_failing_making_get_its_error():
    cache, entered, go, caught = OnceCache(2), threading.Event(), threading.Event(), []

    def make():
        entered.set()
        assert go.wait(10)
        raise KeyError("no")

    def ask():
        try:
            cache.get("a", make)
        except KeyError as error:
            caught.append(error)

    workers = [threading.Thread(target=ask) for _ in range(3)]
    workers[0].start()
    assert entered.wait(10)
    for worker in workers[1:]:
        worker.start()
    while cache.info().hits < 2:
        pass
    go.set()
    for worker in workers:
        worker.join(10)
    assert len(caught) == 3
