"""Integer sets and relations, and what is proved about them.

:mod:`~tvm_tile.relations.proof` has the three-valued answer that every decision procedure of the package
gives; open it first. :mod:`~tvm_tile.relations.presburger` asks isl, within a budget of operations.
Nothing here knows programs, and isl is imported by the first question only.
"""
