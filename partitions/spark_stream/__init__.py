"""Streams of Spark Structured Streaming: declaration, batches and progress (docs/reference/streams-on-spark.md)."""
