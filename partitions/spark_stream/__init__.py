"""Streams that Spark Structured Streaming runs: what a user declares, which batches ran, and what they counted (docs/reference/streams-on-spark.md)."""
