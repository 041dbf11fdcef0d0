"""Rows of an HTTP API: fetched page by page, staged below the lake, and read by Spark.

Every request asks for at least the rows of its slice. Spark filters out all others with the predicate that
deletes and checks use, so an API that ignores its parameters duplicates no row. See
docs/reference/apis.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from partitions.api.calendar_ranges import split_range
from partitions.api.query_halving import Query
from partitions.api.requests import request_for, requests_above, sample_request
from partitions.api.values import kind_of_values
from partitions.column.predicates import ColumnRange, ranges_of
from partitions.column.source import SourceObservation
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.loads import LackingColumn
from partitions.predicate import Predicate, columns_of
from partitions.sources import ApiSource
from partitions.target import ABSENT_COLUMN
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate, split_disjoint
from resources.connections.api import ApiConnection
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.api.fetching import Fetcher
from resources.sources.api.pages import iterate_pages
from resources.sources.api.record_values import RecordValues, higher
from resources.sources.api.sampling import SchemaSample
from resources.sources.api.staged_rows import StagedRows
from resources.sources.files.failures import BAD_RECORD
from resources.sources.schema import kinds, pinned_struct, strict
from resources.sources.source import NUMBER, ListsRows, ReadsAbove, RowSource, TellsCuts, TellsLacking
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")

_SAMPLE_REQUESTS = 20
"""The most requests that are tried until one has a record to infer a schema from."""

_LOOK_TIME = timedelta(seconds=20)
"""How long a short look retries a page: a sensor's tick has a minute."""


class ApiRows(RowSource, ReadsAbove, TellsCuts, TellsLacking, ListsRows):
    """A source of rows from an API."""

    def __init__(
        self, connection: ApiConnection, source: ApiSource, dataflow: Dataflow, staging: Staging
    ) -> None:
        """Configure the source; nothing is opened yet.

        Args:
            connection: how to reach the API.
            source: the source's definition.
            dataflow: the dataflow of the source.
            staging: where rows are staged for Spark.
        """
        self._source, self._dataflow = source, dataflow
        self._zone: tzinfo = dataflow.zone
        self._asks_once = False
        self._values = RecordValues(source)
        self._fetcher = Fetcher(connection, source, dataflow, staging, self._values)
        self._staged = StagedRows(source, dataflow, staging, self._fetcher)
        self._sample = SchemaSample(source, staging, self._fetcher, self._staged)

    # The schema

    def pin(self, spark: SparkSession) -> str | None:
        """Return the declared schema, or that of the first pages; None if they have no records.

        Raises:
            ConfigurationError: a column that the definition names is missing, or cannot be compared.
            SourceError: the API refuses, or does not answer.
        """
        return self._sample.pin(
            spark, [sample_request(self._source)] if not self._source.placeholders else []
        )

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """Return the declared schema, or that of the first pages of these extents; None without records.

        Raises:
            ConfigurationError, SourceError: as :meth:`pin`.
        """
        samples = split_disjoint(extents[:_SAMPLE_REQUESTS])
        return self._sample.pin(spark, (request_for(self._source, extent, self._zone) for extent in samples))

    @override
    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with the pinned schema; fields of rows are compared on reading.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        self._staged.files().check_schema(spark, pinned)

    # Windows and units

    @override
    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the records of all pages in order; pages are not retried, since the next look does that."""
        with self._fetcher.client(_LOOK_TIME, without_retries=True) as client:
            for page in iterate_pages(client, self._source, sample_request(self._source)):
                for record in page.document.records:
                    yield record.value

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
    ) -> DataFrame:
        """Return exactly the rows of these extents, with the pinned columns; fetch and stage them first.

        Raises:
            ConfigurationError, PlanError: nothing identifies a row's window or unit, or a request cannot
            express them.
            SourceError: the API refuses, does not answer, or sends an unexpected answer.
        """
        queries = self._queries_for(split_disjoint(extents), pinned)
        return strict(self._staged.read(spark, queries, pinned), self._columns(pinned))

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return the rows of extents of one unit each, with the extent's number in column ``NUMBER``.

        Raises:
            ConfigurationError, PlanError, SourceError: as :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        more = StructType([*self._columns(pinned).fields, StructField(NUMBER, IntegerType())])
        return strict(self._staged.read(spark, self._queries_for(extents, pinned), pinned), more)

    def _columns(self, pinned: str) -> StructType:
        """Return the columns of read rows: the pinned ones, and what a record lacks if the target asks for it."""
        from pyspark.sql.types import ArrayType, StringType, StructField, StructType

        marks = [ABSENT_COLUMN] if self._dataflow.target.keeps_missing_columns else []
        fields = [StructField(name, ArrayType(StringType())) for name in marks]
        return StructType([*pinned_struct(pinned).fields, *fields])

    def _queries_for(self, extents: Sequence[Extent], pinned: str) -> list[tuple[Query, str]]:
        """Return a query for each extent, with the SQL condition of its rows."""
        source = self._source
        sent_bounds = frozenset({"start", "end"}) if source.sends_window else frozenset()
        pinned_kinds = self._values.pinned = kinds(pinned_struct(pinned))
        columns = ExtentColumns(
            pinned_kinds,
            source.window_column,
            source.unit_columns,
            self._zone,
            source.placeholders | sent_bounds,
        )
        kind = pinned_kinds.get(source.window_column or "")
        return [
            (
                Query(request_for(source, extent, self._zone, kind), extent=extent, kind=kind),
                predicate_sql(extents_predicate([extent], columns), SPARK),
            )
            for extent in extents
        ]

    # Rows above a column watermark

    def in_one_look(self, ask: Callable[[ReadsAbove], T], seconds: float | None = None) -> T:
        """Run a short look; with a limit, pages are not retried, since sensor and ``list`` look again.

        An API has no snapshot that the look could read.
        """
        if seconds is None:
            return ask(self)  # reuses the staged rows
        short_look = copy(self)
        short_look._asks_once = True
        return ask(short_look)

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the run's time and the declared data types, without a request."""
        declared_kinds = {
            name: kind for name in columns if (kind := self._values.declared_kinds.get(name)) is not None
        }
        sent = (
            self._source.bounds(self._zone).floored if self._source.watermark_to_param is not None else None
        )
        return SourceObservation(now, declared_kinds, {}, highest_sendable=sent)

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Read pages until each column has a value, and return the columns' data types."""
        with self._fetcher.client(_LOOK_TIME) as client:
            records = [
                sent.record
                for sent in self._sample.sample_records(client, sample_request(self._source), columns, 1)
            ]
        if not records:
            return dict.fromkeys(columns)
        present_columns = [name for name in columns if any(name in record.value for record in records)]
        return {
            name: kind_of_values(record.value.get(name) for record in records) for name in present_columns
        }

    @override
    def cuts(self, range_: ColumnRange, rows: int, max_cuts: int) -> Sequence[Any]:
        """Return the ends of ``watermark_param_range`` inside a range; an API does not count rows."""
        split = self._source.watermark_param_range
        if split is None or not (isinstance(range_.lower, date) and isinstance(range_.upper, date)):
            return ()
        is_day = not isinstance(range_.lower, datetime)
        lower, upper = (_as_time(bound) for bound in (range_.lower, range_.upper))
        ends = [
            end
            for _, end in islice(split_range(lower, upper, split.amount, split.unit), max_cuts)
            if end != upper
        ]
        floored = self._source.bounds(self._zone).floored
        sent_bounds = dict.fromkeys(end.date() if is_day else floored(end) for end in ends)
        # In a repeated hour several ends may have the same text.
        return [end for end in sent_bounds if range_.holds_inside(end)]

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether a page has such a row; the first page has, if the API receives the lower bound."""
        column_kinds = {name: self._values.kind_in(rows, name) for name in columns_of(rows)}
        with self._fetcher.client(_LOOK_TIME, without_retries=self._asks_once) as client:
            return any(
                self._values.may_match(rows, record, column_kinds)
                for query in self._queries_above(rows)
                for record in self._fetcher.all_records(client, query)
            )

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column, reading all pages."""
        highest: Any = None
        column_kinds = {name: self._values.kind_in(rows, name) for name in (column, *columns_of(rows))}
        with self._fetcher.client() as client:
            for query in self._queries_above(rows):
                for record in self._fetcher.all_records(client, query):
                    if self._values.may_match(rows, record, column_kinds):
                        highest = higher(highest, self._values.value(record, column, column_kinds[column]))
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Fetch and stage rows, and return the highest value of each column; None: it has no value.

        Raises:
            SourceError: the API refuses, does not answer, or sends an unexpected answer.
        """
        highest: dict[str, Any] = dict.fromkeys(columns)
        for query in self._queries_above(rows):
            fetched = self._fetcher.fetch(query, columns)
            for name in columns:
                highest[name] = higher(highest[name], fetched.values.get(name))
            if fetched.misfit is not None and None in highest.values():
                raise SourceError(
                    f"{fetched.misfit}. Nothing of this slice was loaded: {self._staged.remedy(BAD_RECORD)}",
                    code=BAD_RECORD,
                )
        return highest

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """Return the rows of the parts with the pinned columns; fetch and stage those not yet staged."""
        queries: list[tuple[Query, str]] = []
        for part in parts:
            above, earlier = self._queries_above(part), list[str]()
            for query in above:
                condition = predicate_sql(
                    part if len(above) == 1 or query.range is None else query.range.rows, SPARK
                )
                # A row that is new in two columns is read by the first column's request.
                exclusions = [f"NOT coalesce({clause}, false)" for clause in earlier]
                queries.append((query, " AND ".join([f"({condition})", *exclusions])))
                earlier.append(f"({condition})")
        return strict(self._staged.read(spark, queries, pinned), self._columns(pinned))

    def _queries_above(self, rows: Predicate) -> list[Query]:
        queries = requests_above(self._source, ranges_of(rows), self._zone)
        columns = self._dataflow.column.columns
        whole = ColumnRange(columns[0], None, None) if len(columns) == 1 else None
        return [Query(request, range_ or whole) for request, range_ in queries]

    @override
    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no record of the last read has."""
        return self._staged.lacking(pinned)

    def failure(self, error: Exception) -> SourceError | None:
        """Return the SourceError for a record that made a write fail; None if no record did."""
        return self._staged.failure(error)


def _as_time(bound: date) -> datetime:
    return bound if isinstance(bound, datetime) else datetime.combine(bound, time.min)
