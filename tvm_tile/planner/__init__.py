"""Choosing schedules: candidate space, constraints, cost models.

Empty so far: every program takes the reference mapping.
"""
