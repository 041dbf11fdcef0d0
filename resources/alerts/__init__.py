"""Asks logs, ledgers and Dagster for what alerts are made of (``partitions.alerts`` decides what is one)."""
