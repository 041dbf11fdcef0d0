"""The world of the model on real Spark: the product's own parts, with announced changes.

A session on a Connect server cannot be killed in the middle of a commit from here: writes do not land
later.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from partitions.dataflow import Dataflow
from partitions.evolution import Evolution
from partitions.loads import Append, Load, Replace
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.delta.own_commit import DeltaOwnCommit
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.delta.writing import DeltaWrites
from tests.support.arrow import SCHEMA, HeardCommit, Write
from tests.support.jvmless import MortalPlatform, Parts, Process, dataflow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = pa.schema(
    [*SCHEMA, pa.field("_ingested_at", pa.timestamp("us", "UTC")), pa.field("_run_id", pa.string())]
)


class _HeardTable(DeltaLakeTable):
    """A table whose commits are points of a process."""

    process: Process

    def _writer(self) -> DeltaWrites:
        return _HeardWrites(self, self._log, self._share, self._partition_by, self._schema_mode)


class _HeardWrites(DeltaWrites):
    def __init__(self, table: _HeardTable, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._table = table

    def _own_commit(self, tag: Tag, state: str) -> DeltaOwnCommit:
        own = super()._own_commit(tag, state)
        return HeardCommit(
            own.log, own.tag, own.text, lambda when, write: self._table.process.reach(when, "commit", write)
        )

    def _commit(
        self,
        rows: DataFrame,
        load: Load,
        tag: Tag,
        text: str,
        *,
        creates_table: bool,
        evolution: Evolution | None = None,
    ) -> None:
        write = self._write_of(rows, tag, Append() if creates_table else load)
        self._table.process.reach("before", "commit", write)
        super()._commit(rows, load, tag, text, creates_table=creates_table, evolution=evolution)
        landed = self._table.head(None, tag.app_id).find_tagged_commit(tag.number)
        if landed is not None and landed.owner == tag.owner:
            self._table.process.reach("after", "commit", write)

    def _write_of(self, df: DataFrame, tag: Tag, load: Load) -> Write:
        """Return the write that is about to happen. Its rows are read once more."""
        has_paths = "_source_file" in df.columns and not tag.gives_up
        paths = [row[0] for row in df.select("_source_file").collect()] if has_paths else []
        return Write(
            Path(self._log.place.url),
            cast("int | None", self._table.tip(None).version),
            tag.app_id,
            tag.number,
            "append" if isinstance(load, Append) else "overwrite",
            predicate_sql(load.where, SPARK) if isinstance(load, Replace) else None,
            json.dumps({"strandline": {"owner": tag.owner, "gives_up": tag.gives_up}}),
            pa.table({"_source_file": pa.array(paths, pa.string())}),
        )


class _SparkedPlatform(MortalPlatform):
    def table(self, dataflow: Dataflow) -> DeltaLakeTable:
        table = _HeardTable(self.lake.child(dataflow.table), dataflow.target.partition_by)
        table.process = self.process
        return table


def parts(engine: SparkEngine) -> Parts:
    """Return the parts of a world that runs on this engine."""

    def platform(state: Path, lake: Path, landing: Path, process: Process) -> Platform:
        return _SparkedPlatform.of(state, lake, landing, process, engine)

    return Parts(partial(dataflow, origin=True), platform, _COLUMNS)
