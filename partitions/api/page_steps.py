"""The steps of a walk over pages: go to the next page, probe one to prove the end, or stop.

See docs/reference/apis.md, Pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partitions.api.paging import PageInfo, PagingError, Position


class NextPage(NamedTuple):
    """Request a page whose records count.

    Attributes:
        position: the page's position.
        is_repeat: whether the position is the same as before, which may return other records, as a scroll
        does.
    """

    position: Position
    is_repeat: bool = False


class Probe(NamedTuple):
    """Request a page only to inspect it: its records do not count, and it need not exist.

    Attributes:
        position: the page's position.
        decide: returns the next step, given the page.
    """

    position: Position
    decide: Callable[[PageInfo], Step]


class End(NamedTuple):
    """Request no further page."""


Step = NextPage | Probe | End


def end_by_flag(last_page: PageInfo, probed: PageInfo, lead: str) -> End:
    """Return the end that a flag announced; raise PagingError if more records follow.

    Args:
        last_page: the page with the flag.
        probed: the page after it.
        lead: what leads to the page after it, for the error.
    """
    if probed.count and not probed.records <= last_page.records:
        raise PagingError(
            "no more records after the page that a flag marks as the last",
            f"{lead} to {probed.count} more"
            if lead.endswith("leads")
            else f"{lead} with {probed.count} more",
            "use paging.end for a flag that is true on the last page, and paging.more for one that is true before "
            "it",
        )
    return End()


def are_alike(page: PageInfo, other_page: PageInfo) -> bool:
    """Return whether two pages have records, and the same ones."""
    return page.count > 0 and (page.count, page.records) == (other_page.count, other_page.records)
