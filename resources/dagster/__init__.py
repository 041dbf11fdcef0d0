"""What Strandline asks of Dagster, and tells it: partitions, IO managers, runs."""
