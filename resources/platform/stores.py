"""The places of a project, and what opens without a dataflow's kind: log, lake, Spark and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.lineage import Lineage
from partitions.rules.definition import referenced_tables
from partitions.table_names import REJECTED, TOMBSTONES, bad_records_table, side_tables
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.connections.source_connection import SourceConnection
from resources.loop.inputs import InputTables
from resources.loop.missing_source import explain_missing_source
from resources.loop.own_state import OwnState, address_of
from resources.open_lineage.sender import EventSender
from resources.platform.engines import Engines
from resources.sources.files.source import FileSource
from resources.sources.registry import Source, open_source
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from resources.tables.contract.commits import Writer
from resources.tables.contract.sharing import share_of
from resources.tables.contract.table import Table
from resources.tables.registry import DEFAULT_FORMAT, find_format, find_table, open_table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.compaction import RetentionPolicy
from resources.watermarks.log import WatermarkLog
from resources.watermarks.manager import WatermarkManager
from resources.watermarks.provider import LogProvider


@dataclass(frozen=True)
class Stores:
    """The resources of one project. Each is opened on first use.

    Attributes:
        state: where the watermark log lies.
        lake: where tables lie, at ``<lake>/<layer>/<name>``.
        spark: makes sessions.
        source_of: returns a dataflow's source: the root of its files, the table, the database, the API or
        the user's code. Called on demand, since a secret may be unset.
        history: how much of each log is retained.
        folder: the project's folder; relative paths start there.
        lineage: the lineage of the project's dataflows: the tables of asset names.
        loads: all dataflows that this process loads; Spark is started with the jars of all of them.
        sensor_interval: between two ticks of a sensor; None: each sensor has its own.
        catalog: hears of runs; None: nobody does.
        env: the environment, for commands in texts; None: none.
        table_format: the format of new tables whose maker names none.
    """

    state: Place | Database
    lake: Place
    spark: SparkEngine
    source_of: Callable[[Dataflow], SourceConnection]
    history: RetentionPolicy = field(default_factory=RetentionPolicy)
    folder: Path = Path()
    lineage: Lineage = field(default_factory=Lineage)
    loads: tuple[Dataflow, ...] = ()
    sensor_interval: timedelta | None = None
    catalog: EventSender | None = None
    env: str | None = None
    table_format: str = DEFAULT_FORMAT

    @cached_property
    def log(self) -> WatermarkLog:
        """Return the watermark log."""
        return WatermarkLog(open_blobs(self.state))

    def waits_for_upstream(self, dataflow: Dataflow) -> str:
        """Return a line that names the upstream dataflows whose table does not exist yet; "" without any."""
        tables = self.lineage.upstream_tables(dataflow).items()
        unmade = {
            maker
            for table, makers in tables
            if makers
            and not any(self.log.newest(maker) for maker in makers)
            and find_format(self.lake.child(table)) is None
            for maker in makers
        }
        if not unmade:
            return ""
        have = "has" if len(unmade) == 1 else "have"
        return f"no table to read yet: {', '.join(sorted(unmade))} {have} loaded nothing"

    def rehearsal(self) -> Self:
        """Return the same resources over a log that retains nothing, to try what would follow an entry."""
        return self.with_log(self.log.rehearsal())

    def with_log(self, log: WatermarkLog) -> Self:
        """Return the same resources over another log."""
        copy = replace(self)
        vars(copy)["log"] = log
        return copy

    def manager(self, warn: Callable[[str], None] | None = None) -> WatermarkManager:
        """Return a new watermark manager, which caches what it read last.

        Args:
            warn: takes its warnings; None: Python's logging does.
        """
        provider = LogProvider(self.log)
        return WatermarkManager(provider) if warn is None else WatermarkManager(provider, warn)

    def loading(self, dataflows: Iterable[Dataflow]) -> Self:
        """Return the same resources for a process that loads these dataflows."""
        copy = replace(self, loads=tuple(dataflows))
        if "log" in vars(self):  # open already
            vars(copy)["log"] = self.log
        return copy

    def source(self, dataflow: Dataflow, staging: Staging | None = None) -> Source:
        """Return the source of the dataflow.

        ``staging`` takes rows that only this process can fetch; None: a new one.
        """
        source = self.open_source(dataflow, staging or self.staging(dataflow))
        if isinstance(source, FileSource):
            source.explain_missing = partial(explain_missing_source, self.log, dataflow)
        return source

    def open_source(self, dataflow: Dataflow, staging: Staging) -> Source:
        """Return the source of the dataflow, which knows nothing of its loads yet."""
        return open_source(dataflow, self.source_of(dataflow), staging)

    def staging(self, dataflow: Dataflow) -> Staging:
        """Return where a run of the dataflow stages rows."""
        return Staging.below(self.lake, dataflow.table, dataflow.name)

    def files(self, dataflow: Dataflow, staging: Staging | None = None) -> FileSource:
        """Return the source of the dataflow's files.

        Raises:
            ConfigurationError: if it reads something else.
        """
        source = self.source(dataflow, staging)
        if isinstance(source, FileSource):
            return source
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a folder or a bucket, found {self.source_of(dataflow)}"
        )

    def root_of(self, dataflow: Dataflow) -> Place:
        """Return the root folder of the dataflow's files.

        Raises:
            ConfigurationError: if it reads something else.
        """
        return self.files(dataflow).root

    def table(self, dataflow: Dataflow) -> Table:
        """Return the table that the dataflow loads into; if it is shared, this dataflow's share of it."""
        target = dataflow.target
        table = open_table(
            target.format, self.lake.child(dataflow.table), target.partition_by, target.schema_mode
        )
        return share_of(table, dataflow.name) if target.shared else table

    def own_state(self, dataflow: Dataflow) -> OwnState:
        """Return the addresses of the dataflow's state, which its commits name."""
        return OwnState(dataflow.name, self.log, self.writer_of(dataflow.table))

    def writer_of(self, table: str) -> Writer:
        """Return how commits of a table of the lake name this project and its state."""
        folder = os.path.realpath(self.folder)
        return Writer(folder, address_of(self.state), address_of(self.lake.child(table)))

    def bad_records(self, dataflow: Dataflow) -> Table | None:
        """Return the table for the dataflow's bad records; None if bad records may not be set aside.

        It is a Delta table: a file's records are replaced by its path.
        """
        name = bad_records_table(dataflow)
        return None if name is None else open_table("delta", self.lake.child(name))

    def side_tables(self, dataflow: Dataflow) -> Mapping[str, Table]:
        """Return the side tables of the dataflow by short name, in the format of its table."""
        return {
            short: open_table(
                dataflow.target.format,
                self.lake.child(name),
                partition_by,
                "merge" if short in (TOMBSTONES, REJECTED) else "strict",  # keys and columns may change
            )
            for short, (name, partition_by) in side_tables(dataflow).items()
        }

    def inputs(self, dataflow: Dataflow) -> InputTables:
        """Return the tables that the dataflow's step reads beside its own rows."""
        return InputTables(
            {name: find_table(self.lake.child(table)) for name, table in dataflow.inputs.items()}
        )

    def references(self, dataflow: Dataflow) -> InputTables:
        """Return the tables that the dataflow's rules refer to, by name."""
        names = referenced_tables(dataflow.rules)
        return InputTables({name: find_table(self.lake.child(name)) for name in names}, "rules")

    @cached_property
    def engines(self) -> Engines:
        """The engines whose sessions reach the places of the project."""
        return Engines(self.spark, self.lake, self.source_of, self.loads, self.table_format)

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        """Return an engine whose sessions reach the dataflow's source and table."""
        return self.engines.of([dataflow])
