"""A dataflow becomes what Dagster shows and runs: assets, checks, a job, a sensor. One module per Dagster concept."""
