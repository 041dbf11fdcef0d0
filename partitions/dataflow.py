"""A dataflow: a source, a watermark and a target, as a user declares it (spec 09).

Here is what every part of the product agrees on; how the text comes from a YAML file is ``platform_assets.project``'s.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from partitions.errors import ConfigurationError
from partitions.model import Duration, Model
from partitions.path.definition import PathWatermark
from partitions.sources import FilesSource, JdbcSource, TableName, TableSource


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
    source: Annotated[FilesSource | JdbcSource | TableSource, Field(discriminator="type")]
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

    @property
    def files(self) -> FilesSource:
        """Its source, for what only files have.

        Raises:
            ConfigurationError: where it is another.
        """
        if isinstance(self.source, FilesSource):
            return self.source
        raise ConfigurationError(
            f"dataflow {self.name}: expected a source of type files, found {self.source.type}"
        )

    @property
    def asked(self) -> JdbcSource | TableSource:
        """Its source, for what only sources have that are asked for rows.

        Raises:
            ConfigurationError: where it is files.
        """
        if isinstance(self.source, JdbcSource | TableSource):
            return self.source
        raise ConfigurationError(
            f"dataflow {self.name}: expected a source of type jdbc or table, found {self.source.type}"
        )

    def identity(self) -> dict[str, Any]:
        """What the state depends on: a change of any of it needs a decision (spec 09, Fingerprint)."""
        chosen = self.watermark.partition_filter
        return {
            "kind": self.kind,
            "source": {
                **self.source.identity(),
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
