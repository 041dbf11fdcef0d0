"""Column watermarks: the highest value of one or several columns (docs/guide-columns.md)."""
