"""The record of ingested files as Arrow tables, a range at a time.

So memory does not grow with the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resources.watermarks.file_ranges import IngestedFile, files_in, records_table
from resources.watermarks.ingested import IngestedFiles

if TYPE_CHECKING:
    import pyarrow as pa

RECENT = ""
"""The name of the files that recent lists hold, in the place of a range's name."""


@dataclass(frozen=True)
class RecordTables:
    """The tables of one record.

    Attributes:
        record: the record.
    """

    record: IngestedFiles

    def find_sizes(self, sizes: Collection[int], known_sizes: dict[str, Any]) -> Iterator[IngestedFile]:
        """Yield the records of files with one of these sizes, sorted by path in each range; recent ones last.

        Args:
            sizes: bytes.
            known_sizes: the sizes in each range, by its name; what is read is added.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        requested_sizes = pa.array(sorted(sizes), pa.int64())
        for range_ in self.record.manifest.ranges if sizes else ():
            if range_.name not in known_sizes:
                known_sizes[range_.name] = pc.unique(self.record.table(range_)["size"])
            if pc.any(pc.is_in(requested_sizes, known_sizes[range_.name])).as_py():
                table = self.record.table(range_)
                records = files_in(table.filter(pc.is_in(table["size"], requested_sizes)))
                yield from (file for file in records if file.path not in self.record.recent)
        yield from (file for file in sorted(self.record.recent.values()) if file.size in sizes)

    def find_reasons(self, reasons: Collection[str], known_reasons: dict[str, Any]) -> Iterator[IngestedFile]:
        """Yield the records of files with one of these reasons; recent ones last.

        Args:
            reasons: reasons.
            known_reasons: the reasons in each range, by its name; what is read is added.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        requested_reasons = pa.array(sorted(reasons), pa.string())
        for range_ in self.record.manifest.ranges if reasons else ():
            if range_.name not in known_reasons:
                known_reasons[range_.name] = pc.unique(self.record.table(range_)["reason"])
            if pc.any(pc.is_in(requested_reasons, known_reasons[range_.name])).as_py():
                table = self.record.table(range_)
                records = files_in(table.filter(pc.is_in(table["reason"], requested_reasons)))
                yield from (file for file in records if file.path not in self.record.recent)
        if reasons:
            yield from (file for file in sorted(self.record.recent.values()) if file.reason in reasons)

    def tables(self) -> Iterator[pa.Table]:
        """Yield all records as Arrow tables with the columns of :class:`IngestedFile`, a range at a time.

        Each file is in one of them.
        """
        for _, table in self.numbered_tables():
            yield table

    def numbered_tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the tables of :meth:`tables`, each with the name of its range; "" for the recent files."""
        for name in (*(range_.name for range_ in self.record.manifest.ranges), RECENT):
            table = self.table_of(name)
            if table is not None:
                yield name, table

    def last_tables(self, enough: Callable[[pa.Table], bool]) -> Iterator[pa.Table]:
        """Yield the recent files, then the ranges from the last one back, until ``enough`` returns True.

        It is asked after each range.
        """
        for name in (RECENT, *(range_.name for range_ in reversed(self.record.manifest.ranges))):
            table = self.table_of(name)
            if table is not None:
                yield table
                if name != RECENT and enough(table):
                    return

    def table_of(self, range_name: str) -> pa.Table | None:
        """Return the records of a range without files that recent lists override; None if there are none.

        ``RECENT`` names the files of the recent lists.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if range_name == RECENT:
            return records_table(sorted(self.record.recent.values())) if self.record.recent else None
        (range_,) = (range_ for range_ in self.record.manifest.ranges if range_.name == range_name)
        table = self.record.table(range_)
        overridden = pc.is_in(table["path"], pa.array(sorted(self.record.recent), pa.string()))
        return table.filter(pc.invert(overridden)) if pc.any(overridden).as_py() else table
