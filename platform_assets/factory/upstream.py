"""The sensor of upstream tables: it requests a run when a table that a dataflow reads has changed.

The watermark log tells whether a dataflow has loaded something into its table (docs/how-to/chains.md),
whether or not its run was started by Dagster. For a table that no dataflow loads, its version tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dagster import DagsterInstance, RunRequest, RunsFilter

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work, digest
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_tags import HIDDEN
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.notes.last_run import AttemptNote
from resources.platform.platform import Platform
from resources.tables.contract.commits import Version
from resources.tables.registry import find_table
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

CHANGES_TAG = f"{HIDDEN}upstream"
"""The hidden tag of runs that upstream changes requested; its value identifies the changes."""

_ATTEMPT_TAG = f"{HIDDEN}upstream_attempt"
"""The hidden tag of the same runs; its value identifies the tick that requested them."""

_MAX_ENTRIES = 100
"""The most entries to read when searching for the newest one that loaded something."""

_RUNS = 50
"""The most runs of one attempt: a tick requests fewer."""


def has_upstream(dataflow: Dataflow, platform: Platform) -> bool:
    """Return whether changes of other tables request runs of a dataflow."""
    return dataflow.run_after_upstream and bool(platform.lineage.upstream_tables(dataflow))


def upstream_sensor(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job: Any,
    find_due_work: Callable[[Tick], NoWork | Work],
    clock: Clock = time.time,
    *,
    is_only_sensor: bool = False,
    is_due_anyway: Callable[[Tick], bool] = lambda _: False,
    partitions: WindowAssetPartitions | None = None,
) -> DataflowSensor:
    """Return a sensor that requests runs of ``job`` once a table that the dataflow reads has changed.

    Args:
        dataflow: the definition.
        platform: the resources.
        names: the dataflow's names.
        job: the job to run.
        find_due_work: returns all that is due, whether or not it would start a run by itself.
        clock: returns epoch seconds.
        is_only_sensor: whether no other sensor searches for new data.
        is_due_anyway: returns whether something is due although no table has changed.
        partitions: the dataflow's partitions; None if it has none.
    """
    tables = _UpstreamTables(dataflow, platform)

    def find_work(tick: Tick) -> NoWork | Work:
        versions = tables.newest_loads()
        changes = digest(sorted(versions.items()))
        if is_due_anyway(tick) or (is_only_sensor and _waits_for_source(platform.log, dataflow.name)):
            return find_due_work(tick)
        if not versions or changes == tick.handled:
            return NoWork("no table that it reads has changed", handled=tick.handled)
        if _have_been_read(tick.instance, platform.log, names, changes):
            return NoWork("a run has already read these changes of upstream tables", handled=changes)
        work = find_due_work(tick)
        if isinstance(work, NoWork):
            return replace(work, handled=changes)
        return replace(work, digest=changes, requests=_with_digest_tag(work, changes))

    read = ", ".join(platform.lineage.upstream_tables(dataflow))
    description = f"Requests a run of {dataflow.name} when {read} changes."
    shell = SensorShell(
        "upstream", description, clock=clock, reports_up_to_date=is_only_sensor, partitions=partitions
    )
    return shell.build(dataflow, platform, names, job, find_work)


def _waits_for_source(log: WatermarkLog, dataflow: str) -> bool:
    """Return whether the last attempt could not read the source: then only a look at it ends the failure."""
    return AttemptNote.read(log, dataflow).waits_for_source


class _UpstreamTables:
    """The newest loads of the tables that a dataflow reads; only new entries of each log are read."""

    def __init__(self, dataflow: Dataflow, platform: Platform) -> None:
        self._tables, self._platform = platform.lineage.upstream_tables(dataflow), platform
        self._newest_loads: dict[str, tuple[str, str | None]] = {}

    def newest_loads(self) -> Mapping[str, Version]:
        """Return by table the newest entry that loaded something, or the version of a foreign table.

        Tables without either are left out.
        """
        versions = {
            table: self._loads_of(makers) if makers else self._version(table)
            for table, makers in self._tables.items()
        }
        return {table: version for table, version in versions.items() if version is not None}

    def _version(self, table: str) -> Version | None:
        try:
            return find_table(self._platform.lake.child(table)).contents.newest_version()
        except SourceError as error:
            if error.code != "source_missing":
                raise
            return None

    def _loads_of(self, makers: Sequence[str]) -> str | None:
        """Return the newest loads of the dataflows that share a table; None if none has loaded anything."""
        loads = [load for maker in makers if (load := self._load_of(maker)) is not None]
        return " ".join(loads) or None

    def _load_of(self, maker: str) -> str | None:
        """Return the id of a dataflow's newest load: ids, since a restored log uses its numbers again."""
        log = self._platform.log
        newest = log.newest(maker)
        if newest is None:
            return None
        if self._newest_loads.get(maker, ("", None))[0] != newest.id:
            self._newest_loads[maker] = newest.id, _newest_load(log, maker, newest)
        return self._newest_loads[maker][1]


def _newest_load(log: WatermarkLog, maker: str, newest: Entry) -> str | None:
    if _has_loaded(newest):
        return newest.id
    return next((entry.id for entry in log.history(maker, _MAX_ENTRIES) if _has_loaded(entry)), None)


def _has_loaded(entry: Entry) -> bool:
    """Return whether an entry's commit changed rows; a window replaced by no rows counts."""
    return entry.why in LOADS and bool(entry.rows or entry.work_units)


def _have_been_read(
    instance: DagsterInstance, log: WatermarkLog, names: DagsterDataflowNames, changes: str
) -> bool:
    """Return whether the newest attempt to read some changes has succeeded or loaded something.

    The dataflow's other sensors retry the failed part of a run that has loaded something, after their own
    pauses: a work unit that always fails must not make all others be read again.
    """
    filters = RunsFilter(tags={**names.run_tags, CHANGES_TAG: changes})
    runs = [record.dagster_run for record in instance.get_run_records(filters, limit=_RUNS)]
    if not runs:
        return False
    newest = runs[0].tags.get(_ATTEMPT_TAG)
    failed = {run.run_id for run in runs if run.tags.get(_ATTEMPT_TAG) == newest and not run.is_success}
    if failed:
        failed -= {entry.run_id for entry in log.history(names.dataflow, _MAX_ENTRIES) if entry.why in LOADS}
    return not failed


def _with_digest_tag(work: Work, changes: str) -> Callable[[str], list[RunRequest]]:
    """Return a function of some work's run requests, with the tag by which a later tick finds the runs."""

    def requests(attempt: str) -> list[RunRequest]:
        tags = {CHANGES_TAG: changes, _ATTEMPT_TAG: attempt}
        return [
            request.with_replaced_attrs(
                run_key=f"{request.run_key}:upstream:{changes}", tags={**request.tags, **tags}
            )
            for request in work.requests(attempt)
        ]

    return requests
