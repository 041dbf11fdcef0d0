"""Loads in terms of rows, for every table format: latest row of a key, versions, replacement, counts."""
