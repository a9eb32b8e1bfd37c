"""``python -m tvm_tile``: the command line."""

import sys

from tvm_tile.cli import main

sys.exit(main())
