"""What a walk over pages does behind one: it goes to another, looks at one to prove an end, or ends (docs/reference/apis.md, Pages)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partitions.api.paging import PageSeen, PagingError, Position


class Move(NamedTuple):
    """Ask for a page whose records count.

    Attributes:
        position: of the page.
        is_again: whether it is the same position once more, which may have other records, as that of a scroll.
    """

    position: Position
    is_again: bool = False


class Look(NamedTuple):
    """Ask for a page that is only looked at: its records are others' or nobody's, and it need not be there.

    Attributes:
        position: of the page.
        then: returns what is done once it was seen.
    """

    position: Position
    then: Callable[[PageSeen], Step]


class End(NamedTuple):
    """Ask for no other page."""


Step = Move | Look | End


def end_by_flag(last: PageSeen, seen: PageSeen, what: str) -> End:
    """End where a flag says so.

    Args:
        last: the page with the flag.
        seen: the page behind it.
        what: there is behind the last page, for the error.

    Raises:
        PagingError: there are records behind it.
    """
    if seen.count and not seen.records <= last.records:
        raise PagingError(
            "no more records behind a page that a flag says is the last",
            f"{what} to {seen.count} more" if what.endswith("leads") else f"{what} with {seen.count} more",
            "a flag that is true on the last page is paging.end, one that is true before it is paging.more",
        )
    return End()


def are_alike(page: PageSeen, other: PageSeen) -> bool:
    """Return whether two pages have the same records, and have some."""
    return page.count > 0 and (page.count, page.records) == (other.count, other.records)
