"""``tvm-tile demo``: handwritten digits, classified by a nearest-neighbour tile program."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_tile.errors import UnsupportedError

__all__ = ["add_parser", "classify_digits", "vote"]

NEIGHBOURS = 3
TEST_SIZE = 450
Array = np.ndarray[Any, Any]


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "demo",
        help="classify handwritten digits with a tile program",
        description="Classify the digits that ship with scikit-learn and compare with NumPy.",
    )
    parser.add_argument(
        "--code", action="store_true", help="print all of the generated code, not its first lines"
    )
    parser.set_defaults(run=run)


def load_digits() -> tuple[Array, Array, Array, Array]:
    """A fixed split of the 1797 digits of 8 × 8 grey values: points, their labels, queries, their labels."""
    try:
        from sklearn.datasets import load_digits as digits
    except ImportError as error:
        raise UnsupportedError(
            "the demo needs scikit-learn, which ships the digits", suggestion='pip install "tvm-tile[demo]"'
        ) from error
    data, labels = digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(data))
    data, labels = data[order].astype(np.float32), labels[order]
    return data[TEST_SIZE:], labels[TEST_SIZE:], data[:TEST_SIZE], labels[:TEST_SIZE]


def vote(neighbour_labels: Array) -> Array:
    """The most frequent label of each row; of several, that of the nearest neighbour among them."""
    counts = (neighbour_labels[:, :, None] == neighbour_labels[:, None, :]).sum(axis=2)
    winner = np.argmax(counts, axis=1)
    return np.take_along_axis(neighbour_labels, winner[:, None], axis=1)[:, 0]


def numpy_neighbours(queries: Array, points: Array, k: int) -> Array:
    """Indices of the nearest points the way a NumPy user writes it: one matrix product, one sort."""
    squared = (queries**2).sum(1)[:, None] - 2 * queries @ points.T + (points**2).sum(1)[None, :]
    return np.argsort(squared, axis=1, kind="stable")[:, :k]


def best_time(call: Callable[[], Any], repeat: int = 7) -> float:
    """Shortest wall time of a call in seconds, the first call left out."""
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def classify_digits() -> dict[str, Any]:
    """Run the demo's computation.

    Returns
    -------
    dict
        ``accuracy`` (fraction right), ``agreement`` (fraction of labels equal to NumPy's), ``seconds`` and
        ``numpy_seconds`` (best of seven), ``program`` and ``executable``.
    """
    from tvm_tile.build import build
    from tvm_tile.contrib import kernels

    points, point_labels, queries, query_labels = load_digits()
    distances = np.zeros((len(queries), NEIGHBOURS), np.float32)
    indices = np.zeros((len(queries), NEIGHBOURS), np.int64)
    program = kernels.knn.trace(queries, points, distances, indices)
    executable = build(program, "llvm")
    # NumPy first: our worker threads spin for a while after a call, and would take its cores.
    numpy_seconds = best_time(lambda: numpy_neighbours(queries, points, NEIGHBOURS))
    seconds = best_time(lambda: executable(queries, points, distances, indices))
    labels = vote(point_labels[indices])
    numpy_labels = vote(point_labels[numpy_neighbours(queries, points, NEIGHBOURS)])
    return {
        "accuracy": float((labels == query_labels).mean()),
        "agreement": float((labels == numpy_labels).mean()),
        "seconds": seconds,
        "numpy_seconds": numpy_seconds,
        "queries": queries,
        "labels": labels,
        "program": program,
        "executable": executable,
    }


def draw(digit: Array) -> str:
    """A digit as text, one character a pixel."""
    return "\n".join(
        "".join(" .:-=+*#%@"[min(9, int(v * 10 / 17))] * 2 for v in row) for row in digit.reshape(8, 8)
    )


def run(options: argparse.Namespace) -> int:
    """Print the program, its generated code and the results; 1 if the labels are not NumPy's."""
    from rich.columns import Columns
    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax

    console = Console()
    result = classify_digits()
    executable = result["executable"]
    console.rule("the tile program, specialized for these arrays")
    console.print(str(result["program"]), markup=False, highlight=False)
    console.rule("its TIRx, as TVM sees it (the parallel loop, allocations left out)")
    script = executable.mod.script().splitlines()
    if not options.code:
        start = next((n for n, line in enumerate(script) if "T.parallel" in line), 0)
        script = [line for line in script[start:] if "T.alloc_buffer" not in line][:30]
    console.print(Syntax(textwrap.dedent("\n".join(script)), "python", background_color="default"))
    console.rule("its code for this CPU (first lines of a loop body)")
    code = executable.source("asm").splitlines()
    if not options.code:
        start = next((n for n, line in enumerate(code) if "fmadd" in line or "fmla" in line), 0)
        code = code[max(0, start - 6) : start + 18]
    console.print("\n".join(code), markup=False, highlight=False)
    console.rule("some queries and their labels")
    panels = [
        Panel(draw(digit), title=str(label), expand=False)
        for digit, label in zip(result["queries"][:4], result["labels"][:4], strict=True)
    ]
    console.print(Columns(panels))
    ratio = result["numpy_seconds"] / result["seconds"]
    console.print(
        f"accuracy   {result['accuracy']:.4f} on {TEST_SIZE} digits, {NEIGHBOURS} nearest neighbours"
    )
    console.print(f"agreement  {result['agreement']:.4f} of the labels equal NumPy's")
    console.print(
        f"time       {result['seconds'] * 1e3:.2f} ms; NumPy {result['numpy_seconds'] * 1e3:.2f} ms "
        f"in the same run ({ratio:.2f} times ours)"
    )
    if result["agreement"] != 1.0:
        console.print("the labels differ from NumPy's", style="red")
        return 1
    return 0
