"""Streams: one event-time watermark per split, and what is built on their minimum (docs/reference/streams.md)."""
