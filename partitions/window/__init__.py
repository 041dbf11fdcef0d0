"""The window kind: windows of time x units, with a high watermark for each (docs/reference/windows.md)."""
