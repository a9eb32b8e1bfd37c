"""Every kernel of the library with arguments and oracle: what is tested on every target.

Tables of what the library holds are printed from the same list.
"""

from .cases_data import CASES as DATA
from .cases_linear import CASES as LINEAR

CASES = (*LINEAR, *DATA)
