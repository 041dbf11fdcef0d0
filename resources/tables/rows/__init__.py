"""What becomes of rows in every table format: one row a key, versions, replacement, counts."""
