"""A dataflow: a source, a watermark and a target, as a user declares it (spec 09).

Here is what every part of the product agrees on; how the text comes from a YAML file is ``platform_assets.project``'s.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from partitions.model import Duration, Model
from partitions.path.definition import PathWatermark

FileFormat = Literal["ndjson", "json", "csv", "parquet"]

_COMPRESSED = ("", ".gz", ".bz2")
_PLAIN: dict[str, tuple[str, ...]] = {
    "ndjson": (".ndjson", ".jsonl", ".json"),
    "json": (".json",),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet",),
}


def _table_name(text: str) -> str:
    parts = text.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") for part in parts
    ):
        raise ValueError("expected <layer>/<name>, letters, digits and underscores")
    return text


TableName = Annotated[str, AfterValidator(_table_name)]


class FilesSource(Model):
    """Files under a root.

    Attributes:
        path: a folder (relative paths count from the project folder) or an object store's ``s3://bucket/prefix``.
        schema_: Spark DDL; without it the schema is inferred once from a bounded sample and pinned.
        options: for Spark's reader.
        extensions: case-sensitive endings; by default the format's own, each plain, .gz and .bz2.
    """

    type: Literal["files"]
    path: Annotated[str, Field(min_length=1)]
    connection: str | None = None
    format: FileFormat
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    extensions: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files that belong to the source."""
        if self.extensions is not None:
            return self.extensions
        compressed = ("",) if self.format == "parquet" else _COMPRESSED
        return tuple(plain + packed for plain in _PLAIN[self.format] for packed in compressed)


class Target(Model):
    """Where rows go, and how.

    Attributes:
        table: ``<layer>/<name>`` in the lake; by default the dataflow's own layer and name.
        origin_columns: whether rows carry ``_source_file``, ``_ingested_at`` and ``_run_id``.
    """

    load: Literal["append"] = "append"
    table: TableName | None = None
    format: Literal["delta"] = "delta"
    partition_by: tuple[str, ...] = ()
    schema_mode: Literal["strict"] = "strict"
    origin_columns: bool = True


class Freshness(Model):
    """When the table counts as stale: no successful load for this long."""

    fail: Duration
    warn: Duration | None = None


class Dataflow(Model):
    """One dataflow.

    Attributes:
        name: the file's stem.
        layer: first part of the asset key.
        late_files: what becomes of a file that the sweep finds at or below the watermark and that was never ingested.
        on_bad_file: whether a file that cannot be read stops the run, or is passed over and kept in quarantine.
        transform: ``package.module:function``, a function ``(DataFrame, Batch) -> DataFrame``.
        sql: a query over the view ``input``, instead of ``transform``.
        freshness: shown and checked by Dagster.
    """

    name: str
    layer: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "bronze"
    source: FilesSource
    watermark: PathWatermark
    target: Target = Target()
    late_files: Literal["ingest", "quarantine", "alert", "ignore"] = "ingest"
    on_bad_file: Literal["stop", "quarantine"] = "stop"
    max_bad_records: Literal[0] = 0
    transform: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = None
    sql: Annotated[str, Field(min_length=1)] | None = None
    description: str | None = None
    owners: tuple[str, ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)
    freshness: Freshness | None = None

    @model_validator(mode="after")
    def _one_step(self) -> Dataflow:
        if self.transform and self.sql:
            raise ValueError("transform and sql both follow the read: expected one of them")
        return self

    @property
    def kind(self) -> str:
        """The kind of its watermark."""
        return self.watermark.type

    @property
    def table(self) -> str:
        """The table's name in the lake, ``<layer>/<name>``."""
        return self.target.table or f"{self.layer}/{self.name}"

    def identity(self) -> dict[str, Any]:
        """What the state depends on: a change of any of it needs a decision (spec 09, Fingerprint)."""
        chosen = self.watermark.partition_filter
        return {
            "kind": self.kind,
            "source": {
                "type": self.source.type,
                "connection": self.source.connection,
                "path": self.source.path,
                "extensions": sorted(self.source.endings),
                "prefix_template": chosen.prefix_template if chosen else None,
            },
            "scope": self.watermark.scope,
            "tracking": self.watermark.tracking,
            "target": {"table": self.table, "format": self.target.format},
        }

    @property
    def fingerprint(self) -> str:
        """A short hash of :meth:`identity`."""
        text = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
