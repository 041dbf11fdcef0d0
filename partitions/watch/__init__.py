"""Decide which dataflow ``strandline watch`` runs when, and what it says (docs/how-to/watch.md).

Values and functions of values: no clock, no thread.
"""
