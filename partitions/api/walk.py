"""The walk over the pages of one request: to its proved end, each record once, and no loop (docs/reference/apis.md, Pages).

Belongs here: which page is asked for next, and whether the records of one count. The way behind a page that is asked for by a number is
:mod:`partitions.api.counted_pages`. An end is in doubt if a flag says so beside a cursor that leads on, or if an offset moves by more records than
came: then one page more is asked for, and looked at only.
"""

from __future__ import annotations

from partitions.api.counted_pages import CountedPages, Visited
from partitions.api.page_steps import End, Look, Move, Step, are_alike, end_by_flag
from partitions.api.paging import (
    Cursor,
    NextLink,
    Offsets,
    PageNumbers,
    PageSeen,
    PagingError,
    Position,
)
from partitions.api.record_count import RecordCount


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
        self._records = RecordCount(total, max_records)
        self._counted = (
            CountedPages(paging, self._records) if isinstance(paging, PageNumbers | Offsets) else None
        )
        self.number, self.is_promised, self.is_look = 1, False, False
        self.position: Position | None = paging.first() if paging else Position()
        self._asked = {self.position.identity(own)}
        self._at = self.position
        self._last = PageSeen(0)
        self._is_again = False
        self._look: Look | None = None

    def advance(self, page: PageSeen) -> bool:
        """Go on behind a page; return whether its records count.

        Raises:
            PagingError: the pages do not lead on: they go round, there are too many, or flags and cursors say two things.
            Incomplete: all pages have come, and not all records; :class:`AtMost` as soon as there are as many as a query has at most.
        """
        if self.position is None:
            return False
        if self._look is not None:
            look, self._look, self.is_look = self._look, None, False
            self._take(look.then(page))
            return False
        self._records.note_total(page)
        if (self._is_again and not self._has_new(page)) or self._stands_still(page):
            self._refuse_more(page)
            self._take(End())
            return False
        before, self._last = self._last, page
        self._records.add(page)
        self._take(self._step_behind(before, page))
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

    def _step_behind(self, before: PageSeen, page: PageSeen) -> Step:
        if self._counted is not None:
            return self._counted.step_behind(Visited(self._at, self.number, page, before))
        if not isinstance(self._paging, Cursor | NextLink):
            return End()
        following = self._paging.after(self._at, page)
        if following is not None:
            return self._follow(following, page)
        other = self._paging.leads_to(self._at, page)
        if other is None or self._was_asked(other, page):
            return End()
        return Look(other, lambda seen: end_by_flag(page, seen, "a cursor that leads"))

    def _follow(self, following: Position, page: PageSeen) -> Step:
        """Ask for the page that a cursor or a link leads to. The same one again may have other records, as that of a scroll."""
        if not self._was_asked(following, page):
            return Move(following)
        if self._is_own(following, page):
            return Move(following, is_again=True)
        if self._records.is_complete:
            return End()
        raise PagingError(
            "a page that was not asked for yet",
            f"{following} again, a loop",
            "correct source.paging; or name what tells the last page: the number of all records (total), or a flag (paging.more, paging.end)",
        )

    def _take(self, step: Step) -> None:
        if isinstance(step, Move):
            self._move(step, self._last)
        elif isinstance(step, Look):
            self.position, self.is_look, self.is_promised, self._look = step.position, True, False, step
        else:
            self.position = None
            self._records.check_complete(self.number)

    def _move(self, step: Move, page: PageSeen) -> None:
        """Ask for the page behind one."""
        if self.number >= self._most:
            raise PagingError(
                f"at most {self._most} pages (max_pages)", "more", "raise max_pages, or correct source.paging"
            )
        self._asked.add(step.position.identity(self._own))
        if page.address is not None:
            self._asked.add(Position({}, page.address).identity(self._own))
        self.number += 1
        self.is_promised = self._paging is not None and self._paging.promises(page)
        self.position = self._at = step.position
        self._is_again = step.is_again

    def _was_asked(self, position: Position, page: PageSeen) -> bool:
        return position.identity(self._own) in self._asked or self._is_own(position, page)

    def _is_own(self, position: Position, page: PageSeen) -> bool:
        """Whether a page leads to itself."""
        own_identities = {self._at.identity(self._own)}
        if page.address is not None:
            own_identities.add(Position({}, page.address).identity(self._own))
        return position.identity(self._own) in own_identities

    def _stands_still(self, page: PageSeen) -> bool:
        """Whether a page that leads to itself has the records of the one before: what its cursor names is that one again."""
        paging = self._paging
        if not isinstance(paging, Cursor | NextLink) or not are_alike(page, self._last):
            return False
        if not self._records.is_exceeded_by(page):
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
