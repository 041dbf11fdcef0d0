"""Column watermarks: rows above the highest value that was read."""
