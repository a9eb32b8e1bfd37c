"""Every operator of the language as a small program with an independent oracle.

The tests run each on every target; the operator table of the README is printed from the same list, so that it
holds nothing that is not tested.
"""

from .elementwise import CONVERSIONS, CREATION, ELEMENTWISE, SHAPES
from .regions import MEMORY, REGIONS
from .tiles import CONTRACTIONS, REDUCTIONS

FAMILIES = {
    "Creation": CREATION,
    "Elementwise": ELEMENTWISE,
    "Conversion": CONVERSIONS,
    "Shape": SHAPES,
    "Contraction": CONTRACTIONS,
    "Reduction and scan": REDUCTIONS,
    "Regions": REGIONS,
    "Memory": MEMORY,
}
OPERATORS = tuple(op for family in FAMILIES.values() for op in family)
