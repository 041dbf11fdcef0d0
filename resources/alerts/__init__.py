"""Query logs, ledgers and Dagster for alerts (``partitions.alerts`` decides what is one)."""
