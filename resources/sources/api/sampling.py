"""Infer the schema of an API's records from its first pages (docs/reference/apis.md, Schema)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from partitions.api.requests import Request
from partitions.api.values import kind_of_values
from partitions.errors import BadFile, SourceError
from partitions.sources import ApiSource
from partitions.unit_values import TIMES
from resources.sources.api.client import ApiClient
from resources.sources.api.fetching import Fetcher
from resources.sources.api.pages import pages
from resources.sources.api.positions import Sent, StagedRecords, with_positions
from resources.sources.api.staged_rows import StagedRows, with_fields
from resources.sources.schema import check_columns, pinned_struct, time_types
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SAMPLE_PAGES = 3
"""Pages of a request that a schema is inferred from."""


class SchemaSample:
    """Reads the first pages of an API."""

    def __init__(self, source: ApiSource, staging: Staging, fetcher: Fetcher, rows: StagedRows) -> None:
        """Use what asks the API, and what reads staged records."""
        self._source, self._staging, self._fetcher, self._rows = source, staging, fetcher, rows

    def pin(self, spark: SparkSession, requests: Iterable[Request]) -> str | None:
        """Return the declared schema, or that of the first request that has records; None if none has.

        Raises:
            ConfigurationError: a column that the definition names is not there, or cannot be compared.
            SourceError: the API refuses, or does not answer.
        """
        if self._source.schema_ is not None:
            pinned, sample = self._rows.files().pin(spark, []), list[Sent]()
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
        self._fetcher.forget_discarded()
        with self._staging.lines("sample/records") as lines:
            staged = StagedRecords(lines)
            for sent in sample:
                staged.write(sent)
        try:
            return self._rows.files().pin(spark, lines.files)
        except BadFile as bad:
            why = with_positions(bad.why, sample[0].where, staged.positions.get(bad.path, ()))
            raise SourceError(
                f"{why}. Nothing was loaded: {self._rows.remedy(bad.code)}", code=bad.code
            ) from bad

    def _sample(self, request: Request) -> list[Sent]:
        """Records of the first pages."""
        with self._fetcher.client() as client:
            return list(self.sampled(client, request, self._fetcher.named_columns, _SAMPLE_PAGES))

    def sampled(
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
        named, types = self._fetcher.named_columns, time_types()

        def with_time(field: dict[str, Any]) -> dict[str, Any]:
            if field["name"] not in named or field["type"] != "string":
                return field
            kind = kind_of_values(sent.record.value.get(field["name"]) for sent in sample)
            return field | {"type": types[kind].jsonValue()} if kind in TIMES else field

        return with_fields(pinned, lambda fields: list(map(with_time, fields)), ())
