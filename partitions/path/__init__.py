"""The path kind: files under a root, and the last committed one as watermark.

See docs/reference/files.md.
"""
