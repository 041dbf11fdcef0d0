"""Rows of an HTTP API: fetched page by page, staged below the lake, and read by Spark from there (docs/source-api.md).

Every request asks for at least the rows that are wanted. What came beside them is filtered in Spark by the predicate that deletes and checks
use, so an API that takes no notice of its parameters doubles no row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from partitions.api.document import Record
from partitions.api.field_names import FieldNames
from partitions.api.queries import NotCut, Query
from partitions.api.ranges import ranges
from partitions.api.requests import Request, request_for, requests_above, sample_request
from partitions.api.values import SentNumber, as_text, kind_of_values, typed
from partitions.column.predicates import Range, ranges_of
from partitions.column.source import Observed
from partitions.dataflow import Dataflow
from partitions.ddl import Column, kinds_of, parse_ddl, rounded
from partitions.errors import BadFile, SchemaEvolved, SourceError
from partitions.json_types import json_type
from partitions.load import Lacking
from partitions.path.source import SourceFile
from partitions.plan import counted
from partitions.predicate import NOTHING, Predicate, columns_of, matches
from partitions.sources import ApiSource, FilesSource
from partitions.unit_values import TIMES, WORDS, Kind, kind_of_value
from partitions.window.extent import Extent
from partitions.window.predicates import Columns, disjoint, rows_of
from resources.connections.api import ApiConnection
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sources.api.client import ApiClient
from resources.sources.api.pages import TooManyRecords, pages
from resources.sources.api.positions import Positions, Sent, StagedRecords, with_positions
from resources.sources.files.failures import BAD_RECORD, UNKNOWN_FIELD
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.source import FileSource
from resources.sources.schema import check_columns, kinds, pinned_struct, strict, time_types
from resources.sources.source import NUMBER, ReadsAbove
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

_SAMPLE_PAGES, _SAMPLE_REQUESTS = 3, 20
"""Pages of a request that a schema is inferred from, and requests until one has a record."""

_LOOK = timedelta(seconds=20)
"""How long a short look asks for a page again that fails in passing: a sensor's tick has a minute."""


@dataclass
class _Fetched:
    """The rows of one request, staged.

    Attributes:
        shown: the request, for errors.
        number: that tells its rows from those of others.
        files: relative to the staging's folder.
        values: the highest value of each column that is watched.
        names: of the fields of its records.
        unfit: the first value of such a column that it does not hold, in words; None: there is none.
        positions: of the records in the answers, by the path of their file.
    """

    shown: str
    number: int
    files: Sequence[SourceFile] = ()
    values: dict[str, Any] = field(default_factory=dict)
    names: FieldNames = field(default_factory=FieldNames)
    unfit: str | None = None
    positions: Positions = field(default_factory=dict)


class _Highest:
    """The highest value of a column. If nothing tells what the column holds, the values do: one text among numbers makes texts of all."""

    def __init__(self, kind: Kind | None) -> None:
        self.kind = kind
        self._value: Any = None
        self._text: str | None = None
        self._has_text = False

    def add(self, value: Any) -> None:
        self._value = _higher(self._value, value)
        if self.kind is None and value is not None:
            self._text = _higher(self._text, as_text(value))
            self._has_text = self._has_text or isinstance(value, str)

    @property
    def value(self) -> Any:
        if self._has_text:
            return self._text
        return float(self._value) if isinstance(self._value, SentNumber) else self._value


class _Part:
    """A query that is asked, with what is seen of its records on the way: where it could be cut."""

    def __init__(self, query: Query, rows: ApiRows) -> None:
        self.query, self._rows = query, rows
        self._lowest: Any = None
        self._highest: Any = None

    def records(self, records: Iterator[Sent]) -> Iterator[Sent]:
        """The records that belong to the part, of all that the API answers with."""
        rows, query = self._rows, self.query
        if not rows.cuts_queries:
            yield from records
            return
        for sent in records:
            value = rows.value_in(query, sent.record)
            self._highest = _higher(self._highest, value)
            self._lowest = _lower(self._lowest, value)
            if rows.belongs_to(query, value):
                yield sent

    def halves(self, error: TooManyRecords) -> tuple[Query, Query]:
        """Return what to ask instead.

        Raises:
            SourceError: there is nothing smaller.
        """
        try:
            return self._rows.halves(self.query, self._lowest, self._highest)
        except NotCut as why:
            raise error.not_cut(str(why)) from None


class ApiRows:
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
        self._connection, self._source, self._dataflow, self._staging = connection, source, dataflow, staging
        self._zone: tzinfo = dataflow.zone
        self._asks_once = False
        self._fetched: dict[str, _Fetched] = {}
        self._fetched_in: Place | None = None
        self._last: tuple[SparkSession, str, Sequence[_Fetched]] | None = None
        self._pinned_kinds: Mapping[str, Kind] = {}

    # The schema

    def pin(self, spark: SparkSession) -> str | None:
        """The declared schema, or what the first pages hold; None if they hold nothing.

        Raises:
            ConfigurationError: a column that the definition names is not there, or cannot be compared.
            SourceError: the API refuses, or does not answer.
        """
        return self._pin(spark, [sample_request(self._source)] if not self._source.placeholders else [])

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """The same, by the first pages of these extents.

        Raises:
            ConfigurationError, SourceError: as :meth:`pin`.
        """
        return self._pin(spark, self._requests(extents[:_SAMPLE_REQUESTS]))

    def _requests(self, extents: Sequence[Extent]) -> Iterator[Request]:
        return (request_for(self._source, extent, self._zone) for extent in disjoint(extents))

    def _pin(self, spark: SparkSession, requests: Iterable[Request]) -> str | None:
        if self._source.schema_ is not None:
            pinned, sample = self._files().pin(spark, []), list[Sent]()
        else:
            sample = next((sent for request in requests if (sent := self._sample(request))), [])
            pinned = self._inferred(spark, sample) if sample else None
        if pinned is None:
            return None
        text = self._with_times(pinned, sample)
        check_columns(self._source, pinned_struct(text))
        return text

    def _inferred(self, spark: SparkSession, sample: Sequence[Sent]) -> str | None:
        """The schema of a sample. It is no file that a run could pass over."""
        self._forget_discarded()
        with self._staging.lines("sample/records") as lines:
            staged = StagedRecords(lines)
            for sent in sample:
                staged.write(sent)
        try:
            return self._files().pin(spark, lines.files)
        except BadFile as bad:
            why = with_positions(bad.why, sample[0].where, staged.positions.get(bad.path, ()))
            raise SourceError(f"{why}. Nothing was loaded: {self._remedy(bad.code)}", code=bad.code) from bad

    def _sample(self, request: Request) -> list[Sent]:
        """Records of the first pages."""
        with self._client() as client:
            return list(self._sampled(client, request, self._named_columns, _SAMPLE_PAGES))

    def _sampled(
        self, client: ApiClient, request: Request, columns: Iterable[str], at_least: int
    ) -> Iterator[Sent]:
        """Records of the first pages; of those behind them one for each column that had no value yet."""
        missing = set(columns)
        sampled = self._source.model_copy(update={"max_records": None})
        for page in pages(client, sampled, request):
            for number, record in enumerate(page.document.records, 1):
                has_more = {name for name in missing if record.value.get(name) is not None}
                missing -= has_more
                if page.number <= at_least or has_more:
                    yield Sent(page.where, page.number, number, record)
            if page.number >= at_least and not missing:
                return

    def _with_times(self, pinned: str, sample: Sequence[Sent]) -> str:
        """The inferred schema, in which columns that rows are found by hold what their texts say: JSON itself knows no times."""
        if self._source.schema_ is not None:
            return pinned
        named, types = self._named_columns, time_types()

        def with_time(field: dict[str, Any]) -> dict[str, Any]:
            if field["name"] not in named or field["type"] != "string":
                return field
            kind = kind_of_values(sent.record.value.get(field["name"]) for sent in sample)
            return field | {"type": types[kind].jsonValue()} if kind in TIMES else field

        return _with_fields(pinned, lambda fields: list(map(with_time, fields)), ())

    @property
    def _named_columns(self) -> set[str]:
        """The columns whose times tell which rows are wanted."""
        window = {self._source.window_column} if self._source.window_column else set()
        return {*window, *(self._dataflow.column.columns if self._dataflow.kind == "column" else ())}

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:  # noqa: ARG002 - of the source's own dataflow
        """Compare ``source.schema`` with what was pinned; the fields of rows are compared when they are read.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        self._files().check_schema(spark, pinned)

    # Windows and units

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002 - a record has all its fields
        """The records of all pages, in their order. A page that fails is asked for once: the next look asks again anyway."""
        with self._client(_LOOK, once=True) as client:
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
        asked = self._asked_for(disjoint(extents), pinned)
        return strict(self._rows(spark, asked, pinned), pinned_struct(pinned))

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """The same for extents of one unit each, with the number of each in the column ``NUMBER``.

        Raises:
            ConfigurationError, PlanError, SourceError: as for :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = pinned_struct(pinned)
        more = StructType([*schema.fields, StructField(NUMBER, IntegerType())])
        return strict(self._rows(spark, self._asked_for(extents, pinned), pinned), more)

    def _asked_for(self, extents: Sequence[Extent], pinned: str) -> list[tuple[Query, str]]:
        """A query for each extent, with the condition that its rows meet."""
        source = self._source
        said = frozenset({"start", "end"}) if source.window_is_said else frozenset()
        known = self._pinned_kinds = kinds(pinned_struct(pinned))
        columns = Columns(
            known,
            source.window_column,
            source.unit_columns,
            self._zone,
            source.placeholders | said,
        )
        kind = known.get(source.window_column or "")
        return [
            (
                Query(request_for(source, extent, self._zone, kind), extent=extent, kind=kind),
                sql(rows_of([extent], columns), SPARK),
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

    def observe(self, columns: Sequence[str], now: datetime) -> Observed:
        """Ask nothing: the clock is the run's, and of the columns only a declared schema tells."""
        known = {name: kind for name in columns if (kind := self._declared.get(name)) is not None}
        sent = self._source.bounds(self._zone).floored if self._source.sends_upper else None
        return Observed(now, known, {}, sent=sent)

    @cached_property
    def _declared(self) -> Mapping[str, Kind]:
        """What columns hold, by the declared schema."""
        return {} if self._source.schema_ is None else kinds_of(self._source.schema_)

    @cached_property
    def _declared_columns(self) -> Mapping[str, Column]:
        """Columns of the declared schema, by name."""
        return (
            {}
            if self._source.schema_ is None
            else {each.name: each for each in parse_ddl(self._source.schema_)}
        )

    def look_at(self, columns: Sequence[str]) -> Mapping[str, Kind | None]:
        """Read pages until each column has a value, and tell what columns of their records hold."""
        with self._client(_LOOK) as client:
            records = [
                sent.record for sent in self._sampled(client, sample_request(self._source), columns, 1)
            ]
        if not records:
            return dict.fromkeys(columns)
        there = [name for name in columns if any(name in record.value for record in records)]
        return {name: kind_of_values(record.value.get(name) for record in records) for name in there}

    def cuts(self, range_: Range, rows: int, most: int) -> Sequence[Any]:  # noqa: ARG002 - an API does not count rows
        """The ends of ``watermark_param_range``; an API does not count rows."""
        split = self._source.watermark_param_range
        if split is None or not (isinstance(range_.lower, date) and isinstance(range_.upper, date)):
            return ()
        is_day = not isinstance(range_.lower, datetime)
        lower, upper = (_as_time(bound) for bound in (range_.lower, range_.upper))
        ends = [
            end for _, end in islice(ranges(lower, upper, split.amount, split.unit), most) if end != upper
        ]
        floored = self._source.bounds(self._zone).floored
        said = dict.fromkeys(end.date() if is_day else floored(end) for end in ends)
        # In an hour that a clock repeats, several ends may be said by one text.
        return [end for end in said if range_.holds_inside(end)]

    def holds_any(self, rows: Predicate) -> bool:
        """Read pages until one holds such a row; of an API that is told the lower bound the first has one."""
        held = {name: self._kind_in(rows, name) for name in columns_of(rows)}
        with self._client(_LOOK, once=self._asks_once) as client:
            return any(
                self._may_match(rows, record, held)
                for query in self._above(rows)
                for record in self._all_records(client, query)
            )

    def highest(self, column: str, rows: Predicate) -> Any:
        """Read all pages."""
        highest: Any = None
        held = {name: self._kind_in(rows, name) for name in (column, *columns_of(rows))}
        with self._client() as client:
            for query in self._above(rows):
                for record in self._all_records(client, query):
                    if self._may_match(rows, record, held):
                        highest = _higher(highest, self._value(record, column, held[column]))
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Fetch and stage rows, and tell the highest value of columns in them; None: none has a value.

        Raises:
            SourceError: the API refuses, does not answer, or answers with something else than expected.
        """
        highest: dict[str, Any] = dict.fromkeys(columns)
        for query in self._above(rows):
            fetched = self._fetch(query, columns)
            for name in columns:
                highest[name] = _higher(highest[name], fetched.values.get(name))
            if fetched.unfit is not None and None in highest.values():
                raise SourceError(
                    f"{fetched.unfit}. Nothing of this slice was loaded: {self._remedy(BAD_RECORD)}",
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
                condition = sql(part if len(above) == 1 or query.range is None else query.range.rows, SPARK)
                # A row that two columns make new came with the request of the first.
                apart = [f"NOT coalesce({clause}, false)" for clause in earlier]
                asked.append((query, " AND ".join([f"({condition})", *apart])))
                earlier.append(f"({condition})")
        return strict(self._rows(spark, asked, pinned), pinned_struct(pinned))

    def _above(self, rows: Predicate) -> list[Query]:
        asked = requests_above(self._source, ranges_of(rows), self._zone)
        columns = self._dataflow.column.columns
        whole = Range(columns[0], None, None) if len(columns) == 1 else None
        return [Query(request, range_ or whole) for request, range_ in asked]

    def _kind_in(self, rows: Predicate, column: str) -> Kind | None:
        """What a column holds, by the declared schema, or the bounds that it is compared with."""
        bounds = (
            bound
            for range_ in ranges_of(rows)
            if range_.column == column
            for bound in (range_.lower, range_.upper)
        )
        return self._declared.get(column) or next(
            (kind_of_value(bound) for bound in bounds if bound is not None), self._pinned_kinds.get(column)
        )

    def _value(self, record: Record, column: str, kind: Kind | None) -> Any:
        """A value as it is compared; None for one that Spark will refuse."""
        try:
            return self._typed(record, column, kind)
        except ValueError:
            return None

    def _may_match(self, rows: Predicate, record: Record, held: Mapping[str, Kind | None]) -> bool:
        """Whether a record is one of some rows; one that cannot be compared is for Spark to refuse."""
        try:
            values = {name: self._typed(record, name, kind) for name, kind in held.items()}
            return matches(rows, values)
        except (ValueError, TypeError):
            return True

    def _typed(self, record: Record, column: str, kind: Kind | None) -> Any:
        """A value as its row holds it once it is loaded, which the bound of a slice must not lie below."""
        value, declared = typed(record.value.get(column), kind), self._declared_columns.get(column)
        return rounded(value, declared) if isinstance(value, Decimal) and declared is not None else value

    # Fetching

    def _client(self, retry_for: timedelta | None = None, *, once: bool = False) -> ApiClient:
        return ApiClient(self._connection, int(self._source.max_page_bytes), retry_for=retry_for, once=once)

    def _fetch(self, query: Query, watched: Sequence[str] = ()) -> _Fetched:
        """The rows of a query, staged, once a slice; those of its parts if the API does not give all of them at once."""
        self._forget_discarded()
        request = query.request
        known = self._fetched.get(request.identity)
        if known is not None and set(watched) <= known.values.keys():
            return known
        made = _Fetched(self._shown(request), len(self._fetched), values=dict.fromkeys(watched))
        highest = {name: _Highest(self._kind_fetched(query, name)) for name in watched}
        looks = self._dataflow.unknown_fields == "check"
        folder, waiting, attempts = f"{NUMBER}={made.number}", [query], 0
        with self._client() as client:
            while waiting:
                part = _Part(waiting.pop(), self)
                attempts += 1
                try:
                    with self._staging.lines(f"{folder}/page{attempts}") as lines:
                        staged = StagedRecords(lines)
                        for sent in part.records(self._records(client, part.query.request, ahead=True)):
                            staged.write(sent)
                            if looks:
                                made.names.add(sent.record.value)
                            for name, seen in highest.items():
                                try:
                                    seen.add(self._typed(sent.record, name, seen.kind))
                                except ValueError:
                                    made.unfit = made.unfit or _unfit(sent, name, seen.kind)
                except TooManyRecords as error:
                    waiting += reversed(part.halves(error))
                else:
                    made.files = [*made.files, *lines.files]
                    made.positions = {**made.positions, **staged.positions}
        made.values = {name: seen.value for name, seen in highest.items()}
        self._fetched[request.identity] = made
        return made

    def _kind_fetched(self, query: Query, column: str) -> Kind | None:
        """What a column holds, if that is known before its records are: a bound of a number tells not of which numbers."""
        is_text = (
            query.range is not None and query.range.column == column and isinstance(query.range.lower, str)
        )
        return "text" if is_text else self._kind_in(NOTHING, column)

    def _all_records(self, client: ApiClient, query: Query) -> Iterator[Record]:
        """All records of a query, some of them more than once if it had to be cut."""
        waiting = [query]
        while waiting:
            part = _Part(waiting.pop(), self)
            try:
                for sent in part.records(self._records(client, part.query.request)):
                    yield sent.record
            except TooManyRecords as error:
                waiting += reversed(part.halves(error))

    @property
    def cuts_queries(self) -> bool:
        """Whether queries are cut that have as many records as the API gives at most."""
        return self._source.max_records is not None

    def halves(self, query: Query, lowest: Any, highest: Any) -> tuple[Query, Query]:
        """Return the two parts of a query; raise NotCut if it has none."""
        return query.halves(self._source, self._zone, lowest, highest)

    def value_in(self, query: Query, record: Record) -> Any:
        """Return the value of a record that tells which part of a query it belongs to."""
        column = query.column or (query.range.column if query.range is not None else None)
        if column is None:
            return None
        is_bounded = query.range is not None and query.range.is_bounded
        kind = self._kind_in(query.range.rows if query.range is not None and is_bounded else NOTHING, column)
        if kind is None:
            kind = kind_of_values([record.value.get(column)])
        return self._value(record, column, kind)

    def belongs_to(self, query: Query, value: Any) -> bool:
        """Return whether a record with this value belongs to a part."""
        return query.column is None or query.has(value, self._zone)

    def _shown(self, request: Request) -> str:
        """A request in words, for errors."""
        return f"API {request.method} {self._connection.shown(self._connection.url(request.path))}"

    def _records(self, client: ApiClient, request: Request, *, ahead: bool = False) -> Iterator[Sent]:
        """All records of a request.

        Raises:
            SourceError: code ``missing_column``: there are some, and none has a field that would tell whether it is wanted.
        """
        named, count, has_any = self._named_columns, 0, False
        for page in pages(client, self._source, request, ahead=ahead):
            for number, record in enumerate(page.document.records, 1):
                count += 1
                has_any = has_any or not named.isdisjoint(record.value)
                yield Sent(page.where, page.number, number, record)
            del page  # else three are in memory when the next one is parsed
        if count and named and not has_any:
            raise SourceError(
                f"{self._shown(request)}: expected a field {' or '.join(sorted(named))} in the records of its pages, found none in"
                f" {counted(count, 'record')}, so that no row would be read. Correct the names in the definition, or source.records",
                code="missing_column",
            )

    def _forget_discarded(self) -> None:
        """What was fetched for a slice that is over is gone."""
        folder = self._staging.folder
        if self._fetched_in is None or self._fetched_in.url != folder.url:
            self._fetched, self._fetched_in = {}, folder

    def _rows(self, spark: SparkSession, asked: Sequence[tuple[Query, str]], pinned: str) -> DataFrame:
        """The rows of requests that meet their conditions, with the number of the first that a row meets in ``NUMBER``."""
        from pyspark.sql import functions as F

        fetched = [self._fetch(query) for query, _ in asked]
        used = list({each.number: each for each in fetched}.values())
        numbered = _numbered(pinned)
        self._last = (spark, numbered, used)
        schema = json.loads(PinnedSchema.of(numbered).columns)
        # To look closer is a read of its own, by Spark; most records were seen to have no other fields when they were fetched.
        strange = [each for each in used if not each.names.are_known(schema)]
        try:
            rows = self._files(follows=bool(strange)).read(
                spark, [file for each in used for file in each.files], numbered
            )
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        except BadFile as bad:
            raise self._blamed(bad, used) from bad
        cases = [
            f"WHEN {NUMBER} = {each.number} AND ({condition}) THEN {number}"
            for number, (each, (_, condition)) in enumerate(zip(fetched, asked, strict=True))
        ]
        number = F.expr(f"CASE {' '.join(cases)} END") if cases else F.lit(None).cast("int")
        return rows.withColumn(NUMBER, number).where(f"{NUMBER} IS NOT NULL")

    def _files(self, *, follows: bool = True) -> FileSource:
        """The staged files as a source of files: they are read, looked through and explained like any others.

        Args:
            follows: whether the pinned schema follows them, if the definition says so; False if they are known to have no other fields.
        """
        given = self._dataflow
        files = FilesSource.model_validate(
            {"type": "files", "path": "/", "format": "ndjson", "schema": self._source.schema_}
        )
        mode = given.target.schema_mode if follows else "strict"
        target = given.target.model_copy(update={"origin_columns": False, "schema_mode": mode})
        return FileSource(
            self._fetched_in or self._staging.place,
            given.model_copy(update={"source": files, "target": target}),
            self._staging,
        )

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[Lacking]:  # noqa: ARG002 - the records were seen as they were fetched
        """Return the pinned columns that no record of the rows that were read last has."""
        used = [each for each in (self._last[2] if self._last else ()) if each.files]
        names = PinnedSchema.of(pinned).struct.fieldNames() if used else ()
        return tuple(Lacking(name) for name in names if all(each.names.lack(name) for each in used))

    def failure(self, error: Exception) -> SourceError | None:
        """The SourceError for a record that made a write fail; None if it was none."""
        if self._last is None:
            return None
        spark, pinned, used = self._last
        files = {file.path: file for each in used for file in each.files}
        try:
            bad = self._files().find_bad_file(spark, files, pinned, error)
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        return self._blamed(bad, used) if bad is not None else None

    def _unnumbered(self, evolved: SchemaEvolved) -> SchemaEvolved:
        """The same without the file, and without the column that only staged rows have."""
        return SchemaEvolved(
            f"the schema changes with {self._source.shown}: {evolved.changes}",
            pinned=_unnumbered(evolved.pinned),
            changes=evolved.changes,
        )

    def _blamed(self, bad: BadFile, used: Sequence[_Fetched]) -> SourceError:
        """What is wrong with a staged file, as what is wrong with the answers to a request; a line is a record."""
        of = next(each for each in used if any(file.path == bad.path for file in each.files))
        why = with_positions(bad.why, of.shown, of.positions.get(bad.path, ()))
        return SourceError(
            f"{why}. Nothing of this slice was loaded: {self._remedy(bad.code)}", code=bad.code
        )

    def _remedy(self, code: str) -> str:
        name = self._dataflow.name
        again = (
            f"where the table has rows, that takes `strandline state reset {name} --replace --reason TEXT`"
        )
        if code == UNKNOWN_FIELD:
            return (
                f"take new fields as columns with `schema_mode: merge` below target in dataflows/{name}.yaml, or leave them out with"
                f" `unknown_fields: ignore` at its top level, or declare them in source.schema: {again}"
            )
        return f"have the API send what the column holds, or declare a type in source.schema that holds it: {again}"


def _unfit(sent: Sent, column: str, kind: Kind | None) -> str:
    """What is wrong with a value that its column does not hold."""
    expected, value = WORDS[kind] if kind is not None else "a value", sent.record.value[column]
    return (
        f"{sent.where}: record {sent.number}: field {column}: expected {expected}, found {json_type(value)}"
    )


def _numbered(pinned: str) -> str:
    """The pinned schema with the number of a request, which stands in the folder of its files."""
    number = {"name": NUMBER, "type": "integer", "nullable": True, "metadata": {}}
    return _with_fields(pinned, lambda fields: [*fields, number], (NUMBER,))


def _unnumbered(pinned: str) -> str:
    """The pinned schema without the number of a request."""
    return _with_fields(pinned, lambda fields: [field for field in fields if field["name"] != NUMBER], ())


def _with_fields(
    pinned: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], folders: tuple[str, ...]
) -> str:
    """The pinned schema with other fields; those that have no type yet stay what they are."""
    schema = PinnedSchema.of(pinned)
    columns = json.loads(schema.columns)
    columns["fields"] = change(columns["fields"])
    return PinnedSchema(json.dumps(columns), folders, schema.declared).to_text()


def _as_time(bound: date) -> datetime:
    return bound if isinstance(bound, datetime) else datetime.combine(bound, time.min)


def _higher(one: Any, other: Any) -> Any:
    return _chosen(max, one, other)


def _lower(one: Any, other: Any) -> Any:
    return _chosen(min, one, other)


def _chosen(choose: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    try:
        return choose(one, other)
    except TypeError:  # of two kinds: Spark will refuse one of them
        return one
