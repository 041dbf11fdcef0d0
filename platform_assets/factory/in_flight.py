"""Runs of a dataflow that Dagster has as in flight: which of them is, and which died without a report.

A run whose process is gone stays "started" in Dagster for ever. On this machine the process shows it. For a run on another machine
its lease in the watermark log does: the sensor watches it from tick to tick, by its own clock alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from partitions.instants import time_in_words
from resources.dagster.io_managers import holder_of
from resources.dagster.unreported_entries import DATAFLOW_TAG
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
class Sign:
    """What was seen of the lease of a run on another machine.

    Attributes:
        text: identifies this sign.
        at: when it was seen first, epoch seconds of the sensor's clock.
    """

    text: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Busy:
    """A run that is in flight.

    Attributes:
        reason: for people.
        sign: of its lease, for the next tick.
    """

    reason: str
    sign: Sign = field(default_factory=Sign)


Records = Mapping[str, Sequence[RunRecord]]
"""By dataflow, its runs that Dagster has as in flight."""


def records_in_flight(instance: DagsterInstance, dataflows: Iterable[str]) -> Records:
    """Return the runs of some dataflows that Dagster has as in flight, by one question."""
    found: dict[str, list[RunRecord]] = defaultdict(list)
    filters = RunsFilter(tags={DATAFLOW_TAG: sorted(dataflows)}, statuses=_STATUSES)
    for record in instance.get_run_records(filters):
        found[record.dagster_run.tags[DATAFLOW_TAG]].append(record)
    return found


def in_flight(
    instance: DagsterInstance,
    log: WatermarkLog,
    dataflow: str,
    now: float,
    records: Records | None = None,
    seen: Sign | None = None,
) -> Busy | None:
    """Return a run of the dataflow that is in flight, or None. A dead run is reported as failed, which also frees its pool.

    Args:
        instance: with the runs.
        log: with the leases.
        dataflow: its name.
        now: epoch seconds.
        records: of the dataflow, and maybe of others; None asks for them.
        seen: the sign of the last tick; without it no lease is dead.
    """
    if records is None:
        records = records_in_flight(instance, [dataflow])
    for record in records.get(dataflow, ()):
        busy, death = _judged(record, log, dataflow, now, seen or Sign())
        if busy is not None:
            return busy
        instance.report_run_failed(record.dagster_run, f"{death}. The next run finishes what it had begun")
    return None


def runs_in_flight(
    records: Records, log: WatermarkLog, dataflows: Iterable[str], now: float
) -> dict[str, str]:
    """Return the ids of the runs of some dataflows that are in flight, each with its state for people. Reports nothing.

    A run that died on another machine counts as long as the sensors of its own dataflow do not report it.
    """
    found: dict[str, str] = {}
    for name in sorted(dataflows):
        for record in records.get(name, ()):
            busy, _ = _judged(record, log, name, now, Sign())
            if busy is not None:
                found[record.dagster_run.run_id] = f"{name}, {busy.reason}"
    return found


class _Judged(NamedTuple):
    busy: Busy | None
    death: str = ""


def _judged(record: RunRecord, log: WatermarkLog, dataflow: str, now: float, seen: Sign) -> _Judged:
    run = record.dagster_run
    name, holder = f"run {run.run_id[:8]}", holder_of(run)
    alive = process_is_alive(holder) if holder else True
    if holder is not None and alive is False:
        return _Judged(
            None, f"the process of this run is gone (killed?): process {holder.pid} on {host_name(holder)}"
        )
    if alive or holder is None:
        return _Judged(Busy(f"{name} is in flight"))
    where = f"{name} is in flight on {host_name(holder)} (process {holder.pid}), since {_time(record)}"
    held = log.open_intent(dataflow, log.newest(dataflow))
    if held is None or held.holder.run_id != run.run_id:
        no_lease = "it holds no number now, so no lease shows whether it is alive; if that machine is gone, mark the run as failed in the UI"
        return _Judged(Busy(f"{where}: {no_lease}"))
    text = lease.sign(log, held)
    if text != seen.text or now < seen.at:
        renewed = "its lease was renewed" if seen.text.startswith(f"{held.id} ") else "it has a lease"
        look = f"{renewed} (number {held.number}), and is looked at again at the next tick"
        return _Judged(Busy(f"{where}: {look}", Sign(text, now)))
    still = f"its lease (number {held.number}) was not renewed for {now - seen.at:.0f} s"
    if now - seen.at < lease.PATIENCE_SECONDS:
        return _Judged(Busy(f"{where}: {still}", seen))
    return _Judged(None, f"{where}, as Dagster has it, but {still}")


def _time(record: RunRecord) -> str:
    started = record.start_time or record.create_timestamp.timestamp()
    return time_in_words(datetime.fromtimestamp(started, UTC))
