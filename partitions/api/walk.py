"""The walk over the pages of one request: to its proved end, each record once, and no loop (docs/source-api.md, Pages).

Belongs here: which page is asked for next, whether the records of one count, and what becomes of an end that is in doubt. An end is in doubt
if a flag says so beside a cursor that leads on, or if an offset moves by more records than came: then one page more is asked for, and looked at only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from partitions.api.paging import (
    AtMost,
    Counted,
    Cursor,
    Incomplete,
    NextLink,
    Offsets,
    PageNumbers,
    PageSeen,
    PagingError,
    Position,
)

_FAR = 1000
"""Pages behind the one that is asked for: an API that answers with the same records there takes no notice of what it is asked."""
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class PageWalk:
    """The way through the pages of one request.

    Attributes:
        position: of the page that is asked for now; None behind the last.
        number: of this page, from 1.
        is_promised: whether the page before leads to it by a cursor, a link or a flag, so that it must be there.
        is_look: whether the page is only looked at, to prove an end: its records are others' or nobody's, and it need not be there.
    """

    def __init__(
        self,
        paging: PageNumbers | Offsets | Cursor | NextLink | None,
        most: int,
        *,
        total: str | None = None,
        max_records: int | None = None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        """Begin at the first page.

        Args:
            paging: None: there is one page.
            most: pages that are asked for at most.
            total: where answers say how many records there are, for errors; None: they do not.
            max_records: that the API gives for one request.
            own: parameters that each request has.
        """
        self._paging, self._most, self._own = paging, most, own
        self._total_at, self._max_records = total, max_records
        self.number, self.is_promised, self.is_look = 1, False, False
        self.position: Position | None = paging.first() if paging else Position()
        self._asked = {self.position.identity(own)}
        self._at = self.position
        self._count = 0
        self._total: int | None = None
        self._last = PageSeen(0)
        self._is_again = self._takes_notice = False
        self._moves_by: Literal["size", "count"] | None = None
        self._looked_at: Callable[[PageSeen], None] = _nothing

    def advance(self, page: PageSeen) -> bool:
        """Go on behind a page; return whether its records count.

        Raises:
            PagingError: the pages do not lead on: they go round, there are too many, or flags and cursors say two things.
            Incomplete: all pages have come, and not all records; :class:`AtMost` as soon as there are as many as a query has at most.
        """
        if self.position is None:
            return False
        if self.is_look:
            self.is_look = False
            self._looked_at(page)
            return False
        self._note_total(page)
        if self._is_again and not self._has_new(page):
            self._refuse_more(page)
            self._end()
            return False
        if self._stands_still(page):
            self._refuse_more(page)
            self._end()
            return False
        before, self._last = self._last, page
        self._count += page.count
        if self._max_records is not None and self._count >= self._max_records:
            raise AtMost(
                f"fewer than {self._max_records} records (max_records) of one request",
                f"{self._count}, so that there may be more",
                "ask for less at a time: by smaller windows, or bounded above (watermark_to_param), so that ranges can be cut",
            )
        self._go_on(before, page)
        return True

    def leads_to(self, page: PageSeen) -> Position | None:
        """Return where a page leads by its cursor or its link, before its records are known; None if that is nowhere, or not to be asked for.

        :meth:`advance` decides: it may find that the page behind is another, or that there is none.
        """
        if self.position is None or self.is_look or self.number >= self._most:
            return None
        if not isinstance(self._paging, Cursor | NextLink):
            return None
        try:
            following = self._paging.after(self.position, page)
        except PagingError:
            return None
        is_new = following is not None and not self._was_asked(following, page)
        return following if is_new else None

    def _go_on(self, before: PageSeen, page: PageSeen) -> None:
        paging, position = self._paging, self._at
        if paging is None:
            self._end()
        elif isinstance(paging, Counted):
            self._count_on(paging, before, page)
        else:
            following = paging.after(position, page)
            if following is not None:
                self._follow(following, page)
            elif (other := paging.leads_to(position, page)) is None or self._was_asked(other, page):
                self._end()
            else:
                self._look(other, lambda seen: self._check_flag(seen, "a cursor that leads"))

    def _follow(self, following: Position, page: PageSeen) -> None:
        """Ask for the page that a cursor or a link leads to. The same one again may have other records, as that of a scroll."""
        if not self._was_asked(following, page):
            self._move(following, page)
        elif self._is_own(following, page):
            self._move(following, page)
            self._is_again = True
        elif self._is_complete:
            self._end()
        else:
            raise PagingError(
                "a page that was not asked for yet",
                f"{following} again, a loop",
                "correct source.paging; or name what tells the last page: the number of all records (total), or a flag (paging.more, paging.end)",
            )

    def _count_on(self, paging: PageNumbers | Offsets, before: PageSeen, page: PageSeen) -> None:
        """Ask for the page behind one by its number."""
        flag = paging.flag(page)
        if self._is_complete and not flag:
            self._end()
            return
        following = self._counted_after(paging, page)
        if following is None:
            if flag is False and self.number == 1 and page.count and not paging.is_short(page):
                behind = self._at_distance(paging, 1, page)
                self._look(behind, lambda seen: self._check_flag(seen, "a page behind it"))
            else:
                self._end()
        elif _are_alike(page, before) and self._total is None and not self._takes_notice:
            far = self._at_distance(paging, _FAR, page)
            self._look(far, lambda seen: self._check_notice(following, page, seen))
        elif isinstance(paging, Offsets) and self._is_in_doubt(paging, page) and flag is None:
            near = paging.at(self._at, page.count)
            self._look(near, lambda seen: self._check_near(following, near, page, seen))
        else:
            self._move(following, page)

    def _counted_after(self, paging: PageNumbers | Offsets, page: PageSeen) -> Position | None:
        following = paging.after(self._at, page)
        if following is not None and isinstance(paging, Offsets) and self._moves_by == "count" and page.count:
            return paging.at(self._at, page.count)
        return following

    def _at_distance(self, paging: PageNumbers | Offsets, pages: int, page: PageSeen) -> Position:
        return paging.at(
            self._at, pages * (paging.size or page.count) if isinstance(paging, Offsets) else pages
        )

    def _is_in_doubt(self, paging: Offsets, page: PageSeen) -> bool:
        """Whether the API may have left out records from this page that the next offset passes over: it gives fewer than it is asked for."""
        return page.count > 0 and paging.is_short(page) and self._moves_by is None

    def _check_near(self, following: Position, near: Position, page: PageSeen, seen: PageSeen) -> None:
        """Go on behind a short page, by what stands behind its last record: nothing, or what the API filtered after it had paged."""
        if not seen.count or seen.records & page.records:
            self._moves_by = "size" if seen.count else None
            self._move(following, page)
            return
        self._look(following, lambda behind: self._check_behind(following, near, page, seen, behind))

    def _check_behind(
        self, following: Position, near: Position, page: PageSeen, seen: PageSeen, behind: PageSeen
    ) -> None:
        """The API gives smaller pages than it is asked for if records stand between a page and the next: then the offset moves by those that came."""
        self._moves_by = "size" if seen.records <= behind.records else "count"
        self._move(following if self._moves_by == "size" else near, page)

    def _check_notice(self, following: Position, page: PageSeen, seen: PageSeen) -> None:
        if _are_alike(seen, page):
            raise PagingError(
                f"other records than on page {self.number - 1}",
                "the same, also far behind it: the API seems to ignore what the page is asked for by",
                "correct source.paging; or name the number of all records (total) or ends: short, if the API repeats its last page",
            )
        self._takes_notice = True
        self._move(following, page)

    def _check_flag(self, seen: PageSeen, what: str) -> None:
        """End where a flag says so, unless there are records behind it."""
        if seen.count and not seen.records <= self._last.records:
            raise PagingError(
                "no more records behind a page that a flag says is the last",
                f"{what} to {seen.count} more"
                if what.endswith("leads")
                else f"{what} with {seen.count} more",
                "a flag that is true on the last page is paging.end, one that is true before it is paging.more",
            )
        self._end()

    def _look(self, position: Position, then: Callable[[PageSeen], None]) -> None:
        """Ask for a page to look at."""
        self.position, self.is_look, self.is_promised, self._looked_at = position, True, False, then

    def _move(self, position: Position, page: PageSeen) -> None:
        """Ask for the page behind one."""
        if self.number >= self._most:
            raise PagingError(
                f"at most {self._most} pages (max_pages)", "more", "raise max_pages, or correct source.paging"
            )
        self._asked.add(position.identity(self._own))
        if page.address is not None:
            self._asked.add(Position({}, page.address).identity(self._own))
        self.number += 1
        self.is_promised = self._paging is not None and self._paging.promises(page)
        self.position = self._at = position
        self._is_again = False

    def _was_asked(self, position: Position, page: PageSeen) -> bool:
        return position.identity(self._own) in self._asked or self._is_own(position, page)

    def _is_own(self, position: Position, page: PageSeen) -> bool:
        """Whether a page leads to itself."""
        own = {self._at.identity(self._own)}
        if page.address is not None:
            own.add(Position({}, page.address).identity(self._own))
        return position.identity(self._own) in own

    def _stands_still(self, page: PageSeen) -> bool:
        """Whether a page that leads to itself has the records of the one before: what its cursor names is that one again."""
        paging = self._paging
        if not isinstance(paging, Cursor | NextLink) or not _are_alike(page, self._last):
            return False
        if self._total is not None and self._count + page.count <= self._total:
            return False
        following = paging.leads_to(self._at, page)
        return following is not None and self._is_own(following, page)

    def _has_new(self, page: PageSeen) -> bool:
        """Whether the same position has other records than before.

        Raises:
            PagingError: some of them.
        """
        new = page.records - self._last.records
        if new and new != page.records:
            raise PagingError(
                "the same records at the same position, or others",
                "some of them again: the source seems to have changed while it was read",
                "run again, or bound what is read by watermark_to_param",
            )
        return bool(new)

    def _refuse_more(self, page: PageSeen) -> None:
        if self._paging is not None and self._paging.flag(page):
            raise PagingError(
                "a page that was not asked for yet, since there are more", f"{self._at} again, a loop"
            )

    @property
    def _is_complete(self) -> bool:
        """Whether as many records have come as there are."""
        return self._total is not None and self._count >= self._total

    def _note_total(self, page: PageSeen) -> None:
        if self._total_at is None or page.total is None:
            return
        self._total = max(self._total or 0, _whole(page.total, self._total_at))

    def _end(self) -> None:
        self.position = None
        if self._total_at is None:
            return
        if self._total is None:
            raise Incomplete(
                f"the number of all records at {self._total_at} (total)",
                "none on any page",
                "correct source.total",
            )
        if self._count < self._total:
            raise Incomplete(
                f"{self._total} records, as {self._total_at} (total) says",
                f"{self._count} on {self.number} page{'s' if self.number > 1 else ''}",
                "correct source.paging (its size, if it has one) so that all pages are read; if records came or went while they were read, run again; if"
                " the API counts others, too, leave source.total out",
            )


def _are_alike(page: PageSeen, other: PageSeen) -> bool:
    """Whether two pages have the same records, and have some."""
    return page.count > 0 and (page.count, page.records) == (other.count, other.records)


def _whole(value: Any, path: str) -> int:
    """A number of records."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise PagingError(f"a whole number at {path} (total)", repr(value)[:100], "correct source.total")


def _nothing(_: PageSeen) -> None:
    """Before anything is looked at."""
