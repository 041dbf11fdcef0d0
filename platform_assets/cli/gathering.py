"""The status of a dataflow as one document, for every command that shows or exports it.

It comes from the log, the note of the last run, and a short check of the source. Starts no Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.cli.waiting import UNKNOWN, WaitingWork, look_found_work
from platform_assets.file_views import late_and_quarantined_files
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import CountsRowsSetAside, FindsLateFiles, HasStreamStatus
from resources.alerts.last_loads import LastLoads
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.kinds.path.sweep import LateFiles
from resources.loop.lease import describe_holder
from resources.notes.last_run import Attempt, attempt_after_look, find_decision_since
from resources.notes.reconciled import last_reconciled
from resources.outcome import error_json
from resources.platform.platform import Platform
from resources.platform.rejected_count import count_rejected
from resources.replay.isolated.chunks import isolated_json
from resources.replay.isolated.standing import stored_replays
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from platform_assets.project import Project

_NO_FILES = {"late": {"count": 0, "paths": []}, "quarantined": {"count": 0, "files": []}}


@dataclass
class StatusGathering:
    """Gathers the status of a project's dataflows, each as the JSON of ``strandline list``.

    Attributes:
        platform: the project's resources.
        now: the clock, aware.
        dagster: the instance that keeps the runs; None if none does.
        is_now: whether the clock shows the present time; at another one the sources are not as they are now.
        entry_kinds: the kind of each newest entry, by dataflow. Until a changed definition is accepted it
        may differ from the dataflow's.
    """

    platform: Platform
    now: datetime
    dagster: DagsterInstance | None = None
    is_now: bool = True
    entry_kinds: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Share what is found out about servers and runs between the dataflows."""
        self._waiting = WaitingWork(self.platform, self.now)
        self._history = run_history(self.platform, self.dagster)
        self._loads = LastLoads()

    def status(self, flow: Dataflow) -> dict[str, Any]:
        """Return the status of a dataflow (docs/reference/cli.md).

        Raises:
            StrandlineError: if the log cannot be read.
        """
        log = self.platform.log
        entry = log.newest(flow.name)
        waiting = self._waiting.of(flow, entry)
        last = self._history.last(flow.name, entry)
        has_work = look_found_work(waiting) if self.is_now else None
        attempt, is_over = attempt_after_look(log, flow.name, last, has_work=has_work)
        if entry:
            self.entry_kinds[flow.name] = entry.kind
        stream = _stream(log, flow, entry, self.now)
        return {
            **_identity(flow),
            **_state_columns(entry, stream, self.now),
            "last_load": self._last_load(flow.name, entry),
            "last_attempt": _attempt_json(log, flow.name, attempt, is_over=is_over),
            "waiting": waiting,
            **late_and_quarantined_files(log, entry, _late_files(log, flow, entry, self.now)),
            **_set_aside_rows(flow, entry),
            "buffered": _buffered(stream),
            "stream": stream,
            "held_by": describe_holder(log, flow.name, entry),
            "deletes": _deletes(log, entry),
            "rejected": count_rejected(self.platform, flow),
            "verified": _verified(log, flow.name),
            "replays": [isolated_json(log, aside) for aside in stored_replays(log, flow.name)],
        }

    def _last_load(self, dataflow: str, entry: Entry | None) -> str | None:
        """Return the time of the newest entry that loaded something; None if there is none."""
        if entry is None or entry.why in LOADS:
            return entry.time if entry else None
        return self._loads.time(self.platform.log, dataflow)


def unknown_status(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    """Return the status of a dataflow whose log cannot be read."""
    state_columns = ("state_number", "watermark", "total_rows", "loaded_rows", "lag_seconds", "last_run")
    unknown = dict.fromkeys((*state_columns, "last_load"))
    defaults: dict[str, Any] = {
        "last_attempt": None,
        "waiting": UNKNOWN,
        **_NO_FILES,
        "buffered": None,
        "stream": None,
        "held_by": None,
        "deletes": {"in_force": 0, "withheld": 0},
        "rejected": None,
        "verified": None,
        "replays": [],
        "error": error_json(error),
    }
    return {**_identity(flow), **unknown, **defaults}


def _attempt_json(
    log: WatermarkLog, dataflow: str, attempt: Attempt | None, *, is_over: bool
) -> dict[str, Any] | None:
    """Return an attempt, and what may have ended its failure: a decision, or a source that answers."""
    if attempt is None:
        return None
    decision = find_decision_since(log, dataflow, attempt.time) if attempt.error else None
    return {
        **attempt.as_json(),
        "decided_since": decision.number if decision else None,
        "source_answers": is_over,
    }


def _identity(flow: Dataflow) -> dict[str, Any]:
    return {"dataflow": flow.name, "kind": flow.kind, "target": flow.table}


def _state_columns(entry: Entry | None, stream: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    entry_document = entry.as_json(short=True) if entry else {}
    return {
        "state_number": entry.number if entry else 0,
        "watermark": entry_document.get("watermark"),
        "total_rows": entry.total_rows if entry else 0,
        "loaded_rows": entry.loaded_rows if entry else 0,
        "lag_seconds": stream["watermark_lag_seconds"]
        if stream
        else round(now.timestamp() - entry.modified / 1000, 3)
        if entry and entry.modified
        else None,
        "last_run": entry_document.get("time"),
    }


def _stream(log: WatermarkLog, flow: Dataflow, entry: Entry | None, now: datetime) -> dict[str, Any] | None:
    """Return the lags and waiting rows of a stream; None for another kind, or before the first entry."""
    profile = profile_of(flow)
    if entry is None or PROFILES[entry.kind] is not profile or not isinstance(profile, HasStreamStatus):
        return None
    return profile.stream_status(log, flow, entry, now)


def _buffered(stream: dict[str, Any] | None) -> int | None:
    return stream["waiting_rows"]["rows"] if stream and stream["waiting_rows"] else None


def _late_files(log: WatermarkLog, flow: Dataflow, entry: Entry | None, now: datetime) -> LateFiles:
    profile = profile_of(flow)
    return profile.late_files(log, flow, entry, now) if isinstance(profile, FindsLateFiles) else LateFiles()


def _set_aside_rows(flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
    """Return how many rows were late and quarantined since the start, for a kind that counts rows."""
    profile = profile_of(flow)
    if entry is None or PROFILES[entry.kind] is not profile or not isinstance(profile, CountsRowsSetAside):
        return {}
    late, quarantined = profile.rows_set_aside(entry)
    return {"late": {"count": late, "paths": []}, "quarantined": {"count": quarantined, "files": []}}


def _deletes(log: WatermarkLog, entry: Entry | None) -> dict[str, int]:
    """Return how many deletes are in force, and how many rows they have held back."""
    withheld = entry.total_withheld if entry else 0
    return {"in_force": len(deletes_in_force(log, entry)), "withheld": withheld}


def _verified(log: WatermarkLog, dataflow: str) -> dict[str, Any] | None:
    """Return the last comparison of source and table; None without one."""
    verified = last_reconciled(log, dataflow)
    return verified.as_json() if verified else None


def run_history(platform: Platform, dagster: DagsterInstance | None) -> RunHistory:
    """Return the history of a project's runs in its log and in Dagster, under the names that it has there."""
    if dagster is None:
        return RunHistory(platform.log)
    from platform_assets.factory.noted_names import noted_tags

    return RunHistory(platform.log, dagster, SuccessfulRuns(noted_tags(dagster, platform)))


@contextmanager
def dagster_runs(project: Project) -> Iterator[DagsterInstance | None]:
    """Yield the Dagster instance with its runs; None without DAGSTER_HOME, or if it cannot be opened."""
    if "DAGSTER_HOME" not in os.environ:
        yield None
        return
    from platform_assets.cli.running import instance

    try:
        opened_instance = instance(project)
    except StrandlineError as error:  # without Dagster's runs the states can still be shown
        click.echo(f"Dagster's runs cannot be read: {error.message}", err=True)
        yield None
        return
    with opened_instance as dagster:
        yield dagster
