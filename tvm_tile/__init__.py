"""Execution-first tile language on Apache TVM."""
