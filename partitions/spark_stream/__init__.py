"""Streams of Spark Structured Streaming: declaration, batches and progress.

See docs/reference/streams-on-spark.md.
"""
