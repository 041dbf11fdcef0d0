"""The way behind a page that is asked for by a number: to the next, or by a look that proves an end or tells how the API counts.

A look is needed if the API may ignore the number, if a flag ends the pages behind a full first one, or if a page is short and the next offset
may pass over records.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from partitions.api.page_steps import End, Look, Move, Step, are_alike, end_by_flag
from partitions.api.paging import Offsets, PageNumbers, PageSeen, PagingError, Position
from partitions.api.record_count import RecordCount

_FAR = 1000
"""Pages behind the one that is asked for: an API that answers with the same records there takes no notice of what it is asked."""


class Visited(NamedTuple):
    """A page whose records count.

    Attributes:
        position: that it was asked for by.
        number: of the page, from 1.
        page: what it says.
        before: what the page before it said.
    """

    position: Position
    number: int
    page: PageSeen
    before: PageSeen


class CountedPages:
    """What is known of how an API counts, on the way through the pages of one request."""

    def __init__(self, paging: PageNumbers | Offsets, records: RecordCount) -> None:
        """Know nothing yet; ``records`` are those of the request."""
        self._paging, self._records = paging, records
        self._takes_notice = False
        self._moves_by: Literal["size", "count"] | None = None

    def step_behind(self, visited: Visited) -> Step:
        """Return what is asked for behind a page.

        Raises:
            PagingError: a flag is none, or says that there are more behind a page without a record.
        """
        paging, page = self._paging, visited.page
        flag = paging.flag(page)
        if self._records.is_complete and not flag:
            return End()
        following = self._after(visited)
        if following is None:
            if flag is False and visited.number == 1 and page.count and not paging.is_short(page):
                behind = self._at_distance(1, visited)
                return Look(behind, lambda seen: end_by_flag(page, seen, "a page behind it"))
            return End()
        if are_alike(page, visited.before) and not self._records.is_total_known and not self._takes_notice:
            far = self._at_distance(_FAR, visited)
            return Look(far, lambda seen: self._step_behind_far(following, visited, seen))
        if isinstance(paging, Offsets) and self._is_in_doubt(paging, page) and flag is None:
            near = paging.at(visited.position, page.count)
            return Look(near, lambda seen: self._step_behind_near(following, near, page, seen))
        return Move(following)

    def _after(self, visited: Visited) -> Position | None:
        paging, page = self._paging, visited.page
        following = paging.after(visited.position, page)
        if following is not None and isinstance(paging, Offsets) and self._moves_by == "count" and page.count:
            return paging.at(visited.position, page.count)
        return following

    def _at_distance(self, pages: int, visited: Visited) -> Position:
        paging = self._paging
        by_records = isinstance(paging, Offsets)
        return paging.at(
            visited.position, pages * (paging.size or visited.page.count) if by_records else pages
        )

    def _is_in_doubt(self, paging: Offsets, page: PageSeen) -> bool:
        """Whether the API may have left out records from this page that the next offset passes over: it gives fewer than it is asked for."""
        return page.count > 0 and paging.is_short(page) and self._moves_by is None

    def _step_behind_near(self, following: Position, near: Position, page: PageSeen, seen: PageSeen) -> Step:
        """Go on behind a short page, by what stands behind its last record: nothing, or what the API filtered after it had paged."""
        if not seen.count or seen.records & page.records:
            self._moves_by = "size" if seen.count else None
            return Move(following)
        return Look(following, lambda behind: self._step_behind_short(following, near, seen, behind))

    def _step_behind_short(
        self, following: Position, near: Position, seen: PageSeen, behind: PageSeen
    ) -> Step:
        """The API gives smaller pages than it is asked for if records stand between a page and the next: then the offset moves by those that came."""
        self._moves_by = "size" if seen.records <= behind.records else "count"
        return Move(following if self._moves_by == "size" else near)

    def _step_behind_far(self, following: Position, visited: Visited, seen: PageSeen) -> Step:
        """Go on if the API takes notice of the number."""
        if are_alike(seen, visited.page):
            raise PagingError(
                f"other records than on page {visited.number - 1}",
                "the same, also far behind it: the API seems to ignore what the page is asked for by",
                "correct source.paging; or name the number of all records (total) or ends: short, if the API repeats its last page",
            )
        self._takes_notice = True
        return Move(following)
