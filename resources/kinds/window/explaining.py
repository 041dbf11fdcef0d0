"""Why windows are loaded, or not: from the ledger, the plan and the log.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.instants import as_datetime, milliseconds
from partitions.intervals import intersect, subtract
from partitions.plan import Plan, pluralize
from partitions.why_answer import LoadingEntry, Reason, Status, WhyAnswer
from partitions.window.alike_reasons import describe_alike, kind_of_reason
from partitions.window.asked_windows import AskedWindows, parse_asked_windows
from partitions.window.ledger import Gap, UnitLedger, describe_failure
from partitions.window.skipped_windows import SkippedWindows, skipped_windows
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure, TimeBound, next_try_of
from partitions.window.work_unit import WorkUnit, describe_unit, describe_works
from resources.kinds.loading_entry import loading_entry
from resources.kinds.window.awaited import ledger_of, windows_of
from resources.kinds.window.failing_work import failure_reasons
from resources.kinds.window.opening import open_windows
from resources.kinds.window.unit_lookup import units_of
from resources.platform.opener import Opener
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.lists import SEEN_WORK_UNITS
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import OBSERVED
from resources.watermarks.work_units import WORK_UNITS

_ENTRIES, _SHOWN = 1_000, 10
"""The most entries of the log that are searched, and the most entries and reasons of an answer."""

Key = tuple[TimeBound, str]
"""A work unit: the start of its window, and its unit."""


def explain_windows(opener: Opener, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
    """Return what became of windows and units that a user names. Starts no Spark.

    Raises:
        ConfigurationError: there are no such windows or units.
        NeedsDecision: as a run would.
        PlanError: the units cannot be read.
    """
    entry = opener.checked_entry(dataflow)
    units = units_of(opener, dataflow)
    definition = windows_of(opener, dataflow, now)
    state = WindowState.of(entry.state() if entry else None)
    removed = sorted(set(state.units) - set(units) - {NO_UNIT})
    chosen = parse_asked_windows(
        subject, units, removed, definition.unit_fields, dataflow.zone, dataflow.name, now
    )
    plan = opener.plan(dataflow, now, open_windows(opener, dataflow, units=lambda: units))
    windows = definition.windows(now) if definition.time_entry else Windows.of(())
    ledgers = {unit.unit: unit for unit in ledger_of(opener, dataflow, state, now).units}
    return _Explanation(
        dataflow, subject, now, chosen, plan, state, windows, ledgers, opener.log, entry
    ).answer()


@dataclass(frozen=True)
class _Explanation:
    """Answers for some windows of some units.

    Attributes:
        windows: all windows of the definition at ``now``; none without a time dimension.
        ledgers: what is loaded and missing of each unit.
        entry: the newest entry; None if there is none.
    """

    dataflow: Dataflow
    subject: str
    now: datetime
    chosen: AskedWindows
    plan: Plan[WindowSlice]
    state: WindowState
    windows: Windows
    ledgers: Mapping[str, UnitLedger]
    log: WatermarkLog
    entry: Entry | None

    def answer(self) -> WhyAnswer:
        """Return the answer: what is loaded by which entry, and what is not, with the reasons."""
        if self.dataflow.window.time_entry is None:
            units = self.chosen.units
            loaded: set[Key] = {(None, unit) for unit in units if unit in self.state.units}
            return self._answer_of({(None, unit) for unit in units}, loaded)
        touched = self._touched()
        if not touched:
            return self._outside()
        keys: set[Key] = {
            (self.windows.starts[index], unit) for index in touched for unit in self.chosen.units
        }
        return self._answer_of(keys, keys - self._missing(touched))

    def _touched(self) -> range:
        """Return the indexes of the windows that are asked about."""
        if self.chosen.start is None:
            return range(len(self.windows))
        end = self.chosen.start + 1 if self.chosen.end is None else self.chosen.end
        return self.windows.touching(self.chosen.start, end)

    def _missing(self, touched: range) -> set[Key]:
        """Return the work units of some windows that are not loaded, or not to their end."""
        missing: set[Key] = set()
        span = [(self.windows.starts[touched[0]], self.windows.ends[touched[-1]])]
        for unit in self.chosen.units:
            of_unit = self.ledgers[unit]
            gaps = [(start, end) for start, end, _ in intersect(of_unit.gaps, span)]
            if of_unit.is_removed:
                gaps = subtract(span, of_unit.covered)
            for start, end in gaps:
                missing |= {(self.windows.starts[index], unit) for index in self.windows.touching(start, end)}
        return missing

    def _gaps_of(self, key: Key) -> list[Gap]:
        start, unit = key
        window = self.windows[self.windows.index[start or 0]]
        return [Gap(*gap) for gap in intersect(self.ledgers[unit].gaps, [(window.start, window.end)])]

    def _answer_of(self, keys: set[Key], loaded: set[Key]) -> WhyAnswer:
        missing = keys - loaded
        entries = list(_loading_entries(self.log, self.entry, self.dataflow, loaded, len(keys)))
        reasons = [*self._reasons(missing), *self._failed_rereads(loaded), *self._outdated(loaded)]
        status: Status = "loaded" if not missing else "loaded_in_part" if loaded else self._status(missing)
        hidden = max(0, len(entries) - _SHOWN) + max(0, len(reasons) - _SHOWN)
        return WhyAnswer(
            self.dataflow.name,
            status,
            self._summary(status, keys, loaded, entries),
            self.subject,
            entries[:_SHOWN],
            reasons[:_SHOWN],
            hidden,
            tuple(dict.fromkeys(choice for reason in reasons for choice in reason.choices)),
        )

    def _status(self, missing: set[Key]) -> Status:
        """Return the status of work units of which none is loaded."""
        failed = {key for key in missing if self._failure(key)}
        if failed:
            return "failed"
        starts = {self.windows.starts[index] for index in self.windows.open}
        if missing and all(start in starts for start, _ in missing):
            return "growing"
        return "due" if self.plan.due and self._planned() & missing else "waits"

    def _summary(
        self, status: Status, keys: set[Key], loaded: set[Key], entries: Sequence[LoadingEntry]
    ) -> str:
        part = "" if len(keys) == 1 else f"{len(loaded):,} of {pluralize(len(keys), 'work unit')} loaded"
        match status:
            case "loaded" if outdated := self._outdated_keys(loaded):
                by = f"loaded by entry {entries[0].number}" if entries else "loaded"
                again = (
                    "the next run loads it again"
                    if outdated <= self._planned()
                    else "a later run loads it again"
                )
                count = f"{part}, {len(outdated):,} of them out of date"
                return count if part else f"{by}, {self._why_outdated(*outdated)}: {again}"
            case "loaded" if not entries:
                return (
                    "loaded; no entry of the log lists it: a decision took it as loaded, or its list is gone"
                )
            case "loaded" if self._failed_rereads(loaded):
                return f"{part or 'loaded'}; reading again failed, and the earlier rows stay"
            case "loaded":
                return part or "loaded"
            case "loaded_in_part":
                return part
            case "failed":
                return part or "failed, not loaded"
            case "growing":
                return part or "not loaded yet: the window is still growing"
            case "due":
                return part or "not loaded yet: the next run loads it"
            case _:
                return part or "not loaded yet"

    def _planned(self) -> set[Key]:
        return {work.key for slice_ in self.plan.slices for work in slice_.works}

    def _failure(self, key: Key) -> str | None:
        failure = self._failed_work(key)
        return failure.error or "no reason given" if failure else None

    def _failed_work(self, key: Key) -> Failure | None:
        start, unit = key
        failure = self.state.failed.get(unit, {}).get(start)
        return failure if failure and failure.attempts else None

    def _reasons(self, missing: set[Key]) -> list[Reason]:
        """Return the reasons of work units that are not loaded, work units of one reason together."""
        works = {work.key: work for slice_ in self.plan.slices for work in slice_.works}
        by_why: dict[tuple[int, str], list[tuple[Key, str]]] = defaultdict(list)
        failed_by = _failing_runs(self.log, self.entry, self.dataflow, {*filter(self._failure, missing)})
        for key in sorted(missing, key=lambda key: (key[0] or 0, key[1])):
            order, why = self._why(key, works.get(key))
            by_why[order, kind_of_reason(why, key[1])].append((key, why))
        reasons = []
        for _, alike in sorted(by_why.items()):
            keys = [key for key, _ in alike]
            runs = {failed_by.get(key) for key in keys}
            reasons.append(
                Reason(
                    self._label(keys),
                    describe_alike([why for _, why in alike]),
                    run_id=runs.pop() if len(runs) == 1 else None,
                    choices=(f"strandline run {self.dataflow.name}",) if works.keys() & set(keys) else (),
                    **next_try_of(filter(None, map(self._failed_work, keys)), self.now),
                )
            )
        return reasons

    def _failed_rereads(self, loaded: set[Key]) -> list[Reason]:
        """Return why loaded work units could not be read again; their earlier rows stay."""
        failures = {
            (start, unit): failure
            for unit in sorted({unit for _, unit in loaded})
            for start, failure in self.state.failed_rereads(unit).items()
            if (start, unit) in loaded
        }
        return failure_reasons(failures, self.dataflow, self.now)

    def _outdated_keys(self, loaded: set[Key]) -> set[Key]:
        """Return the loaded work units whose upstream has changed since."""
        return {key for key in loaded if self._why_outdated(key)}

    def _why_outdated(self, key: Key) -> str:
        """Return why a loaded work unit is out of date; "" if it is not."""
        start, unit = key
        if start is None:
            return ""
        window = self.windows[self.windows.index[start]]
        outdated = intersect(self.ledgers[unit].outdated, [window])
        return outdated[0][2] if outdated else ""

    def _outdated(self, loaded: set[Key]) -> Iterator[Reason]:
        """Yield the loaded work units that are out of date, those of one reason together."""
        by_why: dict[tuple[str, bool], list[Key]] = defaultdict(list)
        planned = self._planned()
        for key in sorted(self._outdated_keys(loaded), key=lambda key: (key[0] or 0, key[1])):
            by_why[self._why_outdated(key), key in planned].append(key)
        for (why, is_planned), keys in by_why.items():
            again = "the next run loads it again" if is_planned else "a later run loads it again"
            choices = (f"strandline run {self.dataflow.name}",) if is_planned else ()
            yield Reason(self._label(keys), f"loaded, {why}: {again}", choices=choices)

    def _why(self, key: Key, planned: WorkUnit | None) -> tuple[int, str]:
        """Return the order and the reason of a work unit that is not loaded."""
        start, unit = key
        if (failure := self._failed_work(key)) is not None:
            return 0, describe_failure(failure)
        if self.ledgers[unit].is_removed:
            return 4, "no longer a unit: nothing more of it is loaded"
        if skip := next(self._skips_about(key), None):
            return 1, skip
        gaps = self._gaps_of(key) if start is not None else []
        why = gaps[0].why if gaps else "never loaded"
        if planned is not None:
            return 2, f"{why}; the next run loads it ({planned.reason})"
        return 3, why

    def _skips_about(self, key: Key) -> Iterator[str]:
        """Yield why the plan leaves a work unit out, such as what it waits for."""
        start, unit = key
        if start is None:
            return
        end = self.windows[self.windows.index[start]].end
        for span, of_unit, why in self._skips:
            if span[0] < end and start < span[1] and of_unit in ("", describe_unit(unit)):
                yield why

    @cached_property
    def _skips(self) -> list[SkippedWindows]:
        """The ranges that the plan leaves out, such as windows that wait for something."""
        return list(skipped_windows(self.plan.skips))

    def _outside(self) -> WhyAnswer:
        """Return the answer for a time without windows: what keeps them from being there."""
        start = self.chosen.start or 0
        end = start + 1 if self.chosen.end is None else self.chosen.end
        skip_reasons = [why for span, _, why in self._skips if span[0] < end and start < span[1]]
        waits = [Reason("the plan", warning) for warning in self.plan.warnings]
        loaded = [
            unit
            for unit in self.chosen.units
            if intersect(((*span, None) for span in self.ledgers[unit].covered), [(start, end)])
        ]
        status: Status = "outside"
        if start >= milliseconds(self.now) or skip_reasons:
            status, summary = (
                "future",
                skip_reasons[0] if skip_reasons else "in the future: its windows are not over yet",
            )
        elif self.windows and start >= self.windows.ends[-1]:
            status = "waits"
            summary = f"no window yet: windows end at {self._at(self.windows.ends[-1])}"
        elif self.windows:
            spans = f"[{self._at(self.windows.starts[0])}, {self._at(self.windows.ends[-1])})"
            summary = f"no window of the definition: the windows cover {spans}"
        else:
            status, summary = "waits", self.plan.why
        if loaded:
            summary += f"; rows of {pluralize(len(loaded), 'unit')} were loaded by an earlier definition"
        return WhyAnswer(self.dataflow.name, status, summary, self.subject, reasons=waits[:_SHOWN])

    def _label(self, keys: Sequence[Key]) -> str:
        works = [
            WorkUnit(
                start,
                None if start is None else self.windows[self.windows.index[start]].end,
                unit,
                start,
                "new",
            )
            for start, unit in keys
        ]
        return describe_works(works, self.dataflow.zone)

    def _at(self, instant: int) -> str:
        return as_datetime(instant, self.dataflow.zone).isoformat()


def _loading_entries(
    log: WatermarkLog, newest: Entry | None, dataflow: Dataflow, keys: set[Key], count: int
) -> Iterator[LoadingEntry]:
    """Yield the newest entry that loaded each work unit, newest first; ``count`` were asked about."""
    remaining, era = set(keys), newest.era if newest else 0
    for entry in log.history(dataflow.name, _ENTRIES) if newest and remaining else ():
        if not remaining or entry.number <= era:
            return
        loaded = remaining & _keys_of(log, entry, failed=False)
        if not loaded:
            continue
        remaining -= loaded
        part = "" if count == 1 else _part_in_words(loaded, dataflow)
        counts = _rows_of(log, dataflow.name, entry)
        part_counts = [counts[key] for key in loaded if key in counts]
        part_rows = sum(part_counts) if len(part_counts) == len(loaded) else None
        if part_rows is None:  # only slices of few work units are counted by work unit
            part = ", ".join(filter(None, [part, "rows of all its work units"]))
        yield loading_entry(entry, part, part_rows)


def _failing_runs(
    log: WatermarkLog, newest: Entry | None, dataflow: Dataflow, keys: set[Key]
) -> dict[Key, str | None]:
    """Return the run that last failed to load each work unit."""
    runs: dict[Key, str | None] = {}
    for entry in log.history(dataflow.name, _ENTRIES) if newest and keys else ():
        if entry.failed_units:
            failed = (keys - runs.keys()) & _keys_of(log, entry, failed=True)
            runs |= dict.fromkeys(failed, entry.run_id)
        if len(runs) == len(keys):
            break
    return runs


def _keys_of(log: WatermarkLog, entry: Entry, *, failed: bool) -> set[Key]:
    """Return the work units that an entry loaded, or failed to load; none if its list is gone."""
    if entry.why not in LOADS or not entry.file_list:
        return set()
    with suppress(StrandlineError):
        rows = log.get_list(entry.file_list, WORK_UNITS).rows
        return {(start, unit) for start, _, unit, *_, error in rows if (error is not None) == failed}
    return set()


def _rows_of(log: WatermarkLog, dataflow: str, entry: Entry) -> Mapping[Key, int]:
    """Return the rows of each work unit of an entry; none if the write did not count them."""
    with suppress(StrandlineError):
        name = f"{entry.number:010d}-{entry.id}"
        observed = log.find_list(dataflow, OBSERVED, name, SEEN_WORK_UNITS)
        return {(start, unit): rows for start, unit, rows, _ in observed.rows} if observed else {}
    return {}


def _part_in_words(keys: set[Key], dataflow: Dataflow) -> str:
    units = sorted({unit for _, unit in keys} - {NO_UNIT})
    of_unit = describe_unit(units[0]) if len(units) == 1 else pluralize(len(units), "unit") if units else ""
    starts = {start for start, _ in keys if start is not None}
    first = as_datetime(min(starts), dataflow.zone).isoformat() if starts else ""
    windows = (
        first if len(starts) == 1 else f"{pluralize(len(starts), 'window')} from {first}" if starts else ""
    )
    return " of ".join(filter(None, [windows, of_unit]))
