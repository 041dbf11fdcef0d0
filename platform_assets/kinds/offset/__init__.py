"""Offset watermarks: the position up to which the log of a table was read."""
