"""Streams of Spark Structured Streaming: declaration, batches and progress (docs/streams-on-spark.md)."""
