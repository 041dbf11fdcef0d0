"""A closer look at files that are bad: what is wrong with each, in words, and which others are bad in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.failures import (
    BAD_HEADER,
    BAD_RECORD,
    OPEN_QUOTE,
    UNKNOWN_FIELD,
    bad_header,
    bad_record,
    open_quote,
    unknown_field,
)
from resources.sources.files.inspection import FileInspector
from resources.sources.files.lines import line_of, line_with_field
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BadFiles:
    """Looks at the files of one source."""

    def __init__(self, place: Place, inspector: FileInspector, dataflow: Dataflow) -> None:
        """Use what looks at the files of a dataflow, and its policies."""
        self._place = place
        self._inspector = inspector
        self._dataflow = dataflow

    def misleading(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Files that Spark would load otherwise than they are meant, without a word: with an open quote, or unknown fields."""
        yield from self._with_open_quotes(spark, files)
        yield from self._with_unknown_fields(spark, files, pinned)

    def _with_open_quotes(self, spark: SparkSession, files: Sequence[SourceFile]) -> Iterator[BadFile]:
        lines = self._inspector.open_quotes(spark, files) if files else {}
        for file in files:
            if file.path in lines:
                yield open_quote(file.path, line_of(self._place, file.path, lines[file.path]))

    def _with_unknown_fields(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Files with fields that the pinned schema lacks, in their order; none if such fields are left out (``unknown_fields: ignore``)."""
        if self._dataflow.unknown_fields == "ignore" or not files:
            return
        names_of = self._inspector.unknown(spark, files, pinned)
        is_lines = self._dataflow.files.format == "ndjson"
        for file in files:
            if names := names_of.get(file.path):
                line = line_with_field(self._place, file.path, names[0]) if is_lines else None
                yield unknown_field(file.path, names, line, self._dataflow.name)

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """What is wrong with a file that Spark has failed at, if its header or a record of it tells."""
        return self._header(file, pinned) or next(iter(self._records(spark, [file], pinned)), None)

    def alike(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, bad: BadFile
    ) -> list[BadFile]:
        """The files that are bad as this one is, as far as one look tells."""
        if bad.code == BAD_RECORD:
            return self._records(spark, files, pinned)
        if bad.code == BAD_HEADER:
            return [header for file in files if (header := self._header(file, pinned))]
        if bad.code == OPEN_QUOTE:
            return list(self._with_open_quotes(spark, files))
        return list(self._with_unknown_fields(spark, files, pinned)) if bad.code == UNKNOWN_FIELD else []

    def _header(self, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        expected = self._inspector.expected_header(file.path, pinned)
        header = self._inspector.header(file.path) if expected is not None else None
        if expected is None or header is None or _folded(expected) == _folded(header):
            return None
        return bad_header(file.path, expected, header)

    def _records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> list[BadFile]:
        try:
            records = self._inspector.bad_records(spark, files, pinned)
        except Exception:  # noqa: BLE001 - looking closer is a courtesy; whatever is bad is found when it is written
            return []
        return [
            bad_record(
                path,
                record,
                line_of(self._place, path, record.text) if self._dataflow.files.format != "json" else None,
                show=self._dataflow.show_bad_records,
            )
            for path, record in records.items()
        ]


def _folded(names: Sequence[str]) -> list[str]:
    """As Spark compares them."""
    return [name.lower() for name in names]
