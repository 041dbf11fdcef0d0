"""Offset watermarks over tables of the lake, bound to their source, table and log."""
