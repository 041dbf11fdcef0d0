"""A soak: minutes of arrivals and disturbances, then a count of every row (docs/explanation/soak.md)."""
