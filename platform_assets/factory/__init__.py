"""The Dagster definitions of a dataflow: assets, checks, jobs, sensors. One module for each concept."""
