"""Read the positions of deleted rows from a bitmap, as Delta and Iceberg store them."""

from __future__ import annotations

from collections.abc import Collection


def roaring_positions(content: bytes) -> Collection[int]:
    """Return the numbers in a Roaring bitmap of 64 bits in the portable format."""
    from pyroaring import BitMap64

    return frozenset(BitMap64.deserialize(content))
