"""The Dagster definitions of stream watermarks."""
