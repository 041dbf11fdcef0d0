"""The sensor of upstream tables: requests a run when a table that a dataflow reads has changed (docs/how-to/chains.md).

The watermark log tells whether a dataflow has loaded something into its table: a run that found nothing, or that was started outside of
Dagster, has the same effect on dataflows downstream either way. Of a table that no dataflow makes its version tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dagster import DagsterInstance, RunRequest, RunsFilter, SensorDefinition

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from platform_assets.factory.sensors import Clock, NoWork, SensorShell, Tick, Work, digest
from resources.dagster.unreported_entries import DATAFLOW_TAG
from resources.platform.platform import Platform
from resources.tables.contract.commits import Version
from resources.tables.registry import find_table
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

CHANGES_TAG = "strandline/upstream"
"""On runs that changed upstream tables have asked for: identifies these changes."""

_ATTEMPT_TAG = "strandline/upstream_attempt"
"""On the same runs: identifies those that one tick requested."""

_FAR = 100
"""The most entries to read in search of the newest that loaded something."""

_RUNS = 50
"""The most runs of one attempt: a tick requests fewer."""


def has_upstream(dataflow: Dataflow, platform: Platform) -> bool:
    """Return whether changes of other tables request runs of a dataflow."""
    return dataflow.run_after_upstream and bool(platform.lineage.upstream_tables(dataflow))


def upstream_sensor(
    dataflow: Dataflow,
    platform: Platform,
    job: Any,
    due: Callable[[Tick], NoWork | Work],
    clock: Clock = time.time,
    *,
    alone: bool = False,
    also: Callable[[Tick], bool] = lambda _: False,
) -> SensorDefinition:
    """Return a sensor that requests runs of ``job`` for what is due once a table that the dataflow reads has changed.

    Args:
        dataflow: the definition.
        platform: the resources.
        job: that the runs are of.
        due: returns all that is due, whether or not it would wake a run by itself.
        clock: epoch seconds.
        alone: whether no other sensor looks for what is new.
        also: whether something is due although no table has changed.
    """
    tables = _UpstreamTables(dataflow, platform)

    def look(tick: Tick) -> NoWork | Work:
        versions = tables.loaded()
        changes = digest(sorted(versions.items()))
        if also(tick):
            return due(tick)
        if not versions or changes == tick.handled:
            return NoWork("no table that it reads has changed", handled=tick.handled)
        if _is_read(tick.instance, platform.log, dataflow, changes):
            return NoWork("a run has read what its upstream tables hold", handled=changes)
        work = due(tick)
        if isinstance(work, NoWork):
            return replace(work, handled=changes)
        return replace(work, digest=changes, requests=_tagged(work, changes))

    names = ", ".join(platform.lineage.upstream_tables(dataflow))
    description = f"Asks for a run of {dataflow.name} when {names} changed."
    return SensorShell("upstream", description, clock=clock, tells=alone).build(dataflow, platform, job, look)


class _UpstreamTables:
    """What the tables that a dataflow reads hold; of each log only new entries are read."""

    def __init__(self, dataflow: Dataflow, platform: Platform) -> None:
        self._tables, self._platform = platform.lineage.upstream_tables(dataflow), platform
        self._known: dict[str, tuple[str, str | None]] = {}

    def loaded(self) -> Mapping[str, Version]:
        """Return by table the newest entry that loaded something into it, or its version; tables without either are missing."""
        found = {
            table: self._loads(makers) if makers else self._version(table)
            for table, makers in self._tables.items()
        }
        return {table: version for table, version in found.items() if version is not None}

    def _version(self, table: str) -> Version | None:
        try:
            return find_table(self._platform.lake.child(table)).contents.newest_version()
        except SourceError as error:
            if error.code != "source_missing":
                raise
            return None

    def _loads(self, makers: Sequence[str]) -> str | None:
        """The newest load of each dataflow that shares a table; None if none has loaded anything."""
        loads = [load for maker in makers if (load := self._load(maker)) is not None]
        return " ".join(loads) or None

    def _load(self, maker: str) -> str | None:
        """The id of the entry: a log that was restored uses its numbers again."""
        log = self._platform.log
        newest = log.newest(maker)
        if newest is None:
            return None
        if self._known.get(maker, ("", None))[0] != newest.id:
            self._known[maker] = newest.id, _newest_load(log, maker, newest)
        return self._known[maker][1]


def _newest_load(log: WatermarkLog, maker: str, newest: Entry) -> str | None:
    if _loads(newest):
        return newest.id
    return next((entry.id for entry in log.history(maker, _FAR) if _loads(entry)), None)


def _loads(entry: Entry) -> bool:
    """Return whether an entry is of a commit that changed rows: a window may have been replaced by none."""
    return entry.why in LOADS and bool(entry.rows or entry.work_units)


def _is_read(instance: DagsterInstance, log: WatermarkLog, dataflow: Dataflow, changes: str) -> bool:
    """Return whether all runs of the newest attempt to read some changes succeeded, or have loaded something.

    What failed of a run that has loaded something is for the dataflow's other sensors, which know how long to wait: a work unit that always
    fails must not have all others read again.
    """
    filters = RunsFilter(tags={DATAFLOW_TAG: dataflow.name, CHANGES_TAG: changes})
    runs = [record.dagster_run for record in instance.get_run_records(filters, limit=_RUNS)]
    if not runs:
        return False
    newest = runs[0].tags.get(_ATTEMPT_TAG)
    failed = {run.run_id for run in runs if run.tags.get(_ATTEMPT_TAG) == newest and not run.is_success}
    if failed:
        failed -= {entry.run_id for entry in log.history(dataflow.name, _FAR) if entry.why in LOADS}
    return not failed


def _tagged(work: Work, changes: str) -> Callable[[str], list[RunRequest]]:
    def requests(attempt: str) -> list[RunRequest]:
        more = {CHANGES_TAG: changes, _ATTEMPT_TAG: attempt}
        return [
            request.with_replaced_attrs(
                run_key=f"{request.run_key}:upstream:{changes}", tags={**request.tags, **more}
            )
            for request in work.requests(attempt)
        ]

    return requests
