"""Streams that Spark Structured Streaming runs: what a user declares, which batches ran, and what they counted (docs/streams-on-spark.md)."""
