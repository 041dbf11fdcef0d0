"""Listings: the files above a position, and checks that listed files are unchanged.

See docs/explanation/watermarks.md and docs/how-to/s3.md. Belongs here: walks through a local folder or an
object store with the questions that a ``ListingStart`` answers, and the classification of failures. Does
not belong here: what is above (``partitions.path.listing_positions``) and what to do with it.

A listing that fails part-way raises and returns nothing: with a partial list the watermark would pass
files that were never seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.path.listing_positions import ListingStart
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.listing.budget import Budget
from resources.listing.local import check_local, list_local, stat_local
from resources.listing.objects import list_objects
from resources.listing.step import Listing
from resources.listing.unchanged import check_objects, stat_objects

__all__ = [
    "Budget",
    "Listing",
    "check_unchanged",
    "list_above",
    "stat_files",
]


def list_above(
    place: Place,
    position: ListingStart,
    endings: tuple[str, ...],
    *,
    budget: Budget | None = None,
    resume: str | None = None,
) -> Listing:
    """List the files above a position.

    Args:
        place: the source's root.
        position: the committed position; files strictly above it are listed.
        endings: case-sensitive endings of names; any one of them is enough.
        budget: where to stop early; ``None`` lists to the end.
        resume: continues where an incomplete listing of the same place stopped.

    Returns:
        the files of this step. Only all steps together are the listing: the first steps are not the first
        files in pair order, so a watermark must not move over the files of an incomplete listing.

    Raises:
        SourceError: ``source_missing``, ``source_not_folder``, ``source_denied``, ``source_bad_name``,
        ``source_unreadable``, or ``source_unreachable`` and ``source_moved``, which are transient.
    """
    if place.local is not None:
        return list_local(place.local, position, endings, budget=budget, resume=resume)
    return list_objects(place, position, endings, budget=budget, resume=resume)


def stat_files(place: Place, paths: Sequence[str]) -> dict[str, SourceFile]:
    """Return the current state of these files; missing ones are left out.

    Raises:
        SourceError: as for a listing.
    """
    return stat_local(place.local, paths) if place.local is not None else stat_objects(place, paths)


def check_unchanged(place: Place, files: Sequence[SourceFile]) -> None:
    """Compare size and version of files with the listing.

    Raises:
        BadFile: ``file_vanished`` or ``file_changed``, for the first such file in pair order.
        SourceError: as for a listing.
    """
    if place.local is not None:
        check_local(place.local, files)
    else:
        check_objects(place, files)
