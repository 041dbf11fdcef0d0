"""The window kind: windows of time x units, each with its own high watermark.

See docs/reference/windows.md.
"""
