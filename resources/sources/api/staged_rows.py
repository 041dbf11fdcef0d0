"""Staged rows of an API: Spark reads, checks and explains them like any other files.

See docs/reference/apis.md, Schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from partitions.api.query_halving import Query
from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaEvolved, SourceError
from partitions.loads import LackingColumn
from partitions.sources import ApiSource, FilesSource
from resources.sources.api.fetching import Fetcher, StagedRequest
from resources.sources.api.positions import with_positions
from resources.sources.files.failures import UNKNOWN_FIELD
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.source import FileSource
from resources.sources.source import NUMBER
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StagedRows:
    """A reader of the rows that a fetcher stages."""

    def __init__(self, source: ApiSource, dataflow: Dataflow, staging: Staging, fetcher: Fetcher) -> None:
        """Use the given fetcher."""
        self._source, self._dataflow, self._staging, self._fetcher = source, dataflow, staging, fetcher
        self._last_read: tuple[SparkSession, str, Sequence[StagedRequest]] | None = None

    def read(self, spark: SparkSession, queries: Sequence[tuple[Query, str]], pinned: str) -> DataFrame:
        """Return the rows of queries that meet their conditions.

        Column ``NUMBER`` has the index of the first query whose condition a row meets.
        """
        from pyspark.sql import functions as F

        fetched = [self._fetcher.fetch(query) for query, _ in queries]
        staged_requests = list({staged.number: staged for staged in fetched}.values())
        numbered = _with_number_column(pinned)
        self._last_read = (spark, numbered, staged_requests)
        schema = json.loads(PinnedSchema.of(numbered).columns)
        # A closer check takes another read by Spark; most records are known from fetching to have no unknown fields.
        with_unknown_fields = [staged for staged in staged_requests if not staged.names.are_all_in(schema)]
        try:
            rows = self.files(follows_schema=bool(with_unknown_fields)).read(
                spark, [file for staged in staged_requests for file in staged.files], numbered
            )
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        except BadFile as bad:
            raise self._answer_error(bad, staged_requests) from bad
        cases = [
            f"WHEN {NUMBER} = {staged.number} AND ({condition}) THEN {number}"
            for number, (staged, (_, condition)) in enumerate(zip(fetched, queries, strict=True))
        ]
        number = F.expr(f"CASE {' '.join(cases)} END") if cases else F.lit(None).cast("int")
        return rows.withColumn(NUMBER, number).where(f"{NUMBER} IS NOT NULL")

    def files(self, *, follows_schema: bool = True) -> FileSource:
        """Return the staged files as a source of files.

        Args:
            follows_schema: whether unknown fields change the pinned schema, if the definition says so;
            False if there are certainly none.
        """
        dataflow = self._dataflow
        files = FilesSource.model_validate(
            {"type": "files", "path": "/", "format": "ndjson", "schema": self._source.schema_}
        )
        mode = dataflow.target.schema_mode if follows_schema else "strict"
        target = dataflow.target.model_copy(update={"origin_columns": False, "schema_mode": mode})
        return FileSource(
            self._fetcher.place,
            dataflow.model_copy(update={"source": files, "target": target}),
            self._staging,
        )

    def lacking(self, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no record of the last read has."""
        staged_requests = [
            staged for staged in (self._last_read[2] if self._last_read else ()) if staged.files
        ]
        names = PinnedSchema.of(pinned).struct.fieldNames() if staged_requests else ()
        return tuple(
            LackingColumn(name)
            for name in names
            if all(staged.names.lacks(name) for staged in staged_requests)
        )

    def failure(self, error: Exception) -> SourceError | None:
        """Return the SourceError for a record that made a write fail; None if no record did."""
        if self._last_read is None:
            return None
        spark, pinned, staged_requests = self._last_read
        files = {file.path: file for staged in staged_requests for file in staged.files}
        try:
            bad = self.files().find_bad_file(spark, files, pinned, error)
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        return self._answer_error(bad, staged_requests) if bad is not None else None

    def _unnumbered(self, evolved: SchemaEvolved) -> SchemaEvolved:
        """Return the schema change without the staged file, and without the number column."""
        return SchemaEvolved(
            f"the schema changes with {self._source.label}: {evolved.changes}",
            pinned=_unnumbered(evolved.pinned),
            changes=evolved.changes,
        )

    def _answer_error(self, bad: BadFile, staged_requests: Sequence[StagedRequest]) -> SourceError:
        """Return the error for a bad staged file as an error about answers: lines become records."""
        faulty = next(
            staged for staged in staged_requests if any(file.path == bad.path for file in staged.files)
        )
        why = with_positions(bad.why, faulty.label, faulty.positions.get(bad.path, ()))
        return SourceError(f"{why}. Nothing of this slice was loaded: {self.remedy(bad.code)}", code=bad.code)

    def remedy(self, code: str) -> str:
        """Return what to do about records that do not fit, by the code of their error."""
        name = self._dataflow.name
        reload_hint = (
            f"if the table has rows, this also takes `strandline state reset {name} --replace --reason TEXT`"
        )
        if code == UNKNOWN_FIELD:
            return (
                f"take new fields as columns with `schema_mode: merge` below target in dataflows/{name}.yaml, or leave them out with"
                f" `unknown_fields: ignore` at its top level, or declare them in source.schema: {reload_hint}"
            )
        return f"correct the values at the API, or declare a type in source.schema that holds them: {reload_hint}"


def _with_number_column(pinned: str) -> str:
    """Return the pinned schema with the number of a request, which is in its files' folder name."""
    number = {"name": NUMBER, "type": "integer", "nullable": True, "metadata": {}}
    return with_fields(pinned, lambda fields: [*fields, number], (NUMBER,))


def _unnumbered(pinned: str) -> str:
    """Return the pinned schema without the number of a request."""
    return with_fields(pinned, lambda fields: [field for field in fields if field["name"] != NUMBER], ())


def with_fields(
    pinned: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], folders: tuple[str, ...]
) -> str:
    """Return the pinned schema with other fields; fields without a type stay unchanged."""
    schema = PinnedSchema.of(pinned)
    columns = json.loads(schema.columns)
    columns["fields"] = change(columns["fields"])
    return PinnedSchema(json.dumps(columns), folders, schema.declared).to_text()
