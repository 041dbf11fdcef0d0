"""Pure thought: which slice of work is due, up to where, and why.

Belongs here: definitions, states, plans, orders, codecs; everything that can be decided from values alone.
Does not belong here: I/O, clocks, environment, Spark, Dagster. Only the standard library and pydantic.
"""
