"""Steps through pages that are requested by number: to the next page, or a probe.

A probe proves the end, or shows how the API counts. It is needed if the API may ignore the number, if a
flag ends the pages after a full first one, or if a page is short and the next offset may skip records.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from partitions.api.page_steps import End, NextPage, Probe, Step, are_alike, end_by_flag
from partitions.api.paging import Offsets, PageInfo, PageNumbers, PagingError, Position
from partitions.api.record_count import RecordCount

_FAR_PAGES = 1000
"""How many pages ahead a probe looks: an API that returns the same records there ignores the position."""


class VisitedPage(NamedTuple):
    """A page whose records count.

    Attributes:
        position: by which it was requested.
        number: the page's number, from 1.
        page: its contents.
        before: the contents of the previous page.
    """

    position: Position
    number: int
    page: PageInfo
    before: PageInfo


class CountedPages:
    """How an API counts its pages, as learned from the pages of one request."""

    def __init__(self, paging: PageNumbers | Offsets, records: RecordCount) -> None:
        """Start with nothing learned; ``records`` counts the records of the request."""
        self._paging, self._records = paging, records
        self._uses_position = False
        self._offset_unit: Literal["size", "count"] | None = None

    def step_after(self, visited: VisitedPage) -> Step:
        """Return the step after a page.

        Raises:
            PagingError: a flag is invalid, or announces more pages after a page without records.
        """
        paging, page = self._paging, visited.page
        flag = paging.flag(page)
        if self._records.is_complete and not flag:
            return End()
        next_position = self._next_position(visited)
        if next_position is None:
            if flag is False and visited.number == 1 and page.count and not paging.is_short(page):
                after_short = self._at_distance(1, visited)
                return Probe(after_short, lambda probed: end_by_flag(page, probed, "a page after it"))
            return End()
        if are_alike(page, visited.before) and not self._records.is_total_known and not self._uses_position:
            far_position = self._at_distance(_FAR_PAGES, visited)
            return Probe(
                far_position, lambda probed: self._step_after_far_probe(next_position, visited, probed)
            )
        if isinstance(paging, Offsets) and self._may_skip_records(paging, page) and flag is None:
            near_position = paging.at(visited.position, page.count)
            return Probe(
                near_position,
                lambda probed: self._step_after_near_probe(next_position, near_position, page, probed),
            )
        return NextPage(next_position)

    def _next_position(self, visited: VisitedPage) -> Position | None:
        paging, page = self._paging, visited.page
        next_position = paging.after(visited.position, page)
        if (
            next_position is not None
            and isinstance(paging, Offsets)
            and self._offset_unit == "count"
            and page.count
        ):
            return paging.at(visited.position, page.count)
        return next_position

    def _at_distance(self, pages: int, visited: VisitedPage) -> Position:
        paging = self._paging
        by_records = isinstance(paging, Offsets)
        return paging.at(
            visited.position, pages * (paging.size or visited.page.count) if by_records else pages
        )

    def _may_skip_records(self, paging: Offsets, page: PageInfo) -> bool:
        """Return whether the next offset may skip records: the page is short, and the unit is unknown."""
        return page.count > 0 and paging.is_short(page) and self._offset_unit is None

    def _step_after_near_probe(
        self, next_position: Position, near_position: Position, page: PageInfo, probed: PageInfo
    ) -> Step:
        """Return the step after a probe directly behind the last record of a short page.

        It finds nothing, or records that the API filtered after paging.
        """
        if not probed.count or probed.records & page.records:
            self._offset_unit = "size" if probed.count else None
            return NextPage(next_position)
        return Probe(
            next_position,
            lambda after_short: self._step_after_short_page(
                next_position, near_position, probed, after_short
            ),
        )

    def _step_after_short_page(
        self, next_position: Position, near_position: Position, probed: PageInfo, after_short: PageInfo
    ) -> Step:
        """Return the step after a short page, once it is known what the next offset returns.

        If records lie between the page and the next offset, the API returns smaller pages than requested:
        then the offset advances by the received records.
        """
        self._offset_unit = "size" if probed.records <= after_short.records else "count"
        return NextPage(next_position if self._offset_unit == "size" else near_position)

    def _step_after_far_probe(self, next_position: Position, visited: VisitedPage, probed: PageInfo) -> Step:
        """Return the step after a far probe; raise PagingError if it returned the same records."""
        if are_alike(probed, visited.page):
            raise PagingError(
                f"other records than on page {visited.number - 1}",
                "the same records, even on a page far after it: the API seems to ignore the page parameter",
                "correct source.paging. If the API repeats its last page, name the number of all records (total), or "
                "set ends: short",
            )
        self._uses_position = True
        return NextPage(next_position)
