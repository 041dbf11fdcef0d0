"""Where a dataflow's rows go, and how, as a user declares it (docs/project-files.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from partitions.model import Model
from partitions.sources.table import TableName


class Target(Model):
    """Where rows go, and how.

    Attributes:
        table: ``<layer>/<name>`` in the lake; by default the dataflow's own layer and name.
        load: ``append`` adds rows; ``merge_overwrite`` deletes what a slice reads again, and inserts it, in one commit.
        merge_keys: of several rows of a slice with the same values in these columns only the latest stays.
        replace_by_watermark: what is deleted is exactly what was read: windows of units.
        origin_columns: whether rows carry ``_source_file``, ``_ingested_at`` and ``_run_id``.
    """

    load: Literal["append", "merge_overwrite"] = "append"
    merge_keys: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    replace_by_watermark: bool = False
    table: TableName | None = None
    format: Literal["delta"] = "delta"
    partition_by: tuple[str, ...] = ()
    schema_mode: Literal["strict"] = "strict"
    origin_columns: bool = True
