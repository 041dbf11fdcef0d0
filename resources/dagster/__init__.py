"""Strandline's side of Dagster: partitions, IO managers and runs."""
