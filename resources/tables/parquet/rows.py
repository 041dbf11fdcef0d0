"""Rows of a version of a Parquet table without Spark: counts, distinct values, the highest ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError
from partitions.file_statistics import Match, match_of
from partitions.predicate import EVERYTHING, Predicate, columns_of
from resources.connections.places import Place
from resources.dialects.arrow import expression
from resources.tables.column_check import check_columns
from resources.tables.parquet.columns import arrow_types, types_of
from resources.tables.parquet.commit_list import ListedFile, Snapshot
from resources.tables.parquet.extents import extents_of, highest, partition_value
from resources.tables.parquet.files import open_file, reading

if TYPE_CHECKING:
    import pyarrow as pa

_MERGED = 200_000
"""Rows of which the distinct ones are taken at once."""


@dataclass(frozen=True)
class VersionRows:
    """The rows of one version.

    Attributes:
        place: of the table.
        snapshot: the version.
        places: by path, the folder in which a file lies now and its path there.
    """

    place: Place
    snapshot: Snapshot
    places: Mapping[str, tuple[Place, str]]

    def count(self) -> int:
        """Return the number of rows, as the lists count them."""
        return sum(file.rows for file in self.snapshot.files.values())

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether there is such a row."""
        return any(batch.num_rows for batch in self._batches((), rows))

    def highest(self, columns: Sequence[str], rows: Predicate | None) -> dict[str, Any]:
        """Return the highest value of columns; see :meth:`resources.tables.contract.table.Table.highest_values`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        check_columns(self.place, types_of(self.snapshot.columns_json), columns)
        found: dict[str, Any] = dict.fromkeys(columns)
        for batch in self._batches(columns, EVERYTHING if rows is None else rows):
            for name in columns:
                values = batch[name]
                if pa.types.is_floating(values.type):
                    # Infinity and NaN, which is above all, are no values that a watermark can have.
                    most = sys.float_info.max
                    values = values.filter(
                        pc.and_(pc.greater_equal(values, -most), pc.less_equal(values, most))
                    )
                value = pc.max(values).as_py()
                if value is not None and (found[name] is None or value > found[name]):
                    found[name] = value
        return found

    def distinct(self, columns: Sequence[str], most: int) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of columns; see :meth:`resources.tables.contract.table.Table.distinct_rows`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        check_columns(self.place, types_of(self.snapshot.columns_json), columns)
        types = arrow_types(self.snapshot.columns_json)
        merged = pa.schema([(name, types[name]) for name in columns]).empty_table()
        waiting: list[pa.Table] = []
        for batch in self._batches(columns, EVERYTHING):
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _MERGED:
                merged, waiting = self._merged([merged, *waiting], columns, most), []
        merged = self._merged([merged, *waiting], columns, most)
        order = pc.sort_indices(merged, sort_keys=[(name, "ascending", "at_start") for name in columns])
        return iter(merged.take(order).to_pylist())

    def maxima(self, column: str) -> list[tuple[Any, int]]:
        """Return what the list says of each file; see :meth:`resources.tables.contract.table.Table.file_maxima`."""
        kind = types_of(self.snapshot.columns_json).get(column)
        found = [(highest(file, column, kind), file.rows) for file in self.snapshot.files.values()]
        return [(value, rows) for value, rows in found if value is not None]

    def _merged(self, tables: Sequence[pa.Table], columns: Sequence[str], most: int) -> pa.Table:
        import pyarrow as pa

        merged = pa.concat_tables(tables).group_by(list(columns)).aggregate([])
        if merged.num_rows > most:
            raise SourceError(
                f"table {self.place}: expected at most {most:,} distinct rows of {', '.join(columns)}, found more. Name columns that are ids, or a"
                " table of fewer rows"
            )
        return merged.select(list(columns))

    def _batches(self, columns: Sequence[str], rows: Predicate) -> Iterator[pa.Table]:
        """The rows that match, of the files that may have some."""
        types = types_of(self.snapshot.columns_json)
        for file in self.snapshot.files.values():
            match = match_of(rows, extents_of(file, types))
            if match is not Match.NONE:
                yield from self._read(file, columns, EVERYTHING if match is Match.ALL else rows)

    def _read(self, file: ListedFile, columns: Sequence[str], rows: Predicate) -> Iterator[pa.Table]:
        import pyarrow as pa

        types, kinds = arrow_types(self.snapshot.columns_json), types_of(self.snapshot.columns_json)
        wanted = list(dict.fromkeys([*columns, *columns_of(rows)]))
        opened = self._open(file)
        there = [name for name in wanted if name in opened.schema_arrow.names]
        # Without a column a batch would not know its length.
        batches = opened.iter_batches(columns=there or opened.schema_arrow.names[:1])
        while True:
            with reading(*self.places[file.path]):
                batch = next(batches, None)
            if batch is None:
                return
            given: dict[str, Any] = {}
            for name in wanted:
                if name in there:
                    given[name] = batch.column(name).cast(types[name])
                    continue
                value = partition_value(file.partition.get(name), kinds[name])
                given[name] = pa.repeat(pa.scalar(value, types[name]), batch.num_rows)
            table = pa.table(given) if given else pa.table({"": batch.column(0)})
            yield table if rows == EVERYTHING else table.filter(expression(rows, table.schema))

    def _open(self, file: ListedFile) -> Any:
        return open_file(*self.places[file.path])
