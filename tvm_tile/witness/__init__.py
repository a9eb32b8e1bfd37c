"""Witnesses of schedule steps and their checker. Empty so far: programs are lowered as they are written."""
