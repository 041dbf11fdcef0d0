"""Streams: an event-time watermark per split, and their minimum as the global one.

See docs/reference/streams.md.
"""
