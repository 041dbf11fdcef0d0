"""Decide which slice of work is due, up to where, and why, from values alone.

Belongs here: definitions, states, plans, orders, codecs.
Does not belong here: I/O, clocks, environment, Spark, Dagster. Only the standard library and pydantic.
"""
