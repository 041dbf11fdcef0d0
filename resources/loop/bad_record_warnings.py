"""The warnings about the records that a run has set aside (docs/reference/schemas.md, Bad records)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.plan import pluralize

if TYPE_CHECKING:
    from resources.sources.files.checked import BadRecord


class BadRecordWarnings:
    """The set-aside records of one run."""

    def __init__(self) -> None:
        """Start without records."""
        self._warnings: dict[str, None] = {}

    def note(self, records: Sequence[tuple[str, BadRecord]], table: str | None) -> None:
        """Record the bad records of a slice, each with its file, and the table that they go into."""
        if not records:
            return
        path, first = records[0]
        where = f"{path}, line {first.line}" if first.line else path
        files = pluralize(len({path for path, _ in records}), "file")
        self._warnings[
            f"{pluralize(len(records), 'record')} of {files} did not parse: see table {table}. The first: file {where}: {first.why}"
        ] = None

    @property
    def warnings(self) -> Sequence[str]:
        """One sentence for each slice that has such records."""
        return [*self._warnings]
