"""Read rows of a Parquet table's version without Spark: counts, distinct and highest values."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.predicate import EVERYTHING, Predicate, columns_of
from resources.connections.places import Place
from resources.dialects.arrow import arrow_expression
from resources.tables.column_check import check_columns
from resources.tables.parquet.columns import arrow_types, column_types
from resources.tables.parquet.commit_list import ListedFile, TableSnapshot
from resources.tables.parquet.extents import extents_of, highest_value, partition_value
from resources.tables.parquet.files import open_file, raising_read_errors
from resources.tables.text_counts import count_texts

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_MERGE = 200_000
"""Number of rows after which distinct rows are merged."""


@dataclass(frozen=True)
class VersionRows:
    """The rows of one version.

    Attributes:
        place: place of the table.
        snapshot: version of the table.
        places: for each path the folder in which the file lies now, and its path there.
    """

    place: Place
    snapshot: TableSnapshot
    places: Mapping[str, tuple[Place, str]]

    def count(self, rows: Predicate = EVERYTHING) -> int:
        """Return the number of rows that meet a condition; of all rows from the lists."""
        if rows != EVERYTHING:
            return sum(batch.num_rows for batch in self._batches((), rows))
        return sum(file.rows for file in self.snapshot.files.values())

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether the version has a row that meets a condition."""
        return any(batch.num_rows for batch in self._batches((), rows))

    def first(self, limit: int, rows: Predicate) -> pa.Table:
        """Return at most ``limit`` rows that meet a condition, with all columns."""
        import pyarrow as pa

        types = arrow_types(self.snapshot.columns_json)
        read_rows = pa.schema(types.items()).empty_table()
        for batch in self._batches(list(types), rows):
            read_rows = pa.concat_tables([read_rows, batch]).slice(0, limit)
            if read_rows.num_rows == limit:
                break
        return read_rows

    def select(self, rows: Predicate, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows that meet a condition, with these columns (None: all)."""
        import pyarrow as pa

        types = arrow_types(self.snapshot.columns_json)
        names = list(types) if columns is None else list(columns)
        no_rows = pa.schema([(name, types[name]) for name in names]).empty_table()
        return pa.concat_tables([no_rows, *(batch.select(names) for batch in self._batches(names, rows))])

    def highest(self, columns: Sequence[str], rows: Predicate | None) -> dict[str, Any]:
        """Return the highest value of each column.

        See :meth:`resources.tables.contract.contents.TableContents.highest_values`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        check_columns(self.place, column_types(self.snapshot.columns_json), columns)
        highest_by_column: dict[str, Any] = dict.fromkeys(columns)
        for batch in self._batches(columns, EVERYTHING if rows is None else rows):
            for name in columns:
                values = batch[name]
                if pa.types.is_floating(values.type):
                    # A watermark cannot be infinity or NaN, which sorts above all numbers.
                    largest = sys.float_info.max
                    values = values.filter(
                        pc.and_(pc.greater_equal(values, -largest), pc.less_equal(values, largest))
                    )
                value = pc.max(values).as_py()
                if value is not None and (highest_by_column[name] is None or value > highest_by_column[name]):
                    highest_by_column[name] = value
        return highest_by_column

    def distinct(self, columns: Sequence[str], max_rows: int) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns, sorted, NULLs first.

        See :meth:`resources.tables.contract.contents.TableContents.distinct_rows`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        check_columns(self.place, column_types(self.snapshot.columns_json), columns)
        types = arrow_types(self.snapshot.columns_json)
        distinct_rows = pa.schema([(name, types[name]) for name in columns]).empty_table()
        batches: list[pa.Table] = []
        for batch in self._batches(columns, EVERYTHING):
            batches.append(batch)
            if sum(batch_table.num_rows for batch_table in batches) >= _ROWS_PER_MERGE:
                distinct_rows, batches = (
                    self._merge_distinct([distinct_rows, *batches], columns, max_rows),
                    [],
                )
        distinct_rows = self._merge_distinct([distinct_rows, *batches], columns, max_rows)
        order = pc.sort_indices(
            distinct_rows, sort_keys=[(name, "ascending", "at_start") for name in columns]
        )
        return iter(distinct_rows.take(order).to_pylist())

    def text_counts(self, column: str, rows: Predicate) -> pa.Table:
        """Return each text of a column with its number of rows that meet a condition.

        See :meth:`resources.tables.contract.contents.TableContents.text_counts`.
        """
        return count_texts(self._batches([column], rows), column)

    def file_maxima(self, column: str) -> list[tuple[Any, int]]:
        """Return each file's highest value from the list.

        See :meth:`resources.tables.contract.contents.TableContents.file_maxima`.
        """
        data_type = column_types(self.snapshot.columns_json).get(column)
        file_bounds = [
            (highest_value(file, column, data_type), file.rows) for file in self.snapshot.files.values()
        ]
        return [(value, rows) for value, rows in file_bounds if value is not None]

    def _merge_distinct(self, tables: Sequence[pa.Table], columns: Sequence[str], max_rows: int) -> pa.Table:
        import pyarrow as pa

        distinct_rows = pa.concat_tables(tables).group_by(list(columns)).aggregate([])
        if distinct_rows.num_rows > max_rows:
            raise SourceError(
                f"table {self.place}: expected at most {max_rows:,} distinct rows of {', '.join(columns)}, "
                "found more. Name columns that identify units, or a smaller table"
            )
        return distinct_rows.select(list(columns))

    def _batches(self, columns: Sequence[str], rows: Predicate) -> Iterator[pa.Table]:
        """Yield the rows that match, from the files that may hold some."""
        types = column_types(self.snapshot.columns_json)
        for file in self.snapshot.files.values():
            match = match_statistics(rows, extents_of(file, types))
            if match is not FileMatch.NONE:
                yield from self._read(file, columns, EVERYTHING if match is FileMatch.ALL else rows)

    def _read(self, file: ListedFile, columns: Sequence[str], rows: Predicate) -> Iterator[pa.Table]:
        import pyarrow as pa

        types, data_types = arrow_types(self.snapshot.columns_json), column_types(self.snapshot.columns_json)
        needed_columns = list(dict.fromkeys([*columns, *columns_of(rows)]))
        parquet_file = self._open(file)
        file_columns = [name for name in needed_columns if name in parquet_file.schema_arrow.names]
        # A batch needs at least one column to have a length.
        batches = parquet_file.iter_batches(columns=file_columns or parquet_file.schema_arrow.names[:1])
        while True:
            with raising_read_errors(*self.places[file.path]):
                batch = next(batches, None)
            if batch is None:
                return
            values: dict[str, Any] = {}
            for name in needed_columns:
                if name in file_columns:
                    values[name] = batch.column(name).cast(types[name])
                    continue
                value = partition_value(file.partition.get(name), data_types[name])
                values[name] = pa.repeat(pa.scalar(value, types[name]), batch.num_rows)
            table = pa.table(values) if values else pa.table({"": batch.column(0)})
            yield table if rows == EVERYTHING else table.filter(arrow_expression(rows, table.schema))

    def _open(self, file: ListedFile) -> Any:
        return open_file(*self.places[file.path])
