"""The path kind: immutable files under a root, and the last committed one as the watermark (docs/reference/files.md)."""
