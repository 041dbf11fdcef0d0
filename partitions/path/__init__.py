"""The path kind: files under a root; the watermark is the last committed one, or one for each folder.

See docs/reference/files.md.
"""
