"""The stored list of a column slice's ranges, which its intent names."""

from __future__ import annotations

from resources.watermarks.lists import ListKind

COLUMN_RANGES = ListKind("column_ranges", 1, ("column", "bounds", "lower_inclusive", "upper_inclusive"))
"""One row per column; the bounds are sentinel JSON of ``{"lower": value, "upper": value}``. The head has the source's version, whether rows
without a value are read, and where the read is cut into parts. That of a repair also has the keys or ranges that it reads instead."""
