"""Column watermarks: rows above the highest value."""
