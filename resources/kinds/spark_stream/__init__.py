"""Streams that Spark's own engine runs (``engine: structured_streaming``)."""
