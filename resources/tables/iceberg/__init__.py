"""Iceberg tables: each row names the commit that wrote it (docs/reference/iceberg.md).

A commit is valid only on the snapshot that it was planned on.
"""
