"""Sources: how a slice of a plan becomes a DataFrame, and nothing beyond the slice (spec 04)."""
