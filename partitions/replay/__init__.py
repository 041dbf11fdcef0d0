"""Replay: cut a range of a watermark column into chunks that are read again.

Nothing here reads or stores data.
"""
