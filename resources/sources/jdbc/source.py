"""Rows of a database, read through JDBC: the predicate is in the pushed query, so the database reads what is asked for and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from partitions.column.cuts_by_statistics import SPREAD_KINDS, Spread
from partitions.column.predicates import Range, rows_in
from partitions.column.source import Observed
from partitions.column.writers import Untold, Writers
from partitions.errors import SourceError, SourceInterrupted, SourceUnreachable
from partitions.evolution import SchemaMode
from partitions.predicate import AllOf, Among, Predicate
from partitions.sources import JdbcSource
from partitions.sources.database_types import ColumnType, readable_types
from partitions.spelling import beside_known
from partitions.unit_values import Kind
from partitions.window.extent import Extent
from partitions.window.predicates import Columns, disjoint
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.client import Client, Column, client, is_unknown_column
from resources.sources.jdbc.failures import is_time_limit, is_undecodable, source_error, undecodable_text
from resources.sources.jdbc.loading import JdbcLoader
from resources.sources.jdbc.parallel_reads import MOST_STEPS, parallel_parts
from resources.sources.jdbc.query import JdbcQuery
from resources.sources.jdbc.units import asked_texts, distinct_rows
from resources.sources.jdbc.values import read_columns
from resources.sources.jdbc.writers import open_writers
from resources.sources.schema import PinsColumns, has_fixed_texts, kinds, pinned_struct, plain, strict
from resources.sources.source import NUMBER, ReadsAbove
from resources.spark.frames import with_known_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")

_PART_ROWS = 100_000
"""A part of a window slice has about so many rows at least: fewer are read sooner over one connection."""
_WALKED_ROWS = 1_000_000
"""A walk along an index looks at each of its entries: of 5,000,000 rows it took a twentieth of the time that their load takes."""

_NUMBER = ColumnType("integer")


class JdbcRows(PinsColumns):
    """Reads a table or a query of a database. ``{unit.NAME}`` is NULL when its columns are looked up."""

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
        walked_rows: int = _WALKED_ROWS,
    ) -> None:
        """Use a database; nothing is opened yet.

        Args:
            connection: how it is reached.
            source: what is read of it.
            zone: the definition's; times and dates without a zone are of it.
            schema_mode: what becomes of the pinned columns if there are others.
            keys: columns that tell a row in an error.
            replaces_units: whether a later read of a unit replaces its rows in the table, which must find them by its value then.
            part_rows: rows of windows for which a connection of its own is worth it.
            walked_rows: entries of an index that are walked for cuts before statistics are asked.

        Raises:
            ConfigurationError: if the query's placeholders stand in quotes or in a comment.
        """
        self._connection, self._source, self._mode = connection, source, schema_mode
        self._listed = source
        self._part_rows, self._walked_rows, self._zone = part_rows, walked_rows, zone
        self._opened: Client | None = None
        self._described_types: Mapping[str, ColumnType] | None = None
        self._keys, self._replaces_units = tuple(keys), replaces_units
        self._loader = JdbcLoader(connection, source.shown)
        self._query = JdbcQuery(source, DIALECTS[connection.system], zone, keys)

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The different rows, sorted by the columns in their order; the database itself ends a query that takes long."""
        yield from distinct_rows(self._connection, self._listed, columns)

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
    ) -> DataFrame:
        """Exactly the rows of these extents, with the pinned columns in their order.

        The rows are fetched when the frame is written: in one query of one connection, so that they are of one snapshot; of many rows of
        a table that has an index on their time, in parts along it. What goes wrong then, :meth:`failure` tells.

        Raises:
            ConfigurationError: if nothing tells a row's window or unit, or a unit's value cannot be one of its column.
            SourceError: as for :meth:`pin`.
        """
        schema = pinned_struct(pinned)
        if not disjoint(extents):
            return spark.createDataFrame([], schema)
        there, types = self._there(schema), self._types(schema)
        parts = self._parallel_parts(extents, there)
        if len(parts) > 1:
            rows = self._loader.parts(spark, *self._query.in_parts(parts, types))
        else:
            rows = self._loader.query(spark, self._query.rows(extents, there, types))
        return strict(self._read(rows, types, extents), schema, there.fieldNames())

    def _parallel_parts(self, extents: Sequence[Extent], schema: StructType) -> list[Predicate]:
        """Return the parts of some windows that connections of their own read; a query is read over one."""
        column = self._source.window_column
        if column is None or self._query.known_columns() is None:
            return []
        columns = Columns(kinds(schema), column, self._source.unit_columns, self._zone)
        return parallel_parts(
            extents, column, columns, lambda window: self.cuts(window, self._part_rows, MOST_STEPS)
        )

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """The same for extents of one unit each, with the number of each in the column ``NUMBER``.

        Raises:
            ConfigurationError, SourceError: as for :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = pinned_struct(pinned)
        number, there = StructField(NUMBER, IntegerType()), self._there(schema)
        types = self._types(schema)
        rows = self._loader.query(spark, self._query.numbered(extents, there, types))
        read = self._read(rows, {**types, NUMBER: _NUMBER}, extents)
        return strict(read, StructType([*schema.fields, number]))

    def in_one_look(self, ask: Callable[[ReadsAbove], T], seconds: float | None = None) -> T:
        """Ask several questions over one connection, in one snapshot."""
        try:
            with client(self._connection, seconds) as opened:
                look = copy(self)
                look._opened = opened
                return ask(look)
        except SourceInterrupted as error:
            if seconds is None or not is_time_limit(error):
                raise
            raise SourceUnreachable(
                f"database {self._connection}: the look for new rows in {self._source.shown} was ended after {seconds:.0f} s, its time limit,"
                " since the database scans the rows. Create an index that begins with the watermark's column; of a query, on the column"
                " that it is made of"
            ) from None

    @contextmanager
    def _asking(self) -> Iterator[Client]:
        """The connection of the look, or one of its own."""
        if self._opened is not None:
            yield self._opened
        else:
            with client(self._connection) as opened:
                yield opened

    def observe(self, columns: Sequence[str], now: datetime) -> Observed:
        """Ask the database for its clock, the columns' types, and what its indexes tell."""
        with self._asking() as database:
            now = database.clock()
            described = self._described(database, columns)
            readable_types(database.describe(self._query.columns()), self._source.shown)
            kinds_of: dict[str, Kind] = {column.name: column.kind for column in described if column.kind}
            refused = {column.name: column.why for column in described if not column.kind}
            indexed, never_null = self._known(database)
            highest = {
                name: database.value(self._query.highest(name, kind))
                for name, kind in kinds_of.items()
                if name in indexed and kind not in ("text", "flag")
            }
            nulls = self._nulls(database, columns, indexed, never_null)
            source = self._identity(database)
            return Observed(now, kinds_of, highest, nulls, refused=refused, source=source)

    def _identity(self, database: Client) -> str | None:
        """What tells the tables that are read from others of their names, as JSON."""
        query = database.dialect.identity(self._listed.table_parts)
        rows = database.ask(query) if query is not None else ()
        tables = {name: id_ for _, name, id_ in rows if id_ is not None}
        return json.dumps({"server": rows[0][0], "tables": tables}, sort_keys=True) if tables else None

    def writers(self, columns: Sequence[str]) -> Writers | Untold:
        """Ask which transactions are open at this moment, whatever the snapshot of the look; the locks of a SELECT tell the tables behind a query."""
        with self._asking() as database:
            database.describe(self._query.only(columns))
            return open_writers(database, columns)

    def _described(self, database: Client, columns: Sequence[str]) -> Sequence[Column]:
        """Return the watermark's columns.

        Raises:
            SourceError: there are no such columns.
        """
        try:
            described = database.describe(self._query.only(columns))
        except Exception as error:
            if is_unknown_column(error):
                with client(self._connection) as other:  # PostgreSQL lets an error end the transaction
                    self._check_names(
                        columns, [column.name for column in other.describe(self._query.columns())]
                    )
            raise
        own = [column.own_name or column.name for column in described]
        alike = all(given.casefold() == name.casefold() for given, name in zip(columns, own, strict=True))
        if alike:
            self._check_names(columns, own)
        return described

    def _check_names(self, columns: Sequence[str], names: Sequence[str]) -> None:
        missing = [column for column in columns if column not in names]
        if missing:
            raise SourceError(
                f"watermark.columns: expected columns of {self._source.shown}, found {beside_known(missing, names)}. Name those that are there,"
                " or put the old names back at the source"
            )

    def _known(self, database: Client) -> tuple[set[str], set[str]]:
        """The columns that an index begins with, and those that are never NULL."""
        query = self._query.known_columns()
        rows = database.ask(query) if query is not None else ()
        return {row[0] for row in rows if row[1]}, {row[0] for row in rows if row[2]}

    def _nulls(
        self, database: Client, columns: Sequence[str], indexed: set[str], never_null: set[str]
    ) -> int | None:
        if never_null & set(columns):
            return 0
        without = AllOf(tuple(Among(column, (None,)) for column in columns))
        return int(database.value(self._query.count(without))) if indexed & set(columns) else None

    def cuts(self, range_: Range, rows: int, most: int) -> Sequence[Any]:
        """Walk along the column's index, if it has one; far into a range, by the database's statistics as long as they tell of it."""
        with self._asking() as database:
            if range_.column not in self._known(database)[0]:
                return ()
            cuts: list[Any] = []
            rest, asks_statistics = range_, True
            while len(cuts) < most:
                if asks_statistics and len(cuts) * rows >= self._walked_rows:
                    cuts += islice(self._spread_cuts(database, rest, rows), most - len(cuts))
                    rest, asks_statistics = replace(rest, lower=cuts[-1], lower_inclusive=False), False
                    continue
                value = database.value(self._query.nth(range_.column, rows_in([rest]), rows))
                if value is None or value == range_.upper:
                    break
                cuts.append(value)
                rest = replace(rest, lower=value, lower_inclusive=False)
            return cuts

    def _spread_cuts(self, database: Client, rest: Range, rows: int) -> Iterator[Any]:
        """What the statistics tell of where to cut the rest of a range; nothing if they tell nothing of it."""
        (described,) = database.describe(self._query.only([rest.column]))
        kind = described.kind
        query = self._query.spread(rest.column, kind) if kind in SPREAD_KINDS else None
        bounds = database.ask(query) if query is not None else ()
        if bounds:
            yield from Spread([bound for _, bound in bounds], bounds[0][0]).cuts(rest.lower, rest.upper, rows)

    def holds_any(self, rows: Predicate) -> bool:
        """Ask for one row."""
        with self._asking() as database:
            return bool(database.ask(self._query.some(rows)))

    def highest(self, column: str, rows: Predicate) -> Any:
        """Order them, or take the first of an index."""
        with self._asking() as database:
            (described,) = database.describe(self._query.only([column]))
            if described.kind is None or described.kind == "text":
                return database.value(self._query.last(column, rows))
            return database.value(self._query.highest(column, described.kind, rows))

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """One query, and one connection, for each part."""
        schema = pinned_struct(pinned)
        if not parts:
            return spark.createDataFrame([], schema)
        types = self._types(schema)
        if len(parts) == 1:
            loaded = self._loader.query(spark, self._query.matching(parts[0], types), later=True)
        else:
            loaded = self._loader.parts(spark, *self._query.in_parts(parts, types), later=True)
        rows = strict(self._read(loaded, types), schema, list(types))
        # The run has compared them with the source's own, and a look has asked the database for rows between the same bounds.
        return rows if has_fixed_texts(schema) else with_known_columns(rows, plain(schema))

    def failure(self, error: Exception) -> SourceError | None:
        """The SourceError for what made a write of a read frame fail; None if it was not the database."""
        failure = source_error(error, self._connection, self._source.shown)
        if failure is not None and is_undecodable(failure) and not self._source.placeholders:
            return self._undecodable() or failure
        return failure

    def _undecodable(self) -> SourceError | None:
        """The error for the first text that PostgreSQL cannot send; None if none is found."""
        with suppress(SourceError), self._asking() as database:
            for name, type_ in self._readable_types().items():
                if type_.data_type != "string":
                    continue
                for encoded, *texts in database.ask(self._query.undecodable(name)):
                    cells = zip(self._keys, texts, strict=True)
                    row = ", ".join(f"{key} = {text}" for key, text in cells if text is not None)
                    return undecodable_text(name, encoded, row, self._connection, self._source.shown)
        return None

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
        """Ask the database for the columns."""
        self._readable_types()

    def _readable_types(self) -> Mapping[str, ColumnType]:
        """What becomes of each column. The database is asked once for a run's slices.

        Raises:
            SourceError: no run can read one of them; it is named.
        """
        if self._described_types is None:
            with self._asking() as database:
                self._described_types = readable_types(
                    database.describe(self._query.columns()), self._source.shown
                )
        return self._described_types

    def _types(self, schema: StructType) -> Mapping[str, ColumnType]:
        """The types of the pinned columns that are there."""
        types = {name.casefold(): type_ for name, type_ in self._readable_types().items()}
        names = self._there(schema).fieldNames()
        if missing := [name for name in names if name.casefold() not in types]:
            raise SourceError(
                f"{self._source.shown}: expected the pinned columns, found no {', '.join(missing)}. Put the source back"
            )
        return {name: types[name.casefold()] for name in names}

    def _read(
        self, frame: DataFrame, types: Mapping[str, ColumnType], extents: Sequence[Extent] = ()
    ) -> DataFrame:
        return frame.select(
            *read_columns(
                types,
                self._keys,
                asked_texts(self._listed, self._zone, types, extents if self._replaces_units else ()),
            )
        )
