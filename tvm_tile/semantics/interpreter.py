"""The reference interpreter: what a program means, on NumPy arrays, in place.

:class:`~tvm_tile.semantics.machine.Machine` runs the statements. Everything that the language leaves open
(the order of parallel instances, the grouping of tree reductions) is chosen by
:class:`~tvm_tile.semantics.orders.Orders`, so that a program's independence of it can be tried out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_tile.ir.regions import Program
from tvm_tile.semantics.arguments import bind_arguments
from tvm_tile.semantics.legality import verify_meaning
from tvm_tile.semantics.machine import Machine
from tvm_tile.semantics.orders import Orders
from tvm_tile.semantics.report import Report
from tvm_tile.semantics.shadow import Monitor

__all__ = ["interpret"]


def interpret(
    program: Program,
    *arrays: Any,
    order: str | int = "source",
    reduction: str | int = "source",
    debug: bool = False,
) -> Report | None:
    """Run a program's meaning on arrays, in place.

    Parameters
    ----------
    program
        The program.
    *arrays
        One argument a parameter: NumPy arrays (or objects that ``numpy.from_dlpack`` views without a copy)
        of the parameter's shape and dtype, with any strides; Python or NumPy numbers for run-time
        scalars.
    order
        Order of parallel instances: ``"source"``, ``"reverse"`` or a seed.
    reduction
        Grouping, and where admitted order, of tree reductions (regions, ``sum`` and ``prod`` of tiles,
        matrix products): ``"source"`` is the left fold of the contributions, ``"reverse"`` and seeds are
        other admitted ones.
    debug
        Check every access: promised bounds, initialized reads and noninterference of parallel instances.

    Returns
    -------
    Report or None
        With ``debug``, the domain that was checked.

    Raises
    ------
    ArgumentError
        Not a program; arguments that do not fit, or overlap without being the same array; an unknown
        ``order`` or ``reduction``.
    IllegalError
        The program has faults; with ``debug``, an access that breaks an
        obligation. Arrays then hold what was stored before.
    """
    verify_meaning(program)
    orders = Orders(order, reduction)
    # Overflow, division by zero and invalid operations have defined results in the language.
    with np.errstate(all="ignore"):
        arguments = bind_arguments(program, arrays)
        monitor = Monitor(program, arguments.aliases) if debug else None
        Machine(arguments, orders, monitor).block(program.body)
    if monitor is None:
        return None
    return Report(
        program.name,
        monitor.entries,
        monitor.instances,
        monitor.accesses,
        monitor.elements,
        monitor.opaque_calls,
        orders.order,
        orders.reduction,
        arguments.aliases,
    )
