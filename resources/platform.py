"""What a dataflow needs to run, put together from settings: log, lake, Spark, and where its source lies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, SchemaError, SourceError
from partitions.evolution import all_nullable, evolved
from partitions.lineage import Lineage
from partitions.plan import Plan
from partitions.request import DUE, Request
from partitions.sources import TableSource
from partitions.stream.structured import StructuredStream
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import Ledger, ledger
from partitions.window.secondary_input import SecondaryInput
from partitions.window.state import WindowState
from partitions.window.units import listed
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.functions import UserCode
from resources.kinds.column.kind import ColumnKind
from resources.kinds.kind import Kind
from resources.kinds.path.kind import PathKind
from resources.kinds.registry import open_kind
from resources.kinds.spark_stream.folder import STREAMS
from resources.kinds.spark_stream.kind import SparkStreamKind
from resources.kinds.stream.kind import side_tables
from resources.kinds.window.unit_spelling import as_known
from resources.kinds.window.units import rows_in_time
from resources.kinds.window.waits import find_waits
from resources.loop.context import RunContext
from resources.loop.definition_guard import check_definition, check_intent, definition_of
from resources.loop.entries import keyed_by
from resources.loop.inputs import InputTables
from resources.loop.loop import Loop
from resources.loop.table_guard import check_table
from resources.loop.unfinished import Unfinished
from resources.loop.waiting import Patience
from resources.outcome import Observer
from resources.sources.files.formats.registry import packages_of
from resources.sources.files.source import FileSource
from resources.sources.registry import Source, open_source
from resources.sources.source import ListsRows, TellsColumns
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from resources.tables.registry import PACKAGES, find_format, find_table, open_table
from resources.tables.table import Table, share_of
from resources.watermarks.blobs import open_blobs
from resources.watermarks.compaction import RetentionPolicy
from resources.watermarks.entry import Entry
from resources.watermarks.holder import RunIsLive
from resources.watermarks.log import WatermarkLog
from resources.watermarks.manager import WatermarkManager
from resources.watermarks.provider import LogProvider


@dataclass(frozen=True)
class Platform:
    """The resources of one project. Nothing is opened before it is used.

    Attributes:
        state: where the watermark log lies.
        lake: where tables lie, at ``<lake>/<layer>/<name>``.
        spark: makes sessions.
        source_of: the root of a dataflow's files, the table, the database, the API or the user's code that it reads; asked when it is needed, since a
            secret may be unset.
        history: how much of each log stays.
        folder: of the project, from which relative paths count.
        lineage: of the project's dataflows: which table an asset's name means.
        loads: all dataflows that this process loads; Spark is started with the jars of all of them.
        sensor_interval: between two looks of a sensor; None: each has its own.
    """

    state: Place | Database
    lake: Place
    spark: SparkEngine
    source_of: Callable[[Dataflow], Place | JdbcConnection | ApiConnection | UserCode]
    history: RetentionPolicy = field(default_factory=RetentionPolicy)
    folder: Path = Path()
    lineage: Lineage = field(default_factory=Lineage)
    loads: tuple[Dataflow, ...] = ()
    sensor_interval: timedelta | None = None

    @cached_property
    def log(self) -> WatermarkLog:
        """The watermark log."""
        return WatermarkLog(open_blobs(self.state))

    def waits_for_upstream(self, dataflow: Dataflow) -> str:
        """Return that other dataflows have yet to make a table that this one reads, for people; "" if none has."""
        tables = self.lineage.upstream_tables(dataflow).items()
        unmade = {
            maker
            for table, makers in tables
            if makers
            and not any(self.log.newest(maker) for maker in makers)
            and find_format(self.lake.child(table)) is None
            for maker in makers
        }
        return f"nothing is loaded yet by {', '.join(sorted(unmade))}, whose table it reads" if unmade else ""

    def rehearsal(self) -> Platform:
        """The same resources over a log of which nothing is kept: for what would follow if an entry was appended."""
        made = replace(self)
        vars(made)["log"] = self.log.rehearsal()
        return made

    def manager(self) -> WatermarkManager:
        """A watermark manager of its own: it remembers what it read last."""
        return WatermarkManager(LogProvider(self.log))

    def kind(
        self,
        dataflow: Dataflow,
        staging: Staging | None = None,
        units: Callable[[], tuple[str, ...]] | None = None,
    ) -> Kind[Any]:
        """Return the dataflow's kind of watermark, bound to its source.

        Args:
            dataflow: its definition.
            staging: of the run that reads; None for who reads no rows.
            units: looks up the units of a window watermark for who needs them for more than the kind; None: :meth:`units`.
        """
        if isinstance(dataflow.watermark, StructuredStream):
            folders = self.lake.child(f"{STREAMS}/{dataflow.table}/{dataflow.name}")
            roots = [place for place in self._read_by(dataflow) if isinstance(place, Place)]
            reads = (dataflow, roots, folders, self.log, self.folder)
            return SparkStreamKind(*reads, staging or self.staging(dataflow))
        return open_kind(
            dataflow,
            self.source(dataflow, staging),
            self.log,
            units or partial(self.units, dataflow),
            lambda: self.engine(dataflow).session(),
            self.side_tables(dataflow),
            lambda: find_waits(dataflow, self.lineage, self.log, self.table),
        )

    def windows_of(self, dataflow: Dataflow) -> WindowWatermark:
        """Return a window watermark; if its windows wait for a stream, up to where that is complete."""
        waits = find_waits(dataflow, self.lineage, self.log, self.table)
        return dataflow.window.up_to(waits.reached) if waits else dataflow.window

    def path_kind(self, dataflow: Dataflow) -> PathKind:
        """Return the kind of a dataflow of files.

        Raises:
            ConfigurationError: it is of another kind.
        """
        return PathKind(dataflow, self.files(dataflow), self.log)

    def column_kind(self, dataflow: Dataflow) -> ColumnKind:
        """Return the kind of a dataflow with a column watermark.

        Raises:
            ConfigurationError: it is of another kind.
        """
        kind = self.kind(dataflow)
        if isinstance(kind, ColumnKind):
            return kind
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a watermark of type column, found {dataflow.kind}"
        )

    def source(self, dataflow: Dataflow, staging: Staging | None = None) -> Source:
        """Return what the dataflow reads; ``staging`` is that of :meth:`kind`."""
        given = self.source_of(dataflow)
        return open_source(dataflow, given, staging or self.staging(dataflow))

    def staging(self, dataflow: Dataflow) -> Staging:
        """Return where a run of the dataflow stages rows."""
        return Staging.below(self.lake, dataflow.table, dataflow.name)

    def units(self, dataflow: Dataflow) -> tuple[str, ...]:
        """The identities of all units of a window watermark, in the order that they were listed or read, as the state knows them. Starts no Spark.

        Raises:
            PlanError: if a secondary input cannot be read.
        """
        watermark = dataflow.window
        units = listed(watermark.units, watermark.secondary_input, partial(self._rows_of, dataflow))
        return as_known(dataflow, units, self.log, partial(self.source, dataflow))

    def ledger(self, dataflow: Dataflow, now: datetime) -> Ledger:
        """What is covered and missing of each unit of a window watermark. Starts no Spark.

        Raises:
            ConfigurationError: for another kind.
            NeedsDecision: as a run would.
        """
        entry = self.checked(dataflow)
        state = WindowState.of(entry.state() if entry else None)
        return ledger(self.windows_of(dataflow), state, self.units(dataflow), now, dataflow=dataflow.name)

    def _rows_of(self, dataflow: Dataflow, given: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        reading = dataflow.reading_units(given)
        if reading is not None:
            source, number = self.source(reading), dataflow.window.secondary_input.index(given)
            if not isinstance(source, ListsRows):
                raise AssertionError(source)
            what = f"dataflow {dataflow.name}, secondary_input {number + 1} ({reading.source.shown})"
            return rows_in_time(what, partial(source.listed, given.columns), given.columns)
        if given.path:
            place = Place.parse(given.path, self.folder)
        else:
            place = self.lake.child(given.table or self.lineage.table_of(given.asset or ""))
        return find_table(place).distinct_rows(given.columns)

    def files(self, dataflow: Dataflow) -> FileSource:
        """Return the files that the dataflow reads.

        Raises:
            ConfigurationError: it reads something else.
        """
        source = self.source(dataflow)
        if isinstance(source, FileSource):
            return source
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a folder or a bucket, found {self.source_of(dataflow)}"
        )

    def root_of(self, dataflow: Dataflow) -> Place:
        """Return the root of the dataflow's files.

        Raises:
            ConfigurationError: it reads something else.
        """
        return self.files(dataflow).root

    def table(self, dataflow: Dataflow) -> Table:
        """Return the table that the dataflow loads into; if others load into it, too, as this one sees it."""
        target = dataflow.target
        table = open_table(
            target.format, self.lake.child(dataflow.table), target.partition_by, target.schema_mode
        )
        return share_of(table, dataflow.name) if target.shared else table

    def bad_records(self, dataflow: Dataflow) -> Table | None:
        """Return the table for the dataflow's records that do not parse; None if none may be set aside. It is a Delta table: a file's records are replaced by its path."""
        name = dataflow.bad_records_table
        return None if name is None else open_table("delta", self.lake.child(name))

    def side_tables(self, dataflow: Dataflow) -> Mapping[str, Table]:
        """Return the tables that the dataflow's slices write beside their own, by their short names, of the same format."""
        return {
            short: open_table(dataflow.target.format, self.lake.child(name), partition_by)
            for short, (name, partition_by) in side_tables(dataflow).items()
        }

    def inputs(self, dataflow: Dataflow) -> InputTables:
        """Return the tables that the dataflow's step reads beside its own rows."""
        return InputTables(
            {name: find_table(self.lake.child(table)) for name, table in dataflow.inputs.items()}
        )

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        """Sessions that reach the dataflow's source and table."""
        return self.engine_of([dataflow])

    def engine_of(self, dataflows: Iterable[Dataflow]) -> SparkEngine:
        """Sessions that reach the lake and the sources of these dataflows, on a Spark with the jars of all that this process loads."""
        given = list(dataflows)
        readers = chain.from_iterable(map(self._packages_of, given))
        read = chain.from_iterable(map(self._read_by, given))
        engine = self.spark.with_places((self.lake, *read), readers).sharing(self._jars)
        return engine.isolated() if any(map(_runs_functions, given)) else engine

    def _read_by(self, dataflow: Dataflow) -> list[Place | JdbcConnection | ApiConnection | UserCode]:
        """Where the rows of each of a dataflow's sources are, in their order."""
        return [self.source_of(reading) for reading in dataflow.readings]

    def reader_of(self, place: Place) -> SparkEngine:
        """Sessions that read a table of the lake."""
        return self.spark.with_places([self.lake], _packages_at(place)).sharing(self._jars)

    def _packages_of(self, dataflow: Dataflow) -> tuple[str, ...]:
        """What Spark needs for the dataflow's files, for its table, and for the tables that it reads."""
        read = [self.lake.child(table) for table in dataflow.inputs.values()]
        for reading in dataflow.readings:
            if isinstance(reading.source, TableSource):
                place = self.source_of(reading)
                read += [place] if isinstance(place, Place) else []
        of_tables = chain.from_iterable(map(_packages_at, read))
        readers = chain.from_iterable(map(packages_of, dataflow.readings))
        return (*readers, *PACKAGES.get(dataflow.target.format, ()), *of_tables)

    def loading(self, dataflows: Iterable[Dataflow]) -> Platform:
        """Return the same resources, for a process that loads these dataflows."""
        made = replace(self, loads=tuple(dataflows))
        if "log" in vars(self):  # open already
            vars(made)["log"] = self.log
        return made

    @cached_property
    def _jars(self) -> tuple[str, ...]:
        """The jars of the dataflows that this process loads. A source that is unknown, say by a variable that is not set, needs none: its run fails."""
        jars: dict[str, None] = {}
        for dataflow in self.loads:
            with suppress(ConfigurationError):
                engine = self.spark.with_places(self._read_by(dataflow), self._packages_of(dataflow))
                jars |= dict.fromkeys(engine.packages)
        return tuple(jars)

    def plan(
        self, dataflow: Dataflow, now: datetime, units: Callable[[], tuple[str, ...]] | None = None
    ) -> Plan[Any]:
        """What the next run would do. Starts no Spark, changes nothing.

        Args:
            dataflow: its definition.
            now: the clock, aware.
            units: as :meth:`kind` has it.

        Raises:
            NeedsDecision: as a run would.
            SourceError: code ``unreadable_column``: no run can read a column of the source, of which none is pinned yet.
        """
        entry = self.checked(dataflow)
        self._check_columns(dataflow, entry)
        kind = self.kind(dataflow, units=units)
        plan = kind.plan(entry, now)
        changes = (self._change_of_schema(dataflow, entry), self._change_of_keys(dataflow, entry))
        warnings = dict.fromkeys([*plan.warnings, *kind.remarks, *filter(None, changes)])
        return replace(plan, warnings=tuple(warnings))

    def _change_of_keys(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        """What the next run looks for since it is the first to find rows by these keys; None if it is not, or only Spark tells."""
        if entry is None or not entry.keyed_by or entry.replace_table or not dataflow.target.merges:
            return None
        if entry.keyed_by == keyed_by(definition_of(dataflow)) or not self.table(dataflow).exists():
            return None
        keys = ", ".join(dataflow.target.merge_keys)
        return (
            f"the next run that has rows is the first by merge_keys: {keys}, and stops if several rows of table {dataflow.table} have the same"
            " (keys_not_unique)"
        )

    def _check_columns(self, dataflow: Dataflow, entry: Entry | None) -> None:
        """Raise what the first run would fail with, if the source tells its columns without Spark. Above a column each plan looks at them itself."""
        if isinstance(dataflow.watermark, StructuredStream):
            return  # Spark's engine reads files and tables alone, several of them as one
        if dataflow.kind != "column" and (entry is None or not entry.pinned):
            source = self.source(dataflow)
            if isinstance(source, TellsColumns):
                source.check_readable()

    def _change_of_schema(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        """How the columns of a source differ from the pinned ones, and what the next run makes of it; None if only Spark tells."""
        if isinstance(dataflow.watermark, StructuredStream):
            return None  # what is pinned are the columns of its query
        table = dataflow.source.lake_table
        described = find_table(self.lake.child(table)).schema() if table is not None else None
        if described is None or entry is None or not entry.pinned:
            return None
        known = json.loads(self.log.get_schema(entry.pinned))["columns"]
        try:
            found = evolved(known, all_nullable(json.loads(described[1])), dataflow.target.schema_mode)
        except SchemaError as error:
            return f"the next run that has rows will refuse the columns of {table}: {error.message}"
        changes = "; ".join(map(str, found.changes))
        return f"the next rows change the schema with {table}: {changes}" if changes else None

    def checked(self, dataflow: Dataflow) -> Entry | None:
        """Return the newest entry, if definition, open intent and table belong to it. Starts no Spark, changes nothing.

        Raises:
            NeedsDecision: as a run would.
        """
        while True:
            entry = self.log.newest(dataflow.name)
            intent = self.log.open_intent(dataflow.name, entry)
            try:
                check_definition(dataflow, entry, self.log)
                if intent is not None and not intent.is_decision:
                    check_intent(dataflow, intent)
                check_table(dataflow, entry, self.table(dataflow), intent)
            except NeedsDecision:
                newest = self.log.newest(dataflow.name)
                begun = self.log.open_intent(dataflow.name, newest)
                if (newest, begun) == (entry, intent):
                    raise
            else:
                return entry

    def loop(
        self,
        dataflow: Dataflow,
        now: datetime,
        request: Request = DUE,
        *,
        run_id: str | None = None,
        job_id: str | None = None,
        observer: Observer = lambda step, line: None,
        history: RetentionPolicy | None = None,
        **patience: Any,
    ) -> Loop[Any]:
        """Return a run of the dataflow.

        Args:
            dataflow: the definition.
            now: the clock, aware.
            request: what is planned and loaded.
            run_id: Dagster's, if it runs there.
            job_id: Dagster's job.
            observer: hears of every step.
            history: how much of the log stays; None: as the project says.
            patience: attributes of :class:`Patience`.
        """
        staging = self.staging(dataflow)
        context = RunContext(
            dataflow,
            self.kind(dataflow, staging),
            self.log,
            self.table(dataflow),
            self.engine(dataflow).session,
            staging,
            now,
            request,
            run_id,
            job_id,
            self.inputs(dataflow),
            self.folder,
            observer,
            self.bad_records(dataflow),
            self.side_tables(dataflow),
        )
        return Loop(context, Patience(**patience), history or self.history)

    def unfinished(self, dataflow: Dataflow, now: datetime, run_is_live: RunIsLive) -> Unfinished[Any]:
        """Return what a run of the dataflow has left open, for decisions.

        Args:
            dataflow: the definition.
            now: the clock, aware.
            run_is_live: asks Dagster about a run on another machine.
        """
        patience = Patience(run_is_live=run_is_live)
        return Unfinished(self.loop(dataflow, now).context, patience)


def _runs_functions(dataflow: Dataflow) -> bool:
    """Return whether a user's functions run in Spark, or may."""
    return dataflow.transform is not None or isinstance(dataflow.watermark, StructuredStream)


def _packages_at(place: Place) -> tuple[str, ...]:
    """What Spark needs to read the table at a place. One that cannot be looked at says so when it is read."""
    with suppress(SourceError):
        return PACKAGES.get(find_format(place) or "", ())
    return ()
