"""Memory spaces of each kind of target, for explicit memory."""

from __future__ import annotations

__all__ = ["MEMORIES"]

#: From the one nearest to an instance to the one that all can reach.
MEMORIES: dict[str, tuple[str, ...]] = {
    "llvm": ("local", "shared", "global"),
    "cuda": ("local", "shared", "global"),
    "metal": ("local", "shared", "global"),
    "opencl": ("local", "shared", "global"),
}
