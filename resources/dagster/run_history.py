"""Find how the last attempt to load a dataflow went.

There are three sources: the note of its last run, a slice that a run has started and not finished, and the
runs that Dagster keeps (DAGSTER_HOME).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from partitions.instants import time_text
from resources.dagster.run_holder import holder_of
from resources.dagster.run_tags import RunTags
from resources.notes.last_run import Attempt, AttemptNote
from resources.watermarks import holder
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun, RunRecord


_IN_FLIGHT = ("running", "queued")
_OVERLAP, _HOLDS = timedelta(minutes=5), timedelta(hours=1)
"""How far the clocks of machines may differ, and how long the result of a query is trusted, in case they differ more."""


class SuccessfulRuns:
    """Remembers the dataflows whose newest run in Dagster succeeded, or that have no run.

    One query tells which of them had a run since the last scan.
    """

    def __init__(self, tags: RunTags | None = None) -> None:
        """Start with no dataflow; ``tags`` are those of the project's runs."""
        self.tags = tags or RunTags()
        self._names: set[str] = set()
        self._cleared_at = self._queried_at = datetime.min.replace(tzinfo=UTC)

    def drop_changed(self, dagster: DagsterInstance, dataflows: Iterable[str]) -> None:
        """Drop the dataflows that had a run since the last call, as found by one query."""
        from dagster import RunsFilter

        before, self._queried_at = self._queried_at, datetime.now(UTC)
        if not timedelta() <= self._queried_at - self._cleared_at < _HOLDS:
            self._names, self._cleared_at = set(), self._queried_at
        if self._names:
            since = RunsFilter(tags=self.tags.of_any(dataflows), updated_after=before - _OVERLAP)
            records = dagster.get_run_records(since)
            self._names -= {self.tags.dataflow_of(record.dagster_run.tags) for record in records}

    def add(self, dataflow: str) -> None:
        """Add a dataflow whose newest run succeeded."""
        self._names.add(dataflow)

    def __contains__(self, dataflow: str) -> bool:
        """Return whether Dagster need not be asked about a dataflow."""
        return dataflow in self._names


class RunHistory:
    """Finds the last attempt of a dataflow, with one or two reads of the log and queries to Dagster."""

    def __init__(
        self,
        log: WatermarkLog,
        dagster: DagsterInstance | None = None,
        well: SuccessfulRuns | None = None,
    ) -> None:
        """Use a log, and Dagster if it keeps its runs.

        Args:
            log: with the notes.
            dagster: with the runs.
            well: the result of earlier queries, with the tags of the project's runs.
        """
        self._log, self._dagster, self._well = log, dagster, well or SuccessfulRuns()

    def last(self, dataflow: str, entry: Entry | None) -> Attempt | None:
        """Return the newest attempt that the log or Dagster tells of; None if there was none.

        Args:
            dataflow: the dataflow's name.
            entry: its newest entry.
        """
        note = AttemptNote.read(self._log, dataflow)
        newest_run = _newest(
            note.run,
            self._open_slice_attempt(dataflow, entry, note),
            self._newest_dagster_attempt(dataflow, note),
        )
        # A look that fails meanwhile does not end a run in flight.
        if newest_run is None or newest_run.status in _IN_FLIGHT:
            return newest_run or note.look
        # The look was after the run of the same note, whatever the clocks of their machines say.
        return note.last if newest_run is note.run else _newest(newest_run, note.look)

    def last_ended(self, dataflow: str, entry: Entry | None, after: int = 1) -> Attempt | None:
        """Return the newest attempt that is over; one in flight does not tell whether the dataflow fails.

        Args:
            dataflow: the dataflow's name.
            entry: its newest entry.
            after: how many looks in a row must have failed until they count. Before that the run before
            them counts, whose failure they do not end.
        """
        note = AttemptNote.read(self._log, dataflow)
        slice_attempt, dagster_attempt = (
            self._open_slice_attempt(dataflow, entry, note),
            self._newest_dagster_attempt(dataflow, note),
        )
        if dagster_attempt is not None and dagster_attempt.status in _IN_FLIGHT:
            dagster_attempt = self._newest_dagster_attempt(dataflow, note, ended=True)
        looks_count = note.look is not None and note.look.failed_looks >= after
        return _newest(
            note.last if looks_count else note.run,
            dagster_attempt,
            None if slice_attempt is not None and slice_attempt.status in _IN_FLIGHT else slice_attempt,
        )

    def _open_slice_attempt(self, dataflow: str, entry: Entry | None, note: AttemptNote) -> Attempt | None:
        """Return the attempt of the open slice, if it started after the last complete run; else None."""
        intent = self._log.open_intent(dataflow, entry)
        if (
            intent is None
            or not intent.loads_slice
            or (note.run and _instant(note.run.time) > _instant(intent.time))
        ):
            return None
        if holder.is_alive(intent.holder, intent.id, self._run_is_live) is not False:
            return _attempt_in_flight(intent.time, "running", note, intent.run_id)
        return _dead_attempt(dataflow, intent.time, f"slice {intent.number}", note, intent.run_id)

    def _run_is_live(self, run_id: str) -> bool | None:
        run = self._dagster.get_run_by_id(run_id) if self._dagster else None
        return None if run is None else not run.is_finished

    def _newest_dagster_attempt(
        self, dataflow: str, note: AttemptNote, *, ended: bool = False
    ) -> Attempt | None:
        """Return the attempt of Dagster's newest run if it failed or has not ended.

        None if it succeeded, or has a note, which says more.

        Args:
            dataflow: the dataflow's name.
            note: its note.
            ended: whether only runs count that are over.
        """
        if self._dagster is None or dataflow in self._well:
            return None
        from dagster import DagsterRunStatus, RunsFilter

        over = (DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)
        runs = RunsFilter(tags=self._well.tags.of(dataflow), statuses=over if ended else ())
        records = self._dagster.get_run_records(runs, limit=1)
        if not records or records[0].dagster_run.is_success:
            if not ended:
                self._well.add(dataflow)
            return None
        if note.run and records[0].dagster_run.run_id == note.run.run_id:
            return None
        return self._attempt_of(dataflow, records[0], note)

    def _attempt_of(self, dataflow: str, record: RunRecord, note: AttemptNote) -> Attempt:
        run, started_at = record.dagster_run, record.create_timestamp.isoformat(timespec="milliseconds")
        if not run.is_finished:
            if _process_is_gone(run):
                return _dead_attempt(dataflow, started_at, f"run {run.run_id[:8]}", note, run.run_id)
            status = "running" if run.status.value == "STARTED" else "queued"
            return _attempt_in_flight(started_at, status, note, run.run_id)
        since = note.failing_since
        error = {"code": "dagster", "message": self._failure(run), "choices": [f"strandline run {dataflow}"]}
        is_canceled = run.status.value == "CANCELED"
        return Attempt(
            started_at,
            "canceled" if is_canceled else "failed",
            error,
            since or started_at,
            run.run_id,
            failures=note.failures + (not is_canceled),
        )

    def _failure(self, run: DagsterRun) -> str:
        """Return why a run failed, from its step's report or else its own."""
        from dagster import DagsterEventType

        message: Any = None
        for kind in (DagsterEventType.STEP_FAILURE, DagsterEventType.RUN_FAILURE):
            if self._dagster is None or message:
                break
            records = self._dagster.get_records_for_run(
                run.run_id, of_type=kind, limit=1, ascending=False
            ).records
            event = records[0].event_log_entry.dagster_event if records else None
            data: Any = event.event_specific_data if event else None
            failure = getattr(data, "user_failure_data", None)
            error = getattr(data, "error", None)
            message = (
                (failure and failure.description)
                or (error and str(error.message).strip())
                or (event and event.message)
            )
        return str(message or f"run {run.run_id} ended as {run.status.value.lower()} without giving a reason")


def _process_is_gone(run: DagsterRun) -> bool:
    run_holder = holder_of(run)
    return run_holder is not None and holder.process_is_alive(run_holder) is False


def _attempt_in_flight(started_at: str, status: str, note: AttemptNote, run_id: str | None) -> Attempt:
    """Return the attempt of a run in flight: until it ends, the dataflow fails as it did before."""
    return Attempt(
        started_at, status, failing_since=note.failing_since, run_id=run_id, failures=note.failures
    )


def _dead_attempt(
    dataflow: str, started_at: str, work: str, note: AttemptNote, run_id: str | None
) -> Attempt:
    message = f"the process of {work}, started at {time_text(started_at)}, is gone (killed?); the next run finishes its work"
    error = {"code": "died", "message": message, "choices": [f"strandline run {dataflow}"]}
    since, failures = note.failing_since or started_at, note.failures + 1
    return Attempt(started_at, "died", error, since, run_id, failures=failures)


def _newest(*candidates: Attempt | None) -> Attempt | None:
    existing = [attempt for attempt in candidates if attempt is not None]
    return max(existing, key=lambda attempt: _instant(attempt.time), default=None)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
