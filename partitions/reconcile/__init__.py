"""Reconcile: compare what a source has with what a table has (docs/explanation/adr/0047).

Pure thought: ranges, which columns can be compared, and what sums and checksums of both sides mean. Asking
a side is :mod:`resources.reconcile`.
"""
