"""Runs that Dagster lists as in flight: which ones run, and which died without a report.

A run whose process is gone stays "started" in Dagster for ever. On this machine the process shows it. For
a run on another machine its lease in the watermark log does: the sensor watches it from tick to tick, by
its own clock alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from partitions.instants import time_text
from resources.dagster.run_holder import holder_of
from resources.dagster.run_tags import RunTags
from resources.loop import lease
from resources.watermarks.holder import host_name, process_is_alive
from resources.watermarks.log import WatermarkLog

_STATUSES = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class ObservedLease:
    """The last observation of the lease of a run on another machine.

    Attributes:
        text: identifies this sign of life.
        at: when it was first observed, epoch seconds of the sensor's clock.
    """

    text: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class RunInFlight:
    """A run in flight.

    Attributes:
        reason: why it counts as in flight, for people.
        lease: its observed lease, for the next tick.
    """

    reason: str
    lease: ObservedLease = field(default_factory=ObservedLease)


RunRecords = Mapping[str, Sequence[RunRecord]]
"""By dataflow, the runs that Dagster lists as in flight."""


def records_in_flight(instance: DagsterInstance, tags: RunTags, dataflows: Iterable[str]) -> RunRecords:
    """Return the runs that Dagster lists as in flight for some dataflows of a project, in one query."""
    records: dict[str, list[RunRecord]] = defaultdict(list)
    filters = RunsFilter(tags=tags.of_any(dataflows), statuses=_STATUSES)
    for record in instance.get_run_records(filters):
        records[tags.dataflow_of(record.dagster_run.tags)].append(record)
    return records


def find_run_in_flight(
    instance: DagsterInstance,
    log: WatermarkLog,
    tags: RunTags,
    dataflow: str,
    now: float,
    records: RunRecords | None = None,
    observed: ObservedLease | None = None,
) -> RunInFlight | None:
    """Return a run of the dataflow that is in flight, or None; report a dead run as failed.

    The report also frees the dead run's pool.

    Args:
        instance: the Dagster instance with the runs.
        log: the log with the leases.
        tags: the tags of the project's runs.
        dataflow: the dataflow's name.
        now: epoch seconds.
        records: runs of the dataflow, and maybe of others; None queries Dagster.
        observed: the lease at the last tick; without it no lease counts as dead.
    """
    if records is None:
        records = records_in_flight(instance, tags, [dataflow])
    for record in records.get(dataflow, ()):
        busy, death = _judge_run(record, log, dataflow, now, observed or ObservedLease())
        if busy is not None:
            return busy
        instance.report_run_failed(record.dagster_run, f"{death}. The next run finishes its work")
    return None


def describe_runs_in_flight(
    records: RunRecords, log: WatermarkLog, dataflows: Iterable[str], now: float
) -> dict[str, str]:
    """Return the ids of some dataflows' runs in flight, each with its state for people. Reports nothing.

    A run that died on another machine counts until the sensors of its own dataflow report it.
    """
    runs: dict[str, str] = {}
    for name in sorted(dataflows):
        for record in records.get(name, ()):
            busy, _ = _judge_run(record, log, name, now, ObservedLease())
            if busy is not None:
                runs[record.dagster_run.run_id] = f"{name}, {busy.reason}"
    return runs


class _Verdict(NamedTuple):
    busy: RunInFlight | None
    death: str = ""


def _judge_run(
    record: RunRecord, log: WatermarkLog, dataflow: str, now: float, observed: ObservedLease
) -> _Verdict:
    run = record.dagster_run
    name, holder = f"run {run.run_id[:8]}", holder_of(run)
    alive = process_is_alive(holder) if holder else True
    if holder is not None and alive is False:
        return _Verdict(
            None, f"the process of this run is gone (killed?): process {holder.pid} on {host_name(holder)}"
        )
    if alive or holder is None:
        return _Verdict(RunInFlight(f"{name} is in flight"))
    where = f"{name} is in flight on {host_name(holder)} (process {holder.pid}), since {_start_time_in_words(record)}"
    intent = log.open_intent(dataflow, log.newest(dataflow))
    if intent is None or intent.holder.run_id != run.run_id:
        no_lease = (
            "it holds no number now, so no lease shows whether it is alive. If that machine is gone, mark the run "
            "as failed in the UI"
        )
        return _Verdict(RunInFlight(f"{where}: {no_lease}"))
    text = lease.lease_text(log, intent)
    if text != observed.text or now < observed.at:
        renewed = "its lease was renewed" if observed.text.startswith(f"{intent.id} ") else "it has a lease"
        renewal = f"{renewed} (number {intent.number}), and is checked again at the next tick"
        return _Verdict(RunInFlight(f"{where}: {renewal}", ObservedLease(text, now)))
    no_renewal = f"its lease (number {intent.number}) was not renewed for {now - observed.at:.0f} s"
    if now - observed.at < lease.PATIENCE_SECONDS:
        return _Verdict(RunInFlight(f"{where}: {no_renewal}", observed))
    return _Verdict(None, f"{where} according to Dagster, but {no_renewal}")


def _start_time_in_words(record: RunRecord) -> str:
    started = record.start_time or record.create_timestamp.timestamp()
    return time_text(datetime.fromtimestamp(started, UTC))
