"""Rows of an API that are staged: Spark reads them, looks through them and explains them like any other files (docs/reference/apis.md, Schema)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from partitions.api.query_halving import Query
from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaEvolved, SourceError
from partitions.loads import LackingColumn
from partitions.sources import ApiSource, FilesSource
from resources.sources.api.fetching import Fetched, Fetcher
from resources.sources.api.positions import with_positions
from resources.sources.files.failures import UNKNOWN_FIELD
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.source import FileSource
from resources.sources.source import NUMBER
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StagedRows:
    """Reads what was fetched."""

    def __init__(self, source: ApiSource, dataflow: Dataflow, staging: Staging, fetcher: Fetcher) -> None:
        """Use what a fetcher stages."""
        self._source, self._dataflow, self._staging, self._fetcher = source, dataflow, staging, fetcher
        self._last: tuple[SparkSession, str, Sequence[Fetched]] | None = None

    def read(self, spark: SparkSession, queries: Sequence[tuple[Query, str]], pinned: str) -> DataFrame:
        """The rows of requests that meet their conditions, with the number of the first that a row meets in ``NUMBER``."""
        from pyspark.sql import functions as F

        fetched = [self._fetcher.fetch(query) for query, _ in queries]
        used = list({staged.number: staged for staged in fetched}.values())
        numbered = _numbered(pinned)
        self._last = (spark, numbered, used)
        schema = json.loads(PinnedSchema.of(numbered).columns)
        # To look closer is a read of its own, by Spark; most records were seen to have no other fields when they were fetched.
        strange = [staged for staged in used if not staged.names.are_all_in(schema)]
        try:
            rows = self.files(follows=bool(strange)).read(
                spark, [file for staged in used for file in staged.files], numbered
            )
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        except BadFile as bad:
            raise self._blamed(bad, used) from bad
        cases = [
            f"WHEN {NUMBER} = {staged.number} AND ({condition}) THEN {number}"
            for number, (staged, (_, condition)) in enumerate(zip(fetched, queries, strict=True))
        ]
        number = F.expr(f"CASE {' '.join(cases)} END") if cases else F.lit(None).cast("int")
        return rows.withColumn(NUMBER, number).where(f"{NUMBER} IS NOT NULL")

    def files(self, *, follows: bool = True) -> FileSource:
        """The staged files as a source of files: they are read, looked through and explained like any others.

        Args:
            follows: whether the pinned schema follows them, if the definition says so; False if they are known to have no other fields.
        """
        dataflow = self._dataflow
        files = FilesSource.model_validate(
            {"type": "files", "path": "/", "format": "ndjson", "schema": self._source.schema_}
        )
        mode = dataflow.target.schema_mode if follows else "strict"
        target = dataflow.target.model_copy(update={"origin_columns": False, "schema_mode": mode})
        return FileSource(
            self._fetcher.place,
            dataflow.model_copy(update={"source": files, "target": target}),
            self._staging,
        )

    def lacking(self, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no record of the rows that were read last has."""
        used = [staged for staged in (self._last[2] if self._last else ()) if staged.files]
        names = PinnedSchema.of(pinned).struct.fieldNames() if used else ()
        return tuple(
            LackingColumn(name) for name in names if all(staged.names.lacks(name) for staged in used)
        )

    def failure(self, error: Exception) -> SourceError | None:
        """The SourceError for a record that made a write fail; None if it was none."""
        if self._last is None:
            return None
        spark, pinned, used = self._last
        files = {file.path: file for staged in used for file in staged.files}
        try:
            bad = self.files().find_bad_file(spark, files, pinned, error)
        except SchemaEvolved as evolved:
            raise self._unnumbered(evolved) from None
        return self._blamed(bad, used) if bad is not None else None

    def _unnumbered(self, evolved: SchemaEvolved) -> SchemaEvolved:
        """The same without the file, and without the column that only staged rows have."""
        return SchemaEvolved(
            f"the schema changes with {self._source.label}: {evolved.changes}",
            pinned=_unnumbered(evolved.pinned),
            changes=evolved.changes,
        )

    def _blamed(self, bad: BadFile, used: Sequence[Fetched]) -> SourceError:
        """What is wrong with a staged file, as what is wrong with the answers to a request; a line is a record."""
        blamed = next(staged for staged in used if any(file.path == bad.path for file in staged.files))
        why = with_positions(bad.why, blamed.shown, blamed.positions.get(bad.path, ()))
        return SourceError(f"{why}. Nothing of this slice was loaded: {self.remedy(bad.code)}", code=bad.code)

    def remedy(self, code: str) -> str:
        """Return what to do about records that do not fit, by the code of their error."""
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


def _numbered(pinned: str) -> str:
    """The pinned schema with the number of a request, which stands in the folder of its files."""
    number = {"name": NUMBER, "type": "integer", "nullable": True, "metadata": {}}
    return with_fields(pinned, lambda fields: [*fields, number], (NUMBER,))


def _unnumbered(pinned: str) -> str:
    """The pinned schema without the number of a request."""
    return with_fields(pinned, lambda fields: [field for field in fields if field["name"] != NUMBER], ())


def with_fields(
    pinned: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], folders: tuple[str, ...]
) -> str:
    """The pinned schema with other fields; those that have no type yet stay what they are."""
    schema = PinnedSchema.of(pinned)
    columns = json.loads(schema.columns)
    columns["fields"] = change(columns["fields"])
    return PinnedSchema(json.dumps(columns), folders, schema.declared).to_text()
