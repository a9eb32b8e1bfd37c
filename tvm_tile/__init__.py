"""An execution-first tile language on Apache TVM (the public names are entered once all parts exist)."""
