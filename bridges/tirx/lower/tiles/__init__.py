"""Operations on whole tiles: products, reductions, scans, parts, and joins of patches.

Open :mod:`~tvm_tile.bridges.tirx.lower.tiles.reduction` first. Loops over the elements of one tile are in
:mod:`tvm_tile.bridges.tirx.lower.loops`.
"""
