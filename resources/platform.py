"""What a dataflow needs to run, put together from settings: log, lake, Spark, and where its source lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.slices import PathSlice
from partitions.plan import Plan
from resources.databases import Database
from resources.jdbc import JdbcConnection
from resources.kinds.path import PathFlow
from resources.loop.guards import check_definition
from resources.loop.loop import Loop
from resources.places import Place
from resources.spark import SparkEngine
from resources.watermarks.blobs import open_blobs
from resources.watermarks.compaction import History
from resources.watermarks.log import WatermarkLog
from resources.watermarks.manager import WatermarkManager
from resources.watermarks.provider import LogProvider
from resources.writers.delta import DeltaTarget


@dataclass(frozen=True)
class Platform:
    """The resources of one project. Nothing is opened before it is used.

    Attributes:
        state: where the watermark log lies.
        lake: where tables lie, at ``<lake>/<layer>/<name>``.
        spark: makes sessions.
        source_of: the root of a dataflow's files, the table or the database that it reads; asked when it is needed, since a
            secret may be unset.
        history: how much of each log stays.
    """

    state: Place | Database
    lake: Place
    spark: SparkEngine
    source_of: Callable[[Dataflow], Place | JdbcConnection]
    history: History = field(default_factory=History)

    @cached_property
    def log(self) -> WatermarkLog:
        """The watermark log."""
        return WatermarkLog(open_blobs(self.state))

    def manager(self) -> WatermarkManager:
        """A watermark manager of its own: it remembers what it read last."""
        return WatermarkManager(LogProvider(self.log))

    def flow(self, dataflow: Dataflow) -> PathFlow:
        """The dataflow's kind, bound to its source."""
        return PathFlow(dataflow, self.root_of(dataflow), self.log)

    def root_of(self, dataflow: Dataflow) -> Place:
        """The root of a dataflow's files.

        Raises:
            ConfigurationError: where it reads something else.
        """
        found = self.source_of(dataflow)
        if dataflow.files and isinstance(found, Place):
            return found
        raise ConfigurationError(f"dataflow {dataflow.name}: expected a folder or a bucket, found {found}")

    def target(self, dataflow: Dataflow) -> DeltaTarget:
        """The dataflow's table."""
        return DeltaTarget(self.lake.child(dataflow.table), dataflow.target.partition_by)

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        """Sessions that reach the dataflow's source and table."""
        return self.spark.with_places((self.lake, self.source_of(dataflow)))

    def plan(self, dataflow: Dataflow, now: datetime) -> Plan[PathSlice]:
        """What the next run would do. Starts no Spark, changes nothing.

        Raises:
            NeedsDecision: as a run would.
        """
        entry = self.log.newest(dataflow.name)
        check_definition(dataflow, entry, self.log)
        return self.flow(dataflow).plan(entry, now)

    def loop(self, dataflow: Dataflow, now: datetime, **options: Any) -> Loop[PathSlice]:
        """A run of the dataflow; ``options`` are :class:`Loop`'s own."""
        return Loop(
            dataflow,
            self.flow(dataflow),
            self.log,
            self.target(dataflow),
            self.engine(dataflow).session,
            now,
            **{"history": self.history, **options},
        )
