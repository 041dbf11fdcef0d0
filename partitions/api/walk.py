"""The walk over the pages of one request: to its proven end, each record once, without loops.

Belongs here: which page to request next, and whether the records of one count. Steps between numbered
pages are in :mod:`partitions.api.counted_pages`. An end is doubtful if a flag announces it although a
cursor leads on, or if an offset advances by more records than arrived: then one more page is requested as
a probe. See docs/reference/apis.md, Pages.
"""

from __future__ import annotations

from partitions.api.counted_pages import CountedPages, VisitedPage
from partitions.api.page_steps import End, NextPage, Probe, Step, are_alike, end_by_flag
from partitions.api.paging import (
    Cursor,
    NextLink,
    Offsets,
    PageInfo,
    PageNumbers,
    PagingError,
    Position,
)
from partitions.api.record_count import RecordCount


class PageWalk:
    """The state of a walk through the pages of one request.

    Attributes:
        position: the position of the current page; None after the last.
        number: the number of the current page, from 1.
        is_promised: whether a cursor, link or flag of the previous page leads to it, so that it must
        exist.
        is_past_end: whether the page is only inspected to prove an end: its records do not count, and it need
        not exist.
    """

    def __init__(
        self,
        paging: PageNumbers | Offsets | Cursor | NextLink | None,
        max_pages: int,
        *,
        total: str | None = None,
        max_records: int | None = None,
        fixed_parameters: frozenset[str] = frozenset(),
    ) -> None:
        """Start at the first page.

        Args:
            paging: None: there is one page.
            max_pages: the most pages to request.
            total: where answers report the total number of records, for errors; None: they do not.
            max_records: the most records that the API returns for one request.
            fixed_parameters: parameters of every request.
        """
        self._paging, self._max_pages, self._fixed_parameters = paging, max_pages, fixed_parameters
        self._records = RecordCount(total, max_records)
        self._numbered_pages = (
            CountedPages(paging, self._records) if isinstance(paging, PageNumbers | Offsets) else None
        )
        self.number, self.is_promised, self.is_past_end = 1, False, False
        self.position: Position | None = paging.first() if paging else Position()
        self._requested = {self.position.identity(fixed_parameters)}
        self._counted_position = self.position
        self._last_page = PageInfo(0)
        self._is_repeat = False
        self._probe: Probe | None = None

    def advance(self, page: PageInfo) -> bool:
        """Move past a page; return whether its records count.

        Raises:
            PagingError: the pages form a loop, are too many, or contradict their flags.
            IncompleteRecords: all pages have arrived, but not all records; :class:`RecordLimitReached` at
            the record limit.
        """
        if self.position is None:
            return False
        if self._probe is not None:
            probe, self._probe, self.is_past_end = self._probe, None, False
            self._apply_step(probe.decide(page))
            return False
        self._records.update_total(page)
        if (self._is_repeat and not self._has_new_records(page)) or self._repeats_previous_page(page):
            self._refuse_more(page)
            self._apply_step(End())
            return False
        previous_page, self._last_page = self._last_page, page
        self._records.add(page)
        self._apply_step(self._step_after(previous_page, page))
        return True

    def leads_to(self, page: PageInfo) -> Position | None:
        """Return the position after a page by its cursor or link, to prefetch it; None if there is none.

        :meth:`advance` decides later: the next page may be another one, or there is none.
        """
        if self.position is None or self.is_past_end or self.number >= self._max_pages:
            return None
        if not isinstance(self._paging, Cursor | NextLink):
            return None
        try:
            next_position = self._paging.after(self.position, page)
        except PagingError:
            return None
        is_new = next_position is not None and not self._was_requested(next_position, page)
        return next_position if is_new else None

    def _step_after(self, previous_page: PageInfo, page: PageInfo) -> Step:
        if self._numbered_pages is not None:
            return self._numbered_pages.step_after(
                VisitedPage(self._counted_position, self.number, page, previous_page)
            )
        if not isinstance(self._paging, Cursor | NextLink):
            return End()
        next_position = self._paging.after(self._counted_position, page)
        if next_position is not None:
            return self._follow(next_position, page)
        ignored_position = self._paging.leads_to(self._counted_position, page)
        if ignored_position is None or self._was_requested(ignored_position, page):
            return End()
        return Probe(ignored_position, lambda probed: end_by_flag(page, probed, "a cursor that leads"))

    def _follow(self, next_position: Position, page: PageInfo) -> Step:
        """Return the step to a cursor's or link's page.

        The same position may return other records, as a scroll does.
        """
        if not self._was_requested(next_position, page):
            return NextPage(next_position)
        if self._leads_to_itself(next_position, page):
            return NextPage(next_position, is_repeat=True)
        if self._records.is_complete:
            return End()
        raise PagingError(
            "a new page",
            f"{next_position} again, a loop",
            "correct source.paging, or name what marks the last page: the number of all records (total), or a "
            "flag (paging.more, paging.end)",
        )

    def _apply_step(self, step: Step) -> None:
        if isinstance(step, NextPage):
            self._move(step, self._last_page)
        elif isinstance(step, Probe):
            self.position, self.is_past_end, self.is_promised, self._probe = (
                step.position,
                True,
                False,
                step,
            )
        else:
            self.position = None
            self._records.check_complete(self.number)

    def _move(self, step: NextPage, page: PageInfo) -> None:
        """Go to the next page."""
        if self.number >= self._max_pages:
            raise PagingError(
                f"at most {self._max_pages} pages (max_pages)",
                "more",
                "raise max_pages, or correct source.paging",
            )
        self._requested.add(step.position.identity(self._fixed_parameters))
        if page.address is not None:
            self._requested.add(Position({}, page.address).identity(self._fixed_parameters))
        self.number += 1
        self.is_promised = self._paging is not None and self._paging.promises_next_page(page)
        self.position = self._counted_position = step.position
        self._is_repeat = step.is_repeat

    def _was_requested(self, position: Position, page: PageInfo) -> bool:
        return position.identity(self._fixed_parameters) in self._requested or self._leads_to_itself(
            position, page
        )

    def _leads_to_itself(self, position: Position, page: PageInfo) -> bool:
        """Return whether a page leads to itself."""
        own_identities = {self._counted_position.identity(self._fixed_parameters)}
        if page.address is not None:
            own_identities.add(Position({}, page.address).identity(self._fixed_parameters))
        return position.identity(self._fixed_parameters) in own_identities

    def _repeats_previous_page(self, page: PageInfo) -> bool:
        """Return whether a page leads to itself and has the previous page's records."""
        paging = self._paging
        if not isinstance(paging, Cursor | NextLink) or not are_alike(page, self._last_page):
            return False
        if not self._records.is_exceeded_by(page):
            return False
        next_position = paging.leads_to(self._counted_position, page)
        return next_position is not None and self._leads_to_itself(next_position, page)

    def _has_new_records(self, page: PageInfo) -> bool:
        """Return whether the same position has returned other records.

        Raises:
            PagingError: it returned some of them again.
        """
        new = page.records - self._last_page.records
        if new and new != page.records:
            raise PagingError(
                "either the same records or only new ones at the same position",
                "some of them again: the source seems to have changed during the read",
                "run again, or set watermark_to_param, which bounds each read above",
            )
        return bool(new)

    def _refuse_more(self, page: PageInfo) -> None:
        if self._paging is not None and self._paging.flag(page):
            raise PagingError(
                "a new page, since a flag announces more",
                f"{self._counted_position} again, a loop",
            )
