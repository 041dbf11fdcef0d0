"""The warnings about the records that a run has set aside (docs/reference/schemas.md, Bad records)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.plan import pluralize

if TYPE_CHECKING:
    from resources.sources.files.checked import BadRecord


class BadRecordWarnings:
    """The warnings about the bad records that one run has set aside."""

    def __init__(self) -> None:
        """Start without warnings."""
        self._warnings: dict[str, None] = {}

    def note(self, records: Sequence[tuple[str, BadRecord]], table: str | None) -> None:
        """Add a warning about a slice's bad records, each with its file; none if there are no records."""
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
        """One sentence for each slice with bad records."""
        return [*self._warnings]
