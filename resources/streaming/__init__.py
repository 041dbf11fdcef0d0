"""Spark's own streaming engine: the query of a declared stream, its runs, and what they leave (docs/streams-on-spark.md)."""
