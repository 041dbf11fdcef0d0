"""The Dagster definitions of path watermarks."""
