"""Execution scopes of each kind of target, by what contains what."""

from __future__ import annotations

__all__ = ["SCOPES", "contains", "scopes_of"]

#: From the outermost to the innermost. A ``thread`` is a lane of any warp of a block.
SCOPES: dict[str, tuple[str, ...]] = {
    "llvm": ("device", "worker", "vector"),
    "cuda": ("device", "cluster", "block", "warpgroup", "warp", "lane"),
    "metal": ("device", "block", "warp", "lane"),
    "opencl": ("device", "block", "warp", "lane"),
}

_THREAD = "thread"
_LANE = "lane"


def scopes_of(kind: str) -> tuple[str, ...]:
    """Every scope that a kind of target has, outermost first."""
    scopes = SCOPES[kind]
    return (*scopes, _THREAD) if _LANE in scopes else scopes


def contains(kind: str, outer: str, inner: str) -> bool:
    """Whether the outer scope of a kind of target is made of the inner one, and is not the same."""
    scopes = SCOPES[kind]
    if outer == _THREAD:
        return False
    if inner == _THREAD:
        return scopes.index(outer) <= scopes.index("block")
    return scopes.index(outer) < scopes.index(inner)
