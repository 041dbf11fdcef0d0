"""The Dagster definitions of window watermarks."""
