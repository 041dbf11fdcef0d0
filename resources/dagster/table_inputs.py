"""A table as the input of a user's own asset (docs/reference/dagster.md, Your own assets).

Decides which version and which rows of the table the asset gets; ``frames`` says in which type. The maker
of the table knows its versions and its partitions: a dataflow, or another asset of the user's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dagster import (
    AllPartitionMapping,
    AssetKey,
    DagsterInstance,
    DagsterInvariantViolationError,
    InputContext,
)

from partitions.errors import ConfigurationError
from partitions.predicate import EVERYTHING, Predicate, all_of
from resources.dagster.frames import ArrowFrame, check_spark_frame, frame_type
from resources.dagster.run_tags import HIDDEN
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.platform.platform import Platform
from resources.tables.contract.commits import Version
from resources.tables.contract.contents import TableContents
from resources.tables.contract.table import Table
from resources.tables.registry import find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = "strandline/partitions"
"""The metadata of an input that says which partitions it gets."""

ALL = "all"
"""The value for the whole table."""

_VERSION_TAG = f"{HIDDEN}version/"
"""The prefix of the hidden tags with the version of each table that a run reads."""


class AssetTable(Protocol):
    """A table that an asset reads, with what makes it."""

    @property
    def asset(self) -> str:
        """The name of the table's asset, by which the steps of a run share a version."""
        ...

    @property
    def table(self) -> str:
        """The table, ``<layer>/<name>``."""
        ...

    @property
    def has_partitions(self) -> bool:
        """Whether the table has partitions that tell rows apart."""
        ...

    def newest(self, contents: TableContents) -> Version:
        """Return the newest version that readers may see."""
        ...

    def own_rows(self, contents: TableContents) -> Predicate:
        """Return the rows of the table that this maker has written."""
        ...

    def rows_of(
        self, keys: Sequence[str], contents: TableContents, version: Version, own: Predicate
    ) -> Predicate:
        """Return the rows of some partitions."""
        ...


@dataclass(frozen=True)
class TableInput:
    """One input of one step.

    Attributes:
        platform: the resources.
        maker: what makes the table.
        context: Dagster's context of the input.
    """

    platform: Platform
    maker: AssetTable
    context: InputContext

    def load(self) -> Any:
        """Return the rows of the input as the type that it is annotated with; without one for Spark.

        Raises:
            StrandlineError: the type is none of the supported ones, or the table cannot be read.
        """
        annotation = self.context.dagster_type.typing_type
        frame, table = frame_type(annotation, self._what), self._table
        if not table.exists() and self._keys() == []:
            return self._no_rows(frame)
        contents = table.contents
        version = self._version(contents)
        rows = self._rows(contents, version)
        if frame is not None:
            return frame.read(partial(contents.arrow_rows, version, rows), self._what)
        spark_rows: DataFrame = contents.read(self._session(), version, rows)
        check_spark_frame(spark_rows, annotation, self._what)
        return spark_rows if rows == EVERYTHING else spark_rows.where(predicate_sql(rows, SPARK))

    @property
    def _what(self) -> str:
        asset = f"asset {self.maker.asset}"
        return f"input {self.context.name} of {asset}" if self._step else asset

    @property
    def _table(self) -> Table:
        return find_table(self.platform.lake.child(self.maker.table))

    def _session(self) -> SparkSession:
        return self.platform.engines.reading(self.platform.lake.child(self.maker.table)).session()

    def _no_rows(self, frame: ArrowFrame | None) -> Any:
        """Return a frame without columns: an asset that reads its own partition before has none at first."""
        import pyarrow as pa

        if frame is None:
            return self._session().createDataFrame([], "")
        return frame.read(lambda columns: pa.schema([]).empty_table().to_reader(), self._what)

    @property
    def _step(self) -> Any:
        """The step; None if the asset is loaded outside of a run."""
        with suppress(DagsterInvariantViolationError):
            return self.context.step_context
        return None

    # Versions

    def _version(self, contents: TableContents) -> Version:
        """Return the version that all steps of the run read.

        It is the one that this run has committed; else the newest when the run's first step read the
        table, without commits of a load that still ran.
        """
        step = self._step
        if step is None:
            return self.maker.newest(contents)
        pinned_version = _pinned_version(step.instance, step.run_id, self.maker.asset)
        if pinned_version is not None:
            return pinned_version
        newest = self.maker.newest(contents)
        pin_version(step.instance, step.run_id, self.maker.asset, newest)
        # Of two steps at one moment the later tag counts.
        pinned_version = _pinned_version(step.instance, step.run_id, self.maker.asset)
        return newest if pinned_version is None else pinned_version

    # Rows

    def _rows(self, contents: TableContents, version: Version) -> Predicate:
        """Return the rows that the input gets: those of its partitions, and of the table's maker."""
        own, keys = self.maker.own_rows(contents), self._keys()
        if keys is None:
            return own
        return all_of((own, self.maker.rows_of(keys, contents, version, own)))

    def _keys(self) -> Sequence[str] | None:
        """Return the partitions of the table that the input gets; None for the whole table."""
        context = self.context
        if self._asks_for_all:
            return None
        if not context.has_asset_partitions:
            step = self._step
            if step is not None and (step.has_partition_key or step.has_partition_key_range):
                context.log.info(
                    "%s: its table has no partitions, so each partition of this asset gets the whole table",
                    self._what,
                )
            return None
        if not self.maker.has_partitions:
            return None
        if self._step is not None and _takes_all_partitions(self._step, context.asset_key):
            return None
        return context.asset_partition_keys

    @property
    def _asks_for_all(self) -> bool:
        value = (self.context.definition_metadata or {}).get(PARTITIONS)
        if value not in (None, ALL):
            raise ConfigurationError(
                f"{self._what}: expected the metadata {PARTITIONS}: {ALL}, or none, found {value!r}"
            )
        return value == ALL


def pin_version(instance: DagsterInstance, run_id: str, asset: str, version: Version) -> None:
    """Let all later steps of a run read this version of a table."""
    instance.add_run_tags(run_id, {f"{_VERSION_TAG}{asset}": json.dumps([run_id, version])})


def _pinned_version(instance: DagsterInstance, run_id: str, asset: str) -> Version | None:
    """Return the version that the steps of a run read; None if no step has read or loaded the table."""
    run = instance.get_run_by_id(run_id)
    text = run.tags.get(f"{_VERSION_TAG}{asset}") if run is not None else None
    if text is None:
        return None
    pinned_by, version = json.loads(text)
    # A retry has the tags of the run before, which may have read an older table.
    return version if pinned_by == run_id else None


def _takes_all_partitions(step: Any, asset: AssetKey) -> bool:
    """Return whether a step's asset depends on all partitions of an input, by its mapping."""
    downstream = step.job_def.asset_layer.get_assets_def_for_node(step.node_handle)
    mapping = downstream.get_partition_mapping_for_dep(asset) if downstream is not None else None
    if mapping is None:
        return downstream is None or downstream.partitions_def is None
    return isinstance(mapping, AllPartitionMapping)
