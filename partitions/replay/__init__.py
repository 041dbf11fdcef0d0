"""Replay: a range of a watermark column that is read again, chunk by chunk. It decides chunks only; it reads and stores nothing."""
