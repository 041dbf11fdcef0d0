"""Fetch an API's records page by page, and stage them below the lake.

See docs/reference/apis.md, All records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from partitions.api.document import JsonRecord
from partitions.api.field_names import FieldNames
from partitions.api.query_halving import CannotHalve, Query
from partitions.api.requests import ApiRequest
from partitions.api.values import kind_of_values
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.json_types import json_type
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.predicate import NOTHING
from partitions.sources import ApiSource
from partitions.unit_values import WORDS, ValueType
from resources.connections.api import ApiConnection
from resources.connections.places import Place
from resources.sources.api.client import ApiClient
from resources.sources.api.pages import TooManyRecords, iterate_pages
from resources.sources.api.positions import LocatedRecord, Positions, StagedRecords
from resources.sources.api.record_values import HighestValue, RecordValues, higher, lower
from resources.sources.source import NUMBER
from resources.staging import Staging


@dataclass
class StagedRequest:
    """The staged rows of one request.

    Attributes:
        label: the request, for errors.
        number: distinguishes its rows from those of other requests.
        files: relative to the staging folder.
        values: the highest value of each watched column.
        names: the names of its records' fields.
        misfit: the first value that a watched column does not hold, in words; None: there is none.
        positions: the positions of the records in the answers, by file path.
    """

    label: str
    number: int
    files: Sequence[SourceFile] = ()
    values: dict[str, Any] = field(default_factory=dict)
    names: FieldNames = field(default_factory=FieldNames)
    misfit: str | None = None
    positions: Positions = field(default_factory=dict)


class _QueryPart:
    """A query, and the lowest and highest values seen in its records, between which it can be cut."""

    def __init__(self, query: Query, fetcher: Fetcher) -> None:
        self.query, self._fetcher = query, fetcher
        self._lowest: Any = None
        self._highest: Any = None

    def records(self, records: Iterator[LocatedRecord]) -> Iterator[LocatedRecord]:
        """Yield the records that belong to the part, of all records that the API returns."""
        fetcher, query = self._fetcher, self.query
        if not fetcher.cuts_queries:
            yield from records
            return
        for located in records:
            value = fetcher.value_in(query, located.record)
            self._highest = higher(self._highest, value)
            self._lowest = lower(self._lowest, value)
            if fetcher.belongs_to(query, value):
                yield located

    def halves(self, error: TooManyRecords) -> tuple[Query, Query]:
        """Return the two queries to send instead.

        Raises:
            SourceError: the query cannot be halved.
        """
        try:
            return self._fetcher.halves(self.query, self._lowest, self._highest)
        except CannotHalve as why:
            raise error.with_reason(str(why)) from None


class Fetcher:
    """Fetches the records of queries and stages them, each query once per slice."""

    def __init__(
        self,
        connection: ApiConnection,
        source: ApiSource,
        dataflow: Dataflow,
        staging: Staging,
        values: RecordValues,
    ) -> None:
        """Configure the fetcher; nothing is opened yet."""
        self._connection, self._source, self._dataflow, self._staging = connection, source, dataflow, staging
        self._values, self._zone = values, dataflow.zone
        self._fetched: dict[str, StagedRequest] = {}
        self._fetched_in: Place | None = None

    @property
    def place(self) -> Place:
        """The place of the staged files."""
        return self._fetched_in or self._staging.place

    @property
    def named_columns(self) -> set[str]:
        """The columns whose times decide which rows are read."""
        window = {self._source.window_column} if self._source.window_column else set()
        return {*window, *self._dataflow.watermark.value_columns}

    def client(self, retry_for: timedelta | None = None, *, without_retries: bool = False) -> ApiClient:
        """Return a client that retries transient failures for ``retry_for``, or never if ``without_retries``."""
        return ApiClient(
            self._connection,
            int(self._source.max_page_bytes),
            retry_for=retry_for,
            without_retries=without_retries,
        )

    def fetch(self, query: Query, watched: Sequence[str] = ()) -> StagedRequest:
        """Return the staged rows of a query, fetched once per slice.

        A query that reaches the API's record limit is replaced by its halves.
        """
        self.forget_discarded()
        request = query.request
        cached = self._fetched.get(request.identity)
        if cached is not None and set(watched) <= cached.values.keys():
            return cached
        fetched = StagedRequest(self.label(request), len(self._fetched), values=dict.fromkeys(watched))
        highest = {name: HighestValue(self._kind_before_fetch(query, name)) for name in watched}
        collects_names = self._dataflow.unknown_fields == "check"
        folder, pending_queries, attempts = f"{NUMBER}={fetched.number}", [query], 0
        with self.client() as client:
            while pending_queries:
                part = _QueryPart(pending_queries.pop(), self)
                attempts += 1
                try:
                    with self._staging.lines(f"{folder}/page{attempts}") as lines:
                        staged = StagedRecords(lines)
                        for located in part.records(
                            self.records(client, part.query.request, prefetches=True)
                        ):
                            staged.write(located)
                            if collects_names:
                                fetched.names.add(located.record.value)
                            for name, highest_value in highest.items():
                                try:
                                    highest_value.add(
                                        self._values.to_column_value(located.record, name, highest_value.kind)
                                    )
                                except ValueError:
                                    fetched.misfit = fetched.misfit or _describe_misfit(
                                        located, name, highest_value.kind
                                    )
                except TooManyRecords as error:
                    pending_queries += reversed(part.halves(error))
                else:
                    fetched.files = [*fetched.files, *lines.files]
                    fetched.positions = {**fetched.positions, **staged.positions}
        fetched.values = {name: highest_value.value for name, highest_value in highest.items()}
        self._fetched[request.identity] = fetched
        return fetched

    def _kind_before_fetch(self, query: Query, column: str) -> ValueType | None:
        """Return a column's data type if it is known before its records are.

        A numeric bound does not tell which number type.
        """
        is_text = (
            query.range is not None and query.range.column == column and isinstance(query.range.lower, str)
        )
        return "text" if is_text else self._values.kind_in(NOTHING, column)

    def all_records(self, client: ApiClient, query: Query) -> Iterator[JsonRecord]:
        """Yield all records of a query; some occur more than once if it had to be halved."""
        pending_queries = [query]
        while pending_queries:
            part = _QueryPart(pending_queries.pop(), self)
            try:
                for located in part.records(self.records(client, part.query.request)):
                    yield located.record
            except TooManyRecords as error:
                pending_queries += reversed(part.halves(error))

    @property
    def cuts_queries(self) -> bool:
        """Whether queries are halved when they reach the API's record limit."""
        return self._source.max_records is not None

    def halves(self, query: Query, lowest: Any, highest: Any) -> tuple[Query, Query]:
        """Return the two halves of a query; raise CannotHalve if there are none."""
        return query.halves(self._source, self._zone, lowest, highest)

    def value_in(self, query: Query, record: JsonRecord) -> Any:
        """Return the value that decides which part of a query a record belongs to."""
        column = query.column or (query.range.column if query.range is not None else None)
        if column is None:
            return None
        is_bounded = query.range is not None and query.range.is_bounded
        kind = self._values.kind_in(
            query.range.rows if query.range is not None and is_bounded else NOTHING, column
        )
        if kind is None:
            kind = kind_of_values([record.value.get(column)])
        return self._values.value(record, column, kind)

    def belongs_to(self, query: Query, value: Any) -> bool:
        """Return whether a record with this value belongs to a part."""
        return query.column is None or query.contains(value, self._zone)

    def label(self, request: ApiRequest) -> str:
        """Return a request in words, for errors."""
        return f"API {request.method} {self._connection.redact_url(self._connection.url(request.path))}"

    def records(
        self, client: ApiClient, request: ApiRequest, *, prefetches: bool = False
    ) -> Iterator[LocatedRecord]:
        """Yield all records of a request.

        Raises:
            SourceError: code ``missing_column``: there are records, but none has a field that decides
            whether it is read.
        """
        names, count, has_any = self.named_columns, 0, False
        for page in iterate_pages(client, self._source, request, prefetches=prefetches):
            for number, record in enumerate(page.document.records, 1):
                count += 1
                has_any = has_any or not names.isdisjoint(record.value)
                yield LocatedRecord(page.where, page.number, number, record)
            del page  # else three pages are in memory when the next one is parsed
        if count and names and not has_any:
            raise SourceError(
                f"{self.label(request)}: expected a field {' or '.join(sorted(names))} in the records of its pages, "
                f"found none in {pluralize(count, 'record')}, so no row can be read. Correct the names in the "
                "definition, or source.records",
                code="missing_column",
            )

    def forget_discarded(self) -> None:
        """Forget the rows of a slice that is over."""
        folder = self._staging.folder
        if self._fetched_in is None or self._fetched_in.url != folder.url:
            self._fetched, self._fetched_in = {}, folder


def _describe_misfit(located: LocatedRecord, column: str, kind: ValueType | None) -> str:
    """Return what is wrong with a value that its column does not hold."""
    expected, value = WORDS[kind] if kind is not None else "a value", located.record.value[column]
    return f"{located.where}: record {located.number}: field {column}: expected {expected}, found {json_type(value)}"
