"""Timing calls: what is run, what comes out, what is refused."""

import dataclasses

import numpy as np
import pytest

from tvm_tile.bridges.runtime.timing import Timing, measure
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError


def test_a_timing_has_the_figures_of_its_runs(copy_program):
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    timing = build(copy_program((4, 3))).bench(a, b, repeat=7)
    assert len(timing.runs) == 7
    assert timing.minimum == min(timing.runs) > 0
    assert timing.median == np.median(timing.runs)
    lower, upper = np.quantile(timing.runs, [0.25, 0.75])
    assert timing.spread == pytest.approx((upper - lower) / 2)
    assert timing.calls >= 1
    np.testing.assert_array_equal(a, b)
    with pytest.raises(dataclasses.FrozenInstanceError):
        timing.median = 0.0


def test_it_runs_in_place_as_often_as_it_says():
    calls = []
    timing = measure(calls.append, [1], 3)
    # One call by itself, then the warm-up, then the runs.
    assert len(calls) >= 1 + 3 * timing.calls
    assert set(calls) == {1}


def test_a_slow_call_is_one_run():
    import time

    timing = measure(time.sleep, [0.002], 2)
    assert timing.calls == 1
    assert all(run >= 0.002 for run in timing.runs)


def test_one_run_has_no_spread():
    timing = measure(abs, [1], 1)
    assert timing.spread == 0.0
    assert timing.median == timing.minimum == timing.runs[0]


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0125, "12.5 ms"), (3.14159e-6, "3.14 µs"), (4e-9, "4 ns")]
)
def test_it_reads_in_a_unit_that_fits(seconds, text):
    assert (
        str(Timing(seconds, seconds, seconds, (seconds,) * 3, 1))
        == f"{text} ± {text} (minimum {text}, 3 runs)"
    )
    assert "3 runs of 5 calls" in str(Timing(seconds, seconds, seconds, (seconds,) * 3, 5))


@pytest.mark.parametrize("repeat", [0, -1, 1.0, "3", None, True])
def test_a_number_of_runs_that_is_none_is_refused(copy_program, repeat):
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    with pytest.raises(ArgumentError, match="repeat must be a positive integer"):
        build(copy_program((4, 3))).bench(a, b, repeat=repeat)
    assert not b.any()


def test_arguments_that_do_not_fit_are_named(copy_program):
    with pytest.raises(ArgumentError, match="parameter B expects shape"):
        build(copy_program((4, 3))).bench(np.ones((4, 3), "float32"), np.zeros((4, 4), "float32"))


def test_arguments_by_name_are_refused_as_in_a_call(copy_program):
    exe = build(copy_program((4, 3)))
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    assert exe.bench(a, b, repeat=1).runs
    with pytest.raises(ArgumentError, match="takes arguments by position; got 'number' by name"):
        exe.bench(a, b, number=3)
