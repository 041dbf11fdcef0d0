"""Canonical texts in SQL, one module per dialect (:mod:`partitions.reconcile.families` defines them)."""
