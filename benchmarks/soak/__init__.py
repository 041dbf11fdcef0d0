"""Run minutes of arrivals and disturbances, then count every row: see docs/explanation/soak.md."""
