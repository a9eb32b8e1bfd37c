"""The number of threads, in processes of their own: a pool's size is fixed once it has started."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tvm_tile.bridges.runtime import threads
from tvm_tile.errors import ArgumentError

PRELUDE = """
import os, sys, threading, logging
logging.basicConfig(format="%(name)s %(message)s")
from tvm_tile.bridges.runtime.threads import *

def parallel_function():
    # Handwritten: 840 parallel instances, each of which notes the thread that it ran on.
    import tvm
    from tvm import tirx
    A = tirx.decl_buffer((840,), "int64", "A")
    i = tirx.Var("i", "int32")
    store = tirx.BufferStore(A, tirx.call_extern("int64", "pthread_self"), [i])
    body = tirx.For(i, 0, 840, tirx.ForKind.PARALLEL, store)
    func = tirx.PrimFunc([A], body, attrs=tvm.ir.make_node("ir.DictAttrs", global_symbol="f"))
    return tvm.compile(func, {"kind": "llvm"})["f"]

def used(f, apply=True):
    import numpy as np
    if apply:
        apply_to_calling_thread()
    a = np.zeros(840, "int64")
    f(a)
    return len(set(a.tolist()))
"""


def run(code, **environment):
    kept = {k: v for k, v in os.environ.items() if k not in (threads.ENVIRONMENT_VARIABLE, "TVM_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        # Idle workers of TVM spin for long before they sleep, and end only after that.
        env=kept | {"TVM_THREAD_POOL_SPIN_COUNT": "1000"} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_default_is_the_number_of_usable_cores_and_asking_does_not_import_tvm():
    out, _ = run(
        "print(get_num_threads()); set_num_threads(3); print(get_num_threads(), 'tvm' in sys.modules)"
    )
    assert out == [str(threads.usable_cores()), "3", "False"]


@pytest.fixture(scope="module")
def observed():
    """What one process saw that set the number again and again; starting one takes seconds."""
    out, err = run("""
        import json
        from tvm_tile.errors import ArgumentError
        f = parallel_function()
        seen = {}
        before = sorted(os.sched_getaffinity(0)), dict(os.environ)
        def in_thread(task):
            box = []
            worker = threading.Thread(target=lambda: box.append(task()))
            worker.start(); worker.join()
            return box[0]
        set_num_threads(5)
        seen["before the start"] = used(f)
        seen["after the start"], seen["in another thread"] = [], []
        for n in (1, 2):
            set_num_threads(n)
            seen["after the start"].append(used(f))
            seen["in another thread"].append(in_thread(lambda: used(f)))
        in_thread(lambda: set_num_threads(4))
        seen["set in another thread"] = used(f)
        set_num_threads(5)
        seen["back"] = used(f)
        try:
            set_num_threads(6)
        except ArgumentError as error:
            seen["refusal"] = str(error)
        seen["after refusal"] = get_num_threads()
        seen["untouched"] = (sorted(os.sched_getaffinity(0)), dict(os.environ)) == before
        print(json.dumps(seen))
    """)
    return json.loads(" ".join(out)) | {"stderr": err}


def test_number_counts_before_and_after_the_start_and_in_other_threads(observed):
    assert observed["before the start"] == 5
    assert observed["after the start"] == [1, 2]
    assert observed["in another thread"] == [1, 2]
    assert observed["stderr"].strip() == ""


def test_setting_in_another_thread_counts_in_one_that_has_run_already(observed):
    assert observed["set in another thread"] == 4


def test_more_than_a_started_pool_holds_is_refused_with_the_limit(observed):
    assert observed["back"] == 5
    assert "6 threads are more than the 5 of" in observed["refusal"]
    assert "TVM_TILE_NUM_THREADS=6" in observed["refusal"]
    assert observed["after refusal"] == 5


def test_affinity_and_environment_of_the_process_stay(observed):
    assert observed["untouched"]


def test_environment_variable_gives_the_default():
    out, _ = run(
        "print(get_num_threads()); set_num_threads(2); print(get_num_threads())", TVM_TILE_NUM_THREADS="7"
    )
    assert out == ["7", "2"]


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "1025", "1000000000", "²"])
def test_bad_environment_variable_is_named(text):
    out, _ = run(
        """
        from tvm_tile.errors import ArgumentError
        try:
            get_num_threads()
        except ArgumentError as error:
            print("TVM_TILE_NUM_THREADS" in str(error) and os.environ["TVM_TILE_NUM_THREADS"] in str(error))
        """,
        TVM_TILE_NUM_THREADS=text,
    )
    assert out == ["True"]


def test_pool_that_someone_else_started_smaller_is_reported():
    out, err = run(
        """
        f = parallel_function()
        import tvm_ffi
        tvm_ffi.get_global_func("runtime.NumThreads")()
        set_num_threads(4)
        print(used(f), used(f))
        """,
        TVM_NUM_THREADS="2",
    )
    assert out == ["2", "2"]
    assert err.count("was started elsewhere with 2 threads") == 1
    assert "TVM_NUM_THREADS=4" in err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_of_a_process_with_a_pool_runs_on_one_thread_instead_of_hanging():
    out, err = run(
        """
        f = parallel_function()
        print(used(f), flush=True)
        child = os.fork()
        if not child:
            print(used(f), used(f), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(used(f))
        """,
        TVM_TILE_NUM_THREADS="3",
    )
    assert out == ["3", "1", "1", "3"]
    assert err.count("'spawn'") == 1


@pytest.mark.parametrize("bad", [0, -2, 1.0, "2", None, True, False, 1025, 10**6, 10**30])
def test_a_bad_number_is_refused_and_changes_nothing(bad):
    before = threads.get_num_threads()
    with pytest.raises(ArgumentError, match=f"not {bad!r}"):
        threads.set_num_threads(bad)
    assert threads.get_num_threads() == before


def test_an_environment_variable_of_thousands_of_digits_is_refused(monkeypatch):
    """Symptom: Python's own ValueError about the length of the number came out."""
    monkeypatch.setenv(threads.ENVIRONMENT_VARIABLE, "9" * 5000)
    with pytest.raises(ArgumentError, match="must be an integer from 1 to 1024"):
        threads._from_environment()
    monkeypatch.setenv(threads.ENVIRONMENT_VARIABLE, " 1024 ")
    assert threads._from_environment() == 1024


def test_numpy_integers_are_integers():
    import numpy as np

    before = threads.get_num_threads()
    threads.set_num_threads(np.int64(1))
    assert threads.get_num_threads() == 1
    threads.set_num_threads(before)
