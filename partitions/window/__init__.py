"""The window kind: windows of time x units, each with its own high watermark (docs/reference/windows.md)."""
