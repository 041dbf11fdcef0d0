"""The number of records that a request has returned, and the total that its answers report.

See docs/reference/apis.md, All records.
"""

from __future__ import annotations

import re
from typing import Any

from partitions.api.paging import IncompleteRecords, PageInfo, PagingError, RecordLimitReached

_COUNT = re.compile(r"\d{1,18}", re.ASCII)


class RecordCount:
    """The number of records of one request."""

    def __init__(self, total_path: str | None, max_records: int | None) -> None:
        """Start at zero.

        Args:
            total_path: where answers report the total, for errors; None: they do not.
            max_records: the most records that the API returns for one request; None: no limit.
        """
        self._total_path, self._max_records = total_path, max_records
        self._count = 0
        self._total: int | None = None

    def update_total(self, page: PageInfo) -> None:
        """Store the total that a page reports; the highest one counts.

        Raises:
            PagingError: it is no number of records.
        """
        if self._total_path is None or page.total is None:
            return
        self._total = max(self._total or 0, _parse_count(page.total, self._total_path))

    def add(self, page: PageInfo) -> None:
        """Count the records of a page.

        Raises:
            RecordLimitReached: the request has returned the most records that it can.
        """
        self._count += page.count
        if self._max_records is not None and self._count >= self._max_records:
            raise RecordLimitReached(
                f"fewer than {self._max_records} records (max_records) of one request",
                f"{self._count}, so there may be more",
                "request less at a time: shorten the windows, or set watermark_to_param so that Strandline can halve "
                "ranges",
            )

    @property
    def is_total_known(self) -> bool:
        """Whether an answer has reported the total."""
        return self._total is not None

    @property
    def is_complete(self) -> bool:
        """Whether all records have arrived, according to the reported total."""
        return self._total is not None and self._count >= self._total

    def is_exceeded_by(self, page: PageInfo) -> bool:
        """Return whether a page's records would exceed the reported total; True if none was reported."""
        return self._total is None or self._count + page.count > self._total

    def check_complete(self, pages: int) -> None:
        """Raise IncompleteRecords if records or an expected total are missing after so many pages."""
        if self._total_path is None:
            return
        if self._total is None:
            raise IncompleteRecords(
                f"the number of all records at {self._total_path} (total)",
                "none on any page",
                "correct source.total",
            )
        if self._count < self._total:
            raise IncompleteRecords(
                f"{self._total} records, the number at {self._total_path} (total)",
                f"{self._count} on {pages} page{'s' if pages > 1 else ''}",
                "correct source.paging (its size, if it has one) so that all pages are read. If records changed "
                "during the read, run again. If that number counts other records, too, leave out source.total",
            )


def _parse_count(value: Any, path: str) -> int:
    """Return a reported number of records."""
    if isinstance(value, str) and _COUNT.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise PagingError(f"a whole number at {path} (total)", repr(value)[:100], "correct source.total")
