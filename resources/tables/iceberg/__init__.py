"""Iceberg tables: each row names the commit that wrote it, and a commit is valid only on the snapshot that it was planned on (docs/reference/iceberg.md)."""
