"""How many records of one request have come, and how many there are as far as answers say so (docs/reference/apis.md, All records)."""

from __future__ import annotations

import re
from typing import Any

from partitions.api.paging import AtMost, Incomplete, PageSeen, PagingError

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class RecordCount:
    """The records of one request."""

    def __init__(self, total_at: str | None, max_records: int | None) -> None:
        """Have counted none.

        Args:
            total_at: where answers say how many records there are, for errors; None: they do not.
            max_records: that the API gives for one request; None: as many as there are.
        """
        self._total_at, self._max_records = total_at, max_records
        self._count = 0
        self._total: int | None = None

    def note_total(self, page: PageSeen) -> None:
        """Hear what a page says of how many there are; the highest number counts.

        Raises:
            PagingError: it is no number of records.
        """
        if self._total_at is None or page.total is None:
            return
        self._total = max(self._total or 0, _whole(page.total, self._total_at))

    def add(self, page: PageSeen) -> None:
        """Count the records of a page.

        Raises:
            AtMost: there are as many as a query has at most.
        """
        self._count += page.count
        if self._max_records is not None and self._count >= self._max_records:
            raise AtMost(
                f"fewer than {self._max_records} records (max_records) of one request",
                f"{self._count}, so that there may be more",
                "ask for less at a time: by smaller windows, or bounded above (watermark_to_param), so that ranges can be cut",
            )

    @property
    def is_total_known(self) -> bool:
        """Whether an answer has said how many records there are."""
        return self._total is not None

    @property
    def is_complete(self) -> bool:
        """Whether as many records have come as there are, as far as answers say so."""
        return self._total is not None and self._count >= self._total

    def is_exceeded_by(self, page: PageSeen) -> bool:
        """Return whether there would be more than answers say with the records of a page; True if they do not say."""
        return self._total is None or self._count + page.count > self._total

    def check_complete(self, pages: int) -> None:
        """Raise Incomplete if fewer records have come than there are, on so many pages; or if answers should say how many there are, and none did."""
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
                f"{self._count} on {pages} page{'s' if pages > 1 else ''}",
                "correct source.paging (its size, if it has one) so that all pages are read; if records came or went while they were read, run again; if"
                " the API counts others, too, leave source.total out",
            )


def _whole(value: Any, path: str) -> int:
    """A number of records."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise PagingError(f"a whole number at {path} (total)", repr(value)[:100], "correct source.total")
