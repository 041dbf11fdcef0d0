"""The Dagster definitions of column watermarks."""
