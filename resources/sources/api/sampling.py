"""Infer the schema of an API's records from its first pages (docs/reference/apis.md, Schema)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from partitions.api.requests import ApiRequest
from partitions.api.values import kind_of_values
from partitions.errors import BadFile, SourceError
from partitions.sources import ApiSource
from partitions.unit_values import TIMES
from resources.sources.api.client import ApiClient
from resources.sources.api.fetching import Fetcher
from resources.sources.api.pages import iterate_pages
from resources.sources.api.positions import LocatedRecord, StagedRecords, with_positions
from resources.sources.api.staged_rows import StagedRows, with_fields
from resources.sources.schema import check_columns, pinned_struct, time_types
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SAMPLE_PAGES = 3
"""The most pages of a request that a schema is inferred from."""


class SchemaSample:
    """Infers a schema from the first pages of an API."""

    def __init__(self, source: ApiSource, staging: Staging, fetcher: Fetcher, rows: StagedRows) -> None:
        """Use the given fetcher and reader of staged records."""
        self._source, self._staging, self._fetcher, self._rows = source, staging, fetcher, rows

    def pin(self, spark: SparkSession, requests: Iterable[ApiRequest]) -> str | None:
        """Return the declared schema, or the inferred one of the first request with records.

        None if no request has records.

        Raises:
            ConfigurationError: a column that the definition names is missing, or cannot be compared.
            SourceError: the API refuses, or does not answer.
        """
        if self._source.schema_ is not None:
            pinned, sample = self._rows.files().pin(spark, []), list[LocatedRecord]()
        else:
            sample = next((located for request in requests if (located := self._sample(request))), [])
            pinned = self._infer(spark, sample) if sample else None
        if pinned is None:
            return None
        text = pinned if self._source.schema_ is not None else self._fit_to_records(pinned, sample)
        check_columns(self._source, pinned_struct(text))
        return text

    def _infer(self, spark: SparkSession, sample: Sequence[LocatedRecord]) -> str | None:
        """Return the schema of a sample; raise SourceError for a bad record, which no run could skip."""
        self._fetcher.forget_discarded()
        with self._staging.lines("sample/records") as lines:
            staged = StagedRecords(lines)
            for located in sample:
                staged.write(located)
        try:
            return self._rows.files().pin(spark, lines.files)
        except BadFile as bad:
            why = with_positions(bad.why, sample[0].where, staged.positions.get(bad.path, ()))
            raise SourceError(
                f"{why}. Nothing was loaded: {self._rows.remedy(bad.code)}", code=bad.code
            ) from bad

    def _sample(self, request: ApiRequest) -> list[LocatedRecord]:
        """Return the records of the first pages."""
        with self._fetcher.client() as client:
            return list(self.sample_records(client, request, self._fetcher.named_columns, _SAMPLE_PAGES))

    def sample_records(
        self, client: ApiClient, request: ApiRequest, columns: Iterable[str], at_least: int
    ) -> Iterator[LocatedRecord]:
        """Yield the records of the first pages; after them only records with a column's first value."""
        missing = set(columns)
        unlimited_source = self._source.model_copy(update={"max_records": None})
        for page in iterate_pages(client, unlimited_source, request):
            for number, record in enumerate(page.document.records, 1):
                has_more = {name for name in missing if record.value.get(name) is not None}
                missing -= has_more
                if page.number <= at_least or has_more:
                    yield LocatedRecord(page.where, page.number, number, record)
            if page.number >= at_least and not missing:
                return

    def _fit_to_records(self, pinned: str, sample: Sequence[LocatedRecord]) -> str:
        """Return the inferred schema in the order of the records' fields, with times where they are needed.

        A column that decides which rows are read gets a time type. JSON itself has no times: their texts decide.
        """
        named_columns, types = self._fetcher.named_columns, time_types()
        names = dict.fromkeys(name for located in sample for name in located.record.value)
        places = {name: place for place, name in enumerate(names)}

        def with_time(field: dict[str, Any]) -> dict[str, Any]:
            if field["name"] not in named_columns or field["type"] != "string":
                return field
            kind = kind_of_values(located.record.value.get(field["name"]) for located in sample)
            return field | {"type": types[kind].jsonValue()} if kind in TIMES else field

        def fit(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return sorted(map(with_time, fields), key=lambda field: places[field["name"]])

        return with_fields(pinned, fit, ())
