"""The window kind: windows of time x units, with a high watermark for each (spec 03)."""
