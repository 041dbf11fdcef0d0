"""Loaded files that are gone at the source, whose rows an operator wants out of the table.

Their rows go in the commits that load the files around them, so a file that came back under another name
takes the place of the old one in one commit. See docs/reference/state.md, rewind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from partitions.path.definition import PathWatermark
from partitions.path.order import pair_order
from partitions.path.slices import PathSlice, SliceWhy
from partitions.sentinels import Watermark

GoneFiles = Literal["delete", "keep"]
"""What becomes of the rows of files that are gone: the loads delete them, or they stay."""


def with_gone_files(
    slices: Iterable[PathSlice],
    gone_paths: Iterable[str],
    definition: PathWatermark,
    state: Watermark,
    why: SliceWhy = "run",
) -> Iterator[PathSlice]:
    """Yield slices that also delete the rows of gone files: each in the first slice that ends above it.

    The last slice takes those above all. Without a slice there is one that loads nothing.

    Args:
        slices: replace the rows of their files.
        gone_paths: paths of the gone files.
        definition: the user's definition.
        state: the watermark, if no slice moves it.
        why: the reason of the slice that loads nothing.
    """
    remaining, planned = sorted(gone_paths, key=pair_order), list(slices)
    if not planned and remaining:
        planned = [PathSlice((), state, state, definition, why=why, replaces=True)]
    for position, slice_ in enumerate(planned):
        final = position == len(planned) - 1
        count = len(remaining) if final else _count_up_to(remaining, slice_.upper["path"])
        own, remaining = tuple(remaining[:count]), remaining[count:]
        yield replace(slice_, gone_paths=own, replaces=True) if own else slice_


def _count_up_to(paths: Sequence[str], last: str) -> int:
    """Return how many of the sorted paths are not above the last file of a slice."""
    return sum(pair_order(path) <= pair_order(last) for path in paths)
