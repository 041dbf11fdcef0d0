"""Reconcile: ask both sides for sums and checksums of ranges, and compare them.

A side is a contract (:mod:`resources.reconcile.side`) with one implementation for databases and one for
whatever Spark reads. Both write canonical texts (:mod:`resources.reconcile.canonical`). What the answers mean
is :mod:`partitions.reconcile`.
"""
