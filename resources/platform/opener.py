"""Open what a command needs for a dataflow: its run, plan, replay or rules for decisions.

A registry provides what differs between kinds of watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Self

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, SchemaError, StrandlineError, strip_dataflow
from partitions.evolution import evolve_schema
from partitions.plan import Plan
from partitions.readings import dataflows_by_source
from partitions.request import DUE, Request
from partitions.schema_types import all_nullable
from resources.kinds.contract.decisions import StateRules
from resources.kinds.contract.kind import Kind
from resources.kinds.registered import RegisteredKind
from resources.loop.context import RunContext
from resources.loop.entries import keyed_by
from resources.loop.guards.definition import check_definition, check_intent, definition_of
from resources.loop.guards.table import check_table
from resources.loop.holder_wait import HolderPolicy
from resources.loop.loop import Loop
from resources.loop.open_intent import UnfinishedIntent
from resources.loop.run_events import NoRunEvents, RunEvents
from resources.open_lineage.datasets import name_of_place, names_of_source
from resources.open_lineage.events import OpenLineageEvents, ReadDatasets
from resources.outcome import Observer
from resources.platform.stores import Stores
from resources.platform.table_effects import describe_table_effects
from resources.replay.kind import ReplayKind
from resources.replay.options import ReplayOptions
from resources.sources.files.changed_schema import find_change_without_spark
from resources.sources.files.pinned import PinnedSchema
from resources.sources.source import TellsColumns
from resources.staging import Staging
from resources.tables.registry import find_table
from resources.watermarks.compaction import RetentionPolicy
from resources.watermarks.entry import Entry
from resources.watermarks.holder import RunIsLive


@dataclass(frozen=True)
class Opener(Stores):
    """Opens a dataflow's kind of watermark, and with it the dataflow's plan, run, replay and rules.

    Attributes:
        kinds: the registry: by the type of a watermark's definition, its kind.
    """

    kinds: ClassVar[Mapping[type, RegisteredKind]]

    def registered_kind(self, dataflow: Dataflow) -> RegisteredKind:
        """Return the registered kind of a dataflow's watermark."""
        return self.kinds[type(dataflow.watermark)]

    def kind(self, dataflow: Dataflow, staging: Staging | None = None) -> Kind[Any]:
        """Return the dataflow's kind of watermark, bound to its source.

        Args:
            dataflow: the dataflow's definition.
            staging: the staging of the run that reads; None if no rows are read.
        """
        return self.registered_kind(dataflow).open(self, dataflow, staging)

    def rules(self, dataflow: Dataflow) -> StateRules:
        """Return the rules for decisions about a dataflow's state."""
        return self.registered_kind(dataflow).rules(self, dataflow)

    def replay(self, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> ReplayKind:
        """Return the replay of a range; its options are not checked yet.

        Raises:
            ConfigurationError: if the dataflow's kind has no replay.
        """
        make_replay = self.registered_kind(dataflow).replay
        if make_replay is None:
            replayable = {kind.name for kind in self.kinds.values() if kind.replay is not None}
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected a watermark of type {', '.join(sorted(replayable))}, "
                f"found {dataflow.kind}: a stream cannot be read again in parts. Reload it: strandline "
                f"state reset {dataflow.name} --replace --reason TEXT"
            )
        return make_replay(self, dataflow, options, now)

    def plan(self, dataflow: Dataflow, now: datetime, kind: Kind[Any] | None = None) -> Plan[Any]:
        """Return the plan of the next run. Starts no Spark, changes nothing.

        Nothing is due while an upstream dataflow has yet to create the source's table.

        Args:
            dataflow: the dataflow's definition.
            now: the clock, aware.
            kind: the dataflow's kind, if it is bound already; None: :meth:`kind`.

        Raises:
            NeedsDecision: as a run would.
            SourceError: code ``unreadable_column``: no run can read a column of the source, and no schema
            is pinned yet.
        """
        entry = self.checked_entry(dataflow)
        self._check_columns(dataflow, entry)
        kind = self.kind(dataflow) if kind is None else kind
        stop, columns = self._stop(dataflow, entry)
        stops = (stop.message,) if stop else ()
        if waits := self.waits_for_upstream(dataflow):
            waits += "; `strandline run --all` runs each dataflow after those whose tables it reads"
        try:
            plan = kind.planning.plan(entry, now)
        except StrandlineError as error:
            if not waits or not error.is_of_missing_source:
                raise
            number = entry.number if entry else 0
            return Plan(dataflow.name, dataflow.kind, number, now, waits, warnings=stops, stop=stop)
        is_decided = entry is not None and entry.why == "accept"
        before = self.log.find(dataflow.name, entry.previous) if entry and is_decided else entry
        changes = (columns, *stops, *self.table_effects(dataflow, entry, before))
        warnings = dict.fromkeys([*plan.warnings, *kind.reading.warnings, *filter(None, (waits, *changes))])
        return replace(plan, warnings=tuple(warnings), stop=stop)

    def table_effects(self, dataflow: Dataflow, entry: Entry | None, before: Entry | None) -> tuple[str, ...]:
        """Return sentences about tables that a definition or decision leaves as they are, and about new keys.

        Args:
            dataflow: the definition.
            entry: the entry that the next run builds on.
            before: the entry before a decision; ``entry`` itself if there was none.
        """
        keys = self._unchecked_keys(dataflow, entry)
        return (*([keys.message] if keys else []), *describe_table_effects(self, dataflow, entry, before))

    def _stop(self, dataflow: Dataflow, entry: Entry | None) -> tuple[NeedsDecision | None, str | None]:
        """Return why the next run with rows stops for a decision, and how its columns change the schema.

        Every stop that a plan foresees is here: its message is a sentence about the next run, and its
        choices lead on. Checks that need Spark are left to the run.
        """
        try:
            columns = self._change_of_schema(dataflow, entry)
        except SchemaError as error:
            return _stop_of_schema(dataflow, error), None
        return self._unchecked_keys(dataflow, entry), columns

    def _unchecked_keys(self, dataflow: Dataflow, entry: Entry | None) -> NeedsDecision | None:
        """Return that the next run checks new merge keys, and stops if rows share one; None without new keys.

        None, too, if only Spark can tell.
        """
        if entry is None or not entry.keyed_by or entry.replace_table or not dataflow.target.merges:
            return None
        if entry.keyed_by == keyed_by(definition_of(dataflow)) or not self.table(dataflow).exists():
            return None
        keys = ", ".join(dataflow.target.merge_keys)
        return NeedsDecision(
            f"the next run with rows is the first with merge_keys: {keys}. It stops if rows of table "
            f"{dataflow.table} share a key (keys_not_unique); a run checks them before it changes anything",
            code="keys_not_unique",
            choices=(f"strandline run {dataflow.name}",),
        )

    def _check_columns(self, dataflow: Dataflow, entry: Entry | None) -> None:
        """Raise what the first run would raise for columns that no run can read, if that needs no Spark.

        Plans of column watermarks check the columns themselves.
        """
        if dataflow.streams_with_spark:
            return  # Spark's engine reads files and tables alone, several of them as one
        if not dataflow.watermark.value_columns and (entry is None or not entry.pinned):
            source = self.source(dataflow)
            if isinstance(source, TellsColumns):
                source.check_readable()

    def _change_of_schema(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        """Return how the source's columns differ from the pinned ones, and what the next run does about it.

        None if they do not differ, or only Spark can tell.

        Raises:
            SchemaError: the next run with rows refuses the columns.
        """
        if dataflow.streams_with_spark:
            return None  # what is pinned are the columns of its query
        if entry is None or not entry.pinned:
            return None
        declared = dataflow.source.declared_schema
        if declared is not None and dataflow.target.schema_mode == "strict":
            pinned = PinnedSchema.of(self.log.get_schema(entry.pinned))
            if error := find_change_without_spark(declared, pinned, dataflow.name):
                raise error
            return None
        table = dataflow.source.lake_table
        described = find_table(self.lake.child(table)).contents.schema() if table is not None else None
        if described is None:
            return None
        pinned_columns = json.loads(self.log.get_schema(entry.pinned))["columns"]
        incoming = all_nullable(json.loads(described[1]))
        try:
            evolution = evolve_schema(pinned_columns, incoming, dataflow.target.schema_mode)
        except SchemaError as error:
            raise SchemaError(
                f"columns of {table}: {error.message}",
                reason=error.reason,
                field=error.field,
                choices=error.choices or (f"strandline state reset {dataflow.name} --replace --reason TEXT",),
            ) from error
        changes = "; ".join(map(str, evolution.changes))
        return f"the next rows change the schema with {table}: {changes}" if changes else None

    def checked_entry(self, dataflow: Dataflow) -> Entry | None:
        """Return the newest entry, after checking that definition, open intent and table match it.

        Starts no Spark, changes nothing.

        Raises:
            NeedsDecision: as a run would.
        """
        while True:
            entry = self.log.newest(dataflow.name)
            intent = self.log.open_intent(dataflow.name, entry)
            try:
                check_definition(dataflow, entry, self.log)
                if intent is not None and intent.loads_slice:
                    check_intent(dataflow, intent)
                check_table(dataflow, entry, self.table(dataflow), intent, self.own_state(dataflow))
            except NeedsDecision:
                newest = self.log.newest(dataflow.name)
                newest_intent = self.log.open_intent(dataflow.name, newest)
                if (newest, newest_intent) == (entry, intent):
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
        retention: RetentionPolicy | None = None,
        live: Dataflow | None = None,
        **patience: Any,
    ) -> Loop[Any]:
        """Return the loop that runs the dataflow; nothing starts yet.

        Args:
            dataflow: the definition.
            now: the clock, aware.
            request: the work to plan and load.
            run_id: the id of the Dagster run; None outside Dagster.
            job_id: the id of the Dagster job.
            observer: called after every step.
            retention: how much of the log is retained; None: as in the project.
            live: the dataflow of an isolated replay, whose deletes are in force; None for any other run.
            patience: attributes of :class:`HolderPolicy`.
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
            own_state=self.own_state(dataflow),
            deletes_of=live.name if live else None,
            live_table=self.table(live) if live else None,
            events=self._run_events(dataflow, run_id, job_id),
            references=self.references(dataflow),
        )
        return Loop(context, HolderPolicy(**patience), retention or self.history)

    def _run_events(self, dataflow: Dataflow, run_id: str | None, job_id: str | None) -> RunEvents:
        if self.catalog is None:
            return NoRunEvents()
        inputs = partial(self._read_datasets, dataflow)
        output, table = name_of_place(self.lake.child(dataflow.table)), self.table(dataflow)
        return OpenLineageEvents(self.catalog, dataflow, inputs, output, table, self.log, run_id, job_id)

    def _read_datasets(self, dataflow: Dataflow) -> ReadDatasets:
        """Return the datasets that a run of the dataflow reads."""
        own = [
            name
            for reading in dataflows_by_source(dataflow)
            for name in names_of_source(reading.source, self.source_of(reading))
        ]
        tables = {table: table for table in self.lineage.upstream_tables(dataflow)} | dict(dataflow.inputs)
        places = {view: self.lake.child(table) for view, table in tables.items()}
        beside = {view: (name_of_place(place), find_table(place)) for view, place in places.items()}
        return ReadDatasets(tuple(dict.fromkeys(own)), beside)

    def with_intent_ended(self, dataflow: Dataflow, now: datetime) -> Self:
        """Return the same resources over a rehearsal of the log, in which the open intent has ended.

        If its commit is in the table, it counts as loaded: the table then holds what the log says. Changes
        nothing, starts no Spark.

        Args:
            dataflow: the definition.
            now: the clock, aware.
        """
        ended = self.rehearsal()
        entry = ended.unfinished_intent(dataflow, now, lambda run_id: None).preview_abandoned()
        newest = ended.log.newest(dataflow.name)
        if entry is not None and (newest is None or entry.id != newest.id):
            ended.log.append(dataflow.name, entry, expected=entry.previous)
        return ended

    def unfinished_intent(
        self, dataflow: Dataflow, now: datetime, run_is_live: RunIsLive
    ) -> UnfinishedIntent[Any]:
        """Return the handle by which a decision ends the intent that a run of the dataflow has left open.

        Args:
            dataflow: the definition.
            now: the clock, aware.
            run_is_live: asks Dagster about a run on another machine.
        """
        patience = HolderPolicy(run_is_live=run_is_live)
        context = self.loop(dataflow, now).context
        own_state = replace(self.own_state(dataflow), takes_any=True)
        return UnfinishedIntent(replace(context, own_state=own_state), patience)


def _stop_of_schema(dataflow: Dataflow, error: SchemaError) -> NeedsDecision:
    """Return the stop of the next run with rows that a schema causes."""
    message = f"the next run with rows stops: {strip_dataflow(dataflow.name, error.message)}"
    return NeedsDecision(message, code=error.code, choices=error.choices)
