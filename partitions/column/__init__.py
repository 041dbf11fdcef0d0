"""Column watermarks: the highest value of one or several columns (docs/reference/columns.md)."""
