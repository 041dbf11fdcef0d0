"""The values that stay constant during a run; each step of the protocol receives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic

from partitions.dataflow import Dataflow
from partitions.request import DUE, Request
from resources.kinds.contract.kind import Kind
from resources.kinds.contract.slices import SliceT
from resources.loop.inputs import InputTables
from resources.loop.own_state import OwnState
from resources.loop.rows.bad_record_warnings import BadRecordWarnings
from resources.loop.rows.deletes_of_table import renew_deletes_of_table
from resources.loop.rows.rescued import RescuedRows
from resources.loop.rows.withheld import WithheldRows
from resources.loop.rules.counts import RuleCountsOfRun
from resources.loop.run_events import NoRunEvents, RunEvents
from resources.outcome import Observer
from resources.spark.background import run_detached
from resources.staging import Staging
from resources.tables.contract.commits import Writer
from resources.tables.contract.table import CanPrepare, Table
from resources.watermarks.deleted_rows import DeleteInForce, stored_deletes
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RunContext(Generic[SliceT]):
    """One run of one dataflow.

    Attributes:
        dataflow: the definition.
        kind: the kind of its watermark, bound to the source.
        log: the watermark log.
        table: the target table.
        start_spark: creates the run's session; called only if there is something to write.
        staging: where the source puts rows that only this process can fetch; emptied after each slice.
        now: the run's clock, aware; read once by the caller.
        request: the work that is planned and loaded.
        run_id: Dagster's run id, if the run is Dagster's.
        job_id: Dagster's job.
        inputs: the tables that the user's step reads beside the rows.
        folder: the project's folder, which may hold the user's modules.
        notify: is called at each step.
        bad_records: the table for records that do not parse; None if none may be set aside.
        sides: the side tables, by short name.
        rescued: counts the rows with rescued values.
        set_aside: collects the warnings about records that did not parse.
        own_state: the state's addresses, which commits name, and which the table's last commit must name;
            None for a log that is not the dataflow's own.
        withheld: holds back and counts the rows that a delete in force names, or that are too old.
        deletes_of: the dataflow whose deletes are in force; None: this one. An isolated replay has those of
            the live dataflow.
        events: hears when the run starts and ends.
        live_table: the table that the rows of an isolated replay go into at last; None for any other run.
        references: the tables that rules refer to, by name.
        rule_counts: the counts of the rows that failed rules.
    """

    dataflow: Dataflow
    kind: Kind[SliceT]
    log: WatermarkLog
    table: Table
    start_spark: Callable[[], SparkSession]
    staging: Staging
    now: datetime
    request: Request = DUE
    run_id: str | None = None
    job_id: str | None = None
    inputs: InputTables = field(default_factory=InputTables)
    folder: Path = Path()
    notify: Observer = lambda step, line: None
    bad_records: Table | None = None
    sides: Mapping[str, Table] = field(default_factory=dict)
    rescued: RescuedRows = field(default_factory=RescuedRows)
    set_aside: BadRecordWarnings = field(default_factory=BadRecordWarnings)
    own_state: OwnState | None = None
    withheld: WithheldRows = field(default_factory=WithheldRows)
    deletes_of: str | None = None
    live_table: Table | None = None
    events: RunEvents = field(default_factory=NoRunEvents)
    references: InputTables = field(default_factory=InputTables)
    rule_counts: RuleCountsOfRun = field(default_factory=RuleCountsOfRun)

    @property
    def name(self) -> str:
        """The dataflow's name."""
        return self.dataflow.name

    @property
    def writer(self) -> Writer | None:
        """The state that the run's commits name."""
        return self.own_state.writer if self.own_state else None

    @property
    def rules_of(self) -> str:
        """The name of the dataflow whose rules hold rows back: for an isolated replay the live one."""
        return self.deletes_of or self.name

    def deletes(self, entry: Entry | None) -> tuple[DeleteInForce, ...]:
        """Return the deletes in force for a slice that follows an entry.

        Raises:
            CorruptWatermark: their list is missing or does not read.
        """
        if self.deletes_of is not None:
            entry = self.log.newest(self.deletes_of)
        key = entry.deletes if entry else None
        if key is None:
            return ()
        if key not in self._stored_deletes:
            self._stored_deletes[key] = stored_deletes(self.log, key)
        return self._stored_deletes[key]

    def list_deletes(self, entry: Entry | None) -> None:
        """Store the deletes in force beside the table, which may be another or an older one by now.

        A run without a delete in force asks nothing; any other reads one small object, once.
        """
        if self.deletes_of is None and entry is not None and entry.deletes not in (None, *self._listed_keys):
            renew_deletes_of_table(self.table, entry.app_id, self.deletes(entry))
            self._listed_keys.add(str(entry.deletes))

    @cached_property
    def _listed_keys(self) -> set[str]:
        """The keys of the lists that were compared with the one beside the table."""
        return set()

    @cached_property
    def _stored_deletes(self) -> dict[str, tuple[DeleteInForce, ...]]:
        """The lists of deletes that were read, by key: each slice asks twice, and a stored list never changes."""
        return {}

    @cached_property
    def spark(self) -> SparkSession:
        """The run's session, started at the first access."""
        return self.start_spark()

    def prepare_next(self) -> None:
        """Prefetch the table state that the next run's first write needs, if this run used Spark.

        Returns at once; the work runs in the background.
        """
        table = self.table
        if "spark" in vars(self) and isinstance(table, CanPrepare):
            run_detached(self.spark, table.prepare_next)
