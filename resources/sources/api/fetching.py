"""Fetch the records of an API page by page, and stage them below the lake (docs/reference/apis.md, All records)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from partitions.api.document import JsonRecord
from partitions.api.field_names import FieldNames
from partitions.api.query_halving import CannotHalve, Query
from partitions.api.requests import Request
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
from resources.sources.api.pages import TooManyRecords, pages
from resources.sources.api.positions import Positions, Sent, StagedRecords
from resources.sources.api.record_values import Highest, RecordValues, higher, lower
from resources.sources.source import NUMBER
from resources.staging import Staging


@dataclass
class Fetched:
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


class _Part:
    """A query that is asked, with what is seen of its records on the way: where it could be cut."""

    def __init__(self, query: Query, fetcher: Fetcher) -> None:
        self.query, self._fetcher = query, fetcher
        self._lowest: Any = None
        self._highest: Any = None

    def records(self, records: Iterator[Sent]) -> Iterator[Sent]:
        """The records that belong to the part, of all that the API answers with."""
        fetcher, query = self._fetcher, self.query
        if not fetcher.cuts_queries:
            yield from records
            return
        for sent in records:
            value = fetcher.value_in(query, sent.record)
            self._highest = higher(self._highest, value)
            self._lowest = lower(self._lowest, value)
            if fetcher.belongs_to(query, value):
                yield sent

    def halves(self, error: TooManyRecords) -> tuple[Query, Query]:
        """Return what to ask instead.

        Raises:
            SourceError: there is nothing smaller.
        """
        try:
            return self._fetcher.halves(self.query, self._lowest, self._highest)
        except CannotHalve as why:
            raise error.not_cut(str(why)) from None


class Fetcher:
    """Asks an API for the records of queries, and stages them: each query once a slice."""

    def __init__(
        self,
        connection: ApiConnection,
        source: ApiSource,
        dataflow: Dataflow,
        staging: Staging,
        values: RecordValues,
    ) -> None:
        """Use an API; nothing is opened yet."""
        self._connection, self._source, self._dataflow, self._staging = connection, source, dataflow, staging
        self._values, self._zone = values, dataflow.zone
        self._fetched: dict[str, Fetched] = {}
        self._fetched_in: Place | None = None

    @property
    def place(self) -> Place:
        """Where the staged files are."""
        return self._fetched_in or self._staging.place

    @property
    def named_columns(self) -> set[str]:
        """The columns whose times tell which rows are wanted."""
        window = {self._source.window_column} if self._source.window_column else set()
        return {*window, *(self._dataflow.column.columns if self._dataflow.kind == "column" else ())}

    def client(self, retry_for: timedelta | None = None, *, once: bool = False) -> ApiClient:
        """Return a connection, which asks a page that fails in passing again until ``retry_for`` is over, or ``once``."""
        return ApiClient(self._connection, int(self._source.max_page_bytes), retry_for=retry_for, once=once)

    def fetch(self, query: Query, watched: Sequence[str] = ()) -> Fetched:
        """The rows of a query, staged, once a slice; those of its parts if the API does not give all of them at once."""
        self.forget_discarded()
        request = query.request
        cached = self._fetched.get(request.identity)
        if cached is not None and set(watched) <= cached.values.keys():
            return cached
        fetched = Fetched(self.shown(request), len(self._fetched), values=dict.fromkeys(watched))
        highest = {name: Highest(self._kind_fetched(query, name)) for name in watched}
        looks = self._dataflow.unknown_fields == "check"
        folder, waiting, attempts = f"{NUMBER}={fetched.number}", [query], 0
        with self.client() as client:
            while waiting:
                part = _Part(waiting.pop(), self)
                attempts += 1
                try:
                    with self._staging.lines(f"{folder}/page{attempts}") as lines:
                        staged = StagedRecords(lines)
                        for sent in part.records(self.records(client, part.query.request, ahead=True)):
                            staged.write(sent)
                            if looks:
                                fetched.names.add(sent.record.value)
                            for name, seen in highest.items():
                                try:
                                    seen.add(self._values.to_column_value(sent.record, name, seen.kind))
                                except ValueError:
                                    fetched.unfit = fetched.unfit or _unfit(sent, name, seen.kind)
                except TooManyRecords as error:
                    waiting += reversed(part.halves(error))
                else:
                    fetched.files = [*fetched.files, *lines.files]
                    fetched.positions = {**fetched.positions, **staged.positions}
        fetched.values = {name: seen.value for name, seen in highest.items()}
        self._fetched[request.identity] = fetched
        return fetched

    def _kind_fetched(self, query: Query, column: str) -> ValueType | None:
        """What a column holds, if that is known before its records are: a bound of a number tells not of which numbers."""
        is_text = (
            query.range is not None and query.range.column == column and isinstance(query.range.lower, str)
        )
        return "text" if is_text else self._values.kind_in(NOTHING, column)

    def all_records(self, client: ApiClient, query: Query) -> Iterator[JsonRecord]:
        """All records of a query, some of them more than once if it had to be cut."""
        waiting = [query]
        while waiting:
            part = _Part(waiting.pop(), self)
            try:
                for sent in part.records(self.records(client, part.query.request)):
                    yield sent.record
            except TooManyRecords as error:
                waiting += reversed(part.halves(error))

    @property
    def cuts_queries(self) -> bool:
        """Whether queries are cut that have as many records as the API gives at most."""
        return self._source.max_records is not None

    def halves(self, query: Query, lowest: Any, highest: Any) -> tuple[Query, Query]:
        """Return the two parts of a query; raise CannotHalve if it has none."""
        return query.halves(self._source, self._zone, lowest, highest)

    def value_in(self, query: Query, record: JsonRecord) -> Any:
        """Return the value of a record that tells which part of a query it belongs to."""
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

    def shown(self, request: Request) -> str:
        """A request in words, for errors."""
        return f"API {request.method} {self._connection.redact_url(self._connection.url(request.path))}"

    def records(self, client: ApiClient, request: Request, *, ahead: bool = False) -> Iterator[Sent]:
        """All records of a request.

        Raises:
            SourceError: code ``missing_column``: there are some, and none has a field that would tell whether it is wanted.
        """
        named, count, has_any = self.named_columns, 0, False
        for page in pages(client, self._source, request, ahead=ahead):
            for number, record in enumerate(page.document.records, 1):
                count += 1
                has_any = has_any or not named.isdisjoint(record.value)
                yield Sent(page.where, page.number, number, record)
            del page  # else three are in memory when the next one is parsed
        if count and named and not has_any:
            raise SourceError(
                f"{self.shown(request)}: expected a field {' or '.join(sorted(named))} in the records of its pages, found none in"
                f" {pluralize(count, 'record')}, so that no row would be read. Correct the names in the definition, or source.records",
                code="missing_column",
            )

    def forget_discarded(self) -> None:
        """What was fetched for a slice that is over is gone."""
        folder = self._staging.folder
        if self._fetched_in is None or self._fetched_in.url != folder.url:
            self._fetched, self._fetched_in = {}, folder


def _unfit(sent: Sent, column: str, kind: ValueType | None) -> str:
    """What is wrong with a value that its column does not hold."""
    expected, value = WORDS[kind] if kind is not None else "a value", sent.record.value[column]
    return (
        f"{sent.where}: record {sent.number}: field {column}: expected {expected}, found {json_type(value)}"
    )
