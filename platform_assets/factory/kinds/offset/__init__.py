"""The Dagster definitions of offset watermarks."""
