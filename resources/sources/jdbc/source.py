"""Rows of a database through JDBC; the predicate is in the query, so only its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from partitions.column.open_transactions import TransactionsUnknown, WritingTransactions
from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.errors import SourceError, SourceInterrupted, SourceUnreachable
from partitions.evolution import SchemaMode
from partitions.predicate import Predicate
from partitions.sources import JdbcSource
from partitions.sources.database_types import ColumnType, readable_types
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, split_disjoint
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.client import Client, SqlSnapshot, client
from resources.sources.jdbc.failures import is_time_limit, source_error
from resources.sources.jdbc.index_cuts import WALKED_ROWS, cut_along_index
from resources.sources.jdbc.loading import JdbcLoader
from resources.sources.jdbc.observing import observe_columns
from resources.sources.jdbc.parallel_reads import MAX_STEPS, parallel_parts
from resources.sources.jdbc.questions import Questions
from resources.sources.jdbc.relation import Relation
from resources.sources.jdbc.row_queries import RowQueries
from resources.sources.jdbc.undecodable import find_undecodable, is_undecodable, undecodable_text
from resources.sources.jdbc.units import distinct_rows, requested_unit_texts
from resources.sources.jdbc.values import read_columns
from resources.sources.jdbc.writers import open_writers
from resources.sources.schema import PinsColumns, has_fixed_texts, kinds, pinned_struct, plain, strict
from resources.sources.source import NUMBER, ReadsAbove
from resources.spark.frames import with_cached_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")

_PART_ROWS = 100_000
"""The fewest rows of a part of a window slice: fewer are read faster over one connection."""

_NUMBER = ColumnType("integer")


class JdbcRows(PinsColumns):
    """The rows of a table or query; ``{unit.NAME}`` is NULL when its columns are looked up."""

    def __init__(
        self,
        connection: JdbcConnection,
        source: JdbcSource,
        zone: tzinfo,
        schema_mode: SchemaMode = "strict",
        *,
        keys: Sequence[str] = (),
        replaces_units: bool = False,
        part_rows: int = _PART_ROWS,
        walked_rows: int = WALKED_ROWS,
    ) -> None:
        """Configure the source; nothing is opened yet.

        Args:
            connection: how to reach the database.
            source: the definition.
            zone: the definition's zone, used for times and dates without zone.
            schema_mode: what happens if columns differ from the pinned ones.
            keys: the columns that identify a row in errors.
            replaces_units: whether a later read of a unit replaces its rows, which must then have its
            exact value.
            part_rows: the rows of windows that justify another connection.
            walked_rows: index entries to walk for cuts before statistics are used.

        Raises:
            ConfigurationError: a placeholder is in quotes or in a comment.
        """
        self._connection, self._source, self._mode = connection, source, schema_mode
        self._definition = source
        self._part_rows, self._walked_rows, self._zone = part_rows, walked_rows, zone
        self._look_connection: Client | None = None
        self._described_types: Mapping[str, ColumnType] | None = None
        self._keys, self._replaces_units = tuple(keys), replaces_units
        self._loader = JdbcLoader(connection, source.label)
        dialect = DIALECTS[connection.system]
        self._queries = RowQueries(source, dialect, zone, keys)
        self._questions = Questions(source, dialect, zone, keys)

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the distinct rows in column order; the database itself ends a slow query."""
        yield from distinct_rows(self._connection, self._definition, columns)

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
    ) -> DataFrame:
        """Return exactly the rows of these extents, with the pinned columns in order.

        The rows are fetched when the frame is written: in one query over one connection, so that they are
        of one snapshot; many rows of a table with an index on their time are read in parts along it.
        :meth:`failure` explains errors at that time.

        Raises:
            ConfigurationError: nothing identifies a row's window or unit, or a column cannot hold a unit's
            value.
            SourceError: as for :meth:`pin`.
        """
        schema = pinned_struct(pinned)
        if not split_disjoint(extents):
            return spark.createDataFrame([], schema)
        available, types = self._available_columns(schema), self._types(schema)
        parts = self._parallel_parts(extents, available)
        if len(parts) > 1:
            rows = self._loader.parts(spark, *self._queries.in_parts(parts, types))
        else:
            rows = self._loader.query(spark, self._queries.rows(extents, available, types))
        return strict(self._read(rows, types, extents), schema, available.fieldNames())

    def _parallel_parts(self, extents: Sequence[Extent], schema: StructType) -> list[Predicate]:
        """Return the parts of windows to read in parallel; a query is read over one connection."""
        column = self._source.window_column
        if column is None or self._questions.known_columns() is None:
            return []
        columns = ExtentColumns(kinds(schema), column, self._source.unit_columns, self._zone)
        return parallel_parts(
            extents, column, columns, lambda window: self.cuts(window, self._part_rows, MAX_STEPS)
        )

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return the rows of extents of one unit each, with the extent's number in column ``NUMBER``.

        Raises:
            ConfigurationError, SourceError: as for :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = pinned_struct(pinned)
        number, available = StructField(NUMBER, IntegerType()), self._available_columns(schema)
        types = self._types(schema)
        rows = self._loader.query(spark, self._queries.numbered(extents, available, types))
        numbered_rows = self._read(rows, {**types, NUMBER: _NUMBER}, extents)
        return strict(numbered_rows, StructType([*schema.fields, number]))

    def in_one_look(self, ask: Callable[[ReadsAbove], T], seconds: float | None = None) -> T:
        """Ask several questions over one connection, in one snapshot."""
        try:
            with client(self._connection, seconds) as database:
                short_look = copy(self)
                short_look._look_connection = database
                return ask(short_look)
        except SourceInterrupted as error:
            if seconds is None or not is_time_limit(error):
                raise
            raise SourceUnreachable(
                f"database {self._connection}: the check for new rows in {self._source.label} hit its time limit of "
                f"{seconds:.0f} s, because the database scans the rows. Create an index that begins with the "
                "watermark's column; for a query, on the column behind it"
            ) from None

    @contextmanager
    def _connect(self) -> Iterator[Client]:
        """Yield the look's connection, or a new one."""
        if self._look_connection is not None:
            yield self._look_connection
        else:
            with client(self._connection) as database:
                yield database

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:  # noqa: ARG002 - a database has a clock of its own
        """Return the database's clock, the columns' types, and what its indexes reveal."""
        with self._connect() as database:
            return observe_columns(database, self._connection, self._definition, self._questions, columns)

    def writers(self, columns: Sequence[str]) -> WritingTransactions | TransactionsUnknown:
        """Return the transactions that are open now, regardless of the look's snapshot.

        The locks of a SELECT reveal the tables behind a query.
        """
        with self._connect() as database:
            database.describe(self._questions.only(columns))
            return open_writers(database, columns)

    def cuts(self, range_: ColumnRange, rows: int, max_cuts: int) -> Sequence[Any]:
        """Return cuts along the column's index, if it has one; far into a range, by statistics."""
        with self._connect() as database:
            return cut_along_index(database, self._questions, range_, rows, max_cuts, self._walked_rows)

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether such a row exists."""
        with self._connect() as database:
            return bool(database.ask(self._questions.some(rows)))

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column; texts are ordered by the database."""
        with self._connect() as database:
            (column_,) = database.describe(self._questions.only([column]))
            if column_.kind is None or column_.kind == "text":
                return database.value(self._questions.last(column, rows))
            return database.value(self._questions.highest(column, column_.kind, rows))

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """Return the rows of the parts, with one query and one connection per part."""
        schema = pinned_struct(pinned)
        if not parts:
            return spark.createDataFrame([], schema)
        types = self._types(schema)
        if len(parts) == 1:
            loaded = self._loader.query(spark, self._queries.matching(parts[0], types), defers_schema=True)
        else:
            loaded = self._loader.parts(spark, *self._queries.in_parts(parts, types), defers_schema=True)
        rows = strict(self._read(loaded, types), schema, list(types))
        # The run has compared the columns already, and a look has queried the database with the same bounds.
        return rows if has_fixed_texts(schema) else with_cached_columns(rows, plain(schema))

    @contextmanager
    def sql_snapshot(self) -> Iterator[SqlSnapshot]:
        """Yield a connection whose queries all see one moment; a query of them reads the relation once."""
        with client(self._connection) as database:
            types = readable_types(database.describe(self._questions.columns()), self._source.label)
            relation = Relation(self._definition, database.dialect, self._zone).whole()
            yield SqlSnapshot(database, relation, types, database.clock())

    def failure(self, error: Exception) -> SourceError | None:
        """Return the SourceError for a failed write of a read frame; None if the database is not the cause."""
        failure = source_error(error, self._connection, self._source.label)
        if failure is None or not is_undecodable(failure) or self._source.placeholders:
            return failure
        text = None
        with suppress(SourceError), self._connect() as database:  # the first text that PostgreSQL cannot send
            text = find_undecodable(database, self._questions, self._readable_types(), self._keys)
        return failure if text is None else undecodable_text(*text, self._connection, self._source.label)

    @override
    def _columns(self, spark: SparkSession) -> StructType:
        from pyspark.sql.types import StructType

        self._described_types = None
        fields = [
            {"name": name, "type": type_.spark_type, "nullable": True, "metadata": {}}
            for name, type_ in self._readable_types().items()
        ]
        return StructType.fromJson({"type": "struct", "fields": fields})

    def check_readable(self) -> None:
        """Raise SourceError unless all columns can be read."""
        self._readable_types()

    def _readable_types(self) -> Mapping[str, ColumnType]:
        """Return the type of each column, with one question per run.

        Raises:
            SourceError: no run can read some columns; each is named.
        """
        if self._described_types is None:
            with self._connect() as database:
                self._described_types = readable_types(
                    database.describe(self._questions.columns()), self._source.label
                )
        return self._described_types

    def _types(self, schema: StructType) -> Mapping[str, ColumnType]:
        """Return the types of the pinned columns that still exist."""
        types = {name.casefold(): type_ for name, type_ in self._readable_types().items()}
        names = self._available_columns(schema).fieldNames()
        if missing := [name for name in names if name.casefold() not in types]:
            raise SourceError(
                f"{self._source.label}: expected the pinned columns, found no {', '.join(missing)}. Restore them at "
                "the source"
            )
        return {name: types[name.casefold()] for name in names}

    def _read(
        self, frame: DataFrame, types: Mapping[str, ColumnType], extents: Sequence[Extent] = ()
    ) -> DataFrame:
        return frame.select(
            *read_columns(
                types,
                self._keys,
                requested_unit_texts(
                    self._definition, self._zone, types, extents if self._replaces_units else ()
                ),
            )
        )
