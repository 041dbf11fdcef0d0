"""Rows of an HTTP API: fetched page by page, staged below the lake, and read by Spark from there (docs/reference/apis.md).

Every request asks for at least the rows that are wanted. What came beside them is filtered in Spark by the predicate that deletes and checks
use, so an API that takes no notice of its parameters doubles no row.
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
from partitions.api.requests import Request, request_for, requests_above, sample_request
from partitions.api.values import kind_of_values
from partitions.column.predicates import ColumnRange, ranges_of
from partitions.column.source import SourceObservation
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.loads import LackingColumn
from partitions.predicate import Predicate, columns_of
from partitions.sources import ApiSource
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from partitions.window.predicates import WindowColumns, extents_predicate, split_disjoint
from resources.connections.api import ApiConnection
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.api.fetching import Fetcher
from resources.sources.api.pages import pages
from resources.sources.api.record_values import RecordValues, higher
from resources.sources.api.sampling import SchemaSample
from resources.sources.api.staged_rows import StagedRows
from resources.sources.files.failures import BAD_RECORD
from resources.sources.schema import kinds, pinned_struct, strict
from resources.sources.source import NUMBER, ListsRows, ReadsAbove, RowSource, TellsCuts, TellsLacking
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

_SAMPLE_REQUESTS = 20
"""Requests that are asked until one has a record to infer a schema from."""

_LOOK = timedelta(seconds=20)
"""How long a short look asks for a page again that fails in passing: a sensor's tick has a minute."""


class ApiRows(RowSource, ReadsAbove, TellsCuts, TellsLacking, ListsRows):
    """Reads an API."""

    def __init__(
        self, connection: ApiConnection, source: ApiSource, dataflow: Dataflow, staging: Staging
    ) -> None:
        """Use an API; nothing is opened yet.

        Args:
            connection: how it is reached.
            source: what is read of it.
            dataflow: which the source is of.
            staging: where rows are put for Spark.
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
        """The declared schema, or what the first pages hold; None if they hold nothing.

        Raises:
            ConfigurationError: a column that the definition names is not there, or cannot be compared.
            SourceError: the API refuses, or does not answer.
        """
        return self._sample.pin(
            spark, [sample_request(self._source)] if not self._source.placeholders else []
        )

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """The same, by the first pages of these extents.

        Raises:
            ConfigurationError, SourceError: as :meth:`pin`.
        """
        return self._sample.pin(spark, self._requests(extents[:_SAMPLE_REQUESTS]))

    def _requests(self, extents: Sequence[Extent]) -> Iterator[Request]:
        return (request_for(self._source, extent, self._zone) for extent in split_disjoint(extents))

    @override
    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with what was pinned; the fields of rows are compared when they are read.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        self._staged.files().check_schema(spark, pinned)

    # Windows and units

    @override
    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The records of all pages, in their order. A page that fails is asked for once: the next look asks again anyway."""
        with self._fetcher.client(_LOOK, once=True) as client:
            for page in pages(client, self._source, sample_request(self._source)):
                for record in page.document.records:
                    yield record.value

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
    ) -> DataFrame:
        """Exactly the rows of these extents, with the pinned columns in their order. They are fetched and staged now.

        Raises:
            ConfigurationError, PlanError: nothing tells a row's window or unit, or a request cannot say them.
            SourceError: the API refuses, does not answer, or answers with something else than expected.
        """
        asked = self._asked_for(split_disjoint(extents), pinned)
        return strict(self._staged.read(spark, asked, pinned), pinned_struct(pinned))

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """The same for extents of one unit each, with the number of each in the column ``NUMBER``.

        Raises:
            ConfigurationError, PlanError, SourceError: as for :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = pinned_struct(pinned)
        more = StructType([*schema.fields, StructField(NUMBER, IntegerType())])
        return strict(self._staged.read(spark, self._asked_for(extents, pinned), pinned), more)

    def _asked_for(self, extents: Sequence[Extent], pinned: str) -> list[tuple[Query, str]]:
        """A query for each extent, with the condition that its rows meet."""
        source = self._source
        said = frozenset({"start", "end"}) if source.sends_window else frozenset()
        pinned_kinds = self._values.pinned = kinds(pinned_struct(pinned))
        columns = WindowColumns(
            pinned_kinds,
            source.window_column,
            source.unit_columns,
            self._zone,
            source.placeholders | said,
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
        """Ask for each page once if there is a limit: the sensor and ``list`` look again anyway. An API answers as of no moment."""
        if seconds is None:
            return ask(self)  # it keeps what it has fetched
        look = copy(self)
        look._asks_once = True
        return ask(look)

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Ask nothing: the clock is the run's, and of the columns only a declared schema tells."""
        declared_kinds = {
            name: kind for name in columns if (kind := self._values.declared.get(name)) is not None
        }
        sent = (
            self._source.bounds(self._zone).floored if self._source.watermark_to_param is not None else None
        )
        return SourceObservation(now, declared_kinds, {}, highest_sendable=sent)

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Read pages until each column has a value, and tell what columns of their records hold."""
        with self._fetcher.client(_LOOK) as client:
            records = [
                sent.record for sent in self._sample.sampled(client, sample_request(self._source), columns, 1)
            ]
        if not records:
            return dict.fromkeys(columns)
        there = [name for name in columns if any(name in record.value for record in records)]
        return {name: kind_of_values(record.value.get(name) for record in records) for name in there}

    @override
    def cuts(self, range_: ColumnRange, rows: int, most: int) -> Sequence[Any]:
        """The ends of ``watermark_param_range``; an API does not count rows."""
        split = self._source.watermark_param_range
        if split is None or not (isinstance(range_.lower, date) and isinstance(range_.upper, date)):
            return ()
        is_day = not isinstance(range_.lower, datetime)
        lower, upper = (_as_time(bound) for bound in (range_.lower, range_.upper))
        ends = [
            end
            for _, end in islice(split_range(lower, upper, split.amount, split.unit), most)
            if end != upper
        ]
        floored = self._source.bounds(self._zone).floored
        said = dict.fromkeys(end.date() if is_day else floored(end) for end in ends)
        # In an hour that a clock repeats, several ends may be said by one text.
        return [end for end in said if range_.holds_inside(end)]

    def holds_any(self, rows: Predicate) -> bool:
        """Read pages until one holds such a row; of an API that is told the lower bound the first has one."""
        column_kinds = {name: self._values.kind_in(rows, name) for name in columns_of(rows)}
        with self._fetcher.client(_LOOK, once=self._asks_once) as client:
            return any(
                self._values.may_match(rows, record, column_kinds)
                for query in self._above(rows)
                for record in self._fetcher.all_records(client, query)
            )

    def highest(self, column: str, rows: Predicate) -> Any:
        """Read all pages."""
        highest: Any = None
        column_kinds = {name: self._values.kind_in(rows, name) for name in (column, *columns_of(rows))}
        with self._fetcher.client() as client:
            for query in self._above(rows):
                for record in self._fetcher.all_records(client, query):
                    if self._values.may_match(rows, record, column_kinds):
                        highest = higher(highest, self._values.value(record, column, column_kinds[column]))
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Fetch and stage rows, and tell the highest value of columns in them; None: none has a value.

        Raises:
            SourceError: the API refuses, does not answer, or answers with something else than expected.
        """
        highest: dict[str, Any] = dict.fromkeys(columns)
        for query in self._above(rows):
            fetched = self._fetcher.fetch(query, columns)
            for name in columns:
                highest[name] = higher(highest[name], fetched.values.get(name))
            if fetched.unfit is not None and None in highest.values():
                raise SourceError(
                    f"{fetched.unfit}. Nothing of this slice was loaded: {self._staged.remedy(BAD_RECORD)}",
                    code=BAD_RECORD,
                )
        return highest

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """Fetch and stage the rows of the parts, one after another, unless that was done for the same bounds; with the pinned columns."""
        asked: list[tuple[Query, str]] = []
        for part in parts:
            above, earlier = self._above(part), list[str]()
            for query in above:
                condition = predicate_sql(
                    part if len(above) == 1 or query.range is None else query.range.rows, SPARK
                )
                # A row that two columns make new came with the request of the first.
                apart = [f"NOT coalesce({clause}, false)" for clause in earlier]
                asked.append((query, " AND ".join([f"({condition})", *apart])))
                earlier.append(f"({condition})")
        return strict(self._staged.read(spark, asked, pinned), pinned_struct(pinned))

    def _above(self, rows: Predicate) -> list[Query]:
        asked = requests_above(self._source, ranges_of(rows), self._zone)
        columns = self._dataflow.column.columns
        whole = ColumnRange(columns[0], None, None) if len(columns) == 1 else None
        return [Query(request, range_ or whole) for request, range_ in asked]

    @override
    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no record of the rows that were read last has."""
        return self._staged.lacking(pinned)

    def failure(self, error: Exception) -> SourceError | None:
        """The SourceError for a record that made a write fail; None if it was none."""
        return self._staged.failure(error)


def _as_time(bound: date) -> datetime:
    return bound if isinstance(bound, datetime) else datetime.combine(bound, time.min)
