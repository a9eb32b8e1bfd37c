"""Three-valued answers: proved, disproved with a point, or unknown with a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Proof"]


@dataclass(frozen=True)
class Proof:
    """The answer of a decision procedure. Make one with :meth:`proved`, :meth:`disproved` or :meth:`unknown`.

    There are three answers, so a proof has no truth value: ask :attr:`is_proved`, :attr:`is_disproved` or
    :attr:`is_unknown`.

    Attributes
    ----------
    status
        ``"proved"``, ``"disproved"`` or ``"unknown"``.
    method
        How it was decided, in words.
    cost
        Work that the decision took, in the method's own unit (isl operations, enumerated points); it
        takes no part in comparisons.
    counterexample
        A concrete point that refutes the claim; only where disproved.
    reason
        Why there is no answer (budget, non-affine index, opaque call); only where unknown.
    """

    status: str
    method: str = ""
    cost: int = field(default=0, compare=False)
    counterexample: Any = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in ("proved", "disproved", "unknown"):
            raise ValueError(f"status {self.status!r} is not 'proved', 'disproved' or 'unknown'")
        if (self.counterexample is not None) != (self.status == "disproved"):
            raise ValueError("a counterexample belongs to a disproof, and every disproof has one")
        if bool(self.reason) != (self.status == "unknown"):
            raise ValueError("a reason belongs to an unknown answer, and every unknown has one")

    @classmethod
    def proved(cls, method: str, cost: int = 0) -> Proof:
        """The claim holds."""
        return cls("proved", method=method, cost=cost)

    @classmethod
    def disproved(cls, counterexample: Any, method: str = "", cost: int = 0) -> Proof:
        """The claim fails, at this point."""
        return cls("disproved", method=method, cost=cost, counterexample=counterexample)

    @classmethod
    def unknown(cls, reason: str, method: str = "", cost: int = 0) -> Proof:
        """The claim was not decided, for this reason."""
        return cls("unknown", method=method, cost=cost, reason=reason)

    @property
    def is_proved(self) -> bool:
        """Whether the claim holds."""
        return self.status == "proved"

    @property
    def is_disproved(self) -> bool:
        """Whether the claim fails."""
        return self.status == "disproved"

    @property
    def is_unknown(self) -> bool:
        """Whether the claim was not decided."""
        return self.status == "unknown"

    def __bool__(self) -> bool:
        raise TypeError(
            f"a proof has three answers and no truth value (this one is {self.status}); "
            "ask .is_proved, .is_disproved or .is_unknown"
        )

    def __str__(self) -> str:
        by = f" by {self.method}" if self.method else ""
        if self.is_disproved:
            return f"disproved{by}: {self.counterexample}"
        return f"unknown{by}: {self.reason}" if self.is_unknown else f"proved{by}"
