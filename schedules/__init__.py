"""Schedule primitives, one module a refinement rule.

Empty so far: programs are lowered as they are written.
"""
