"""Why a file is loaded, or not: from the record of ingested files, the plan, and the source.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError, strip_dataflow
from partitions.instants import milliseconds, time_text
from partitions.path.bad_files import TOO_MANY_BAD_FILES
from partitions.path.hidden import is_hidden_path
from partitions.path.quarantined_files import QuarantinedFile, release_command
from partitions.path.skipped import SkippedNamesCollector, fault_of_key
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile
from partitions.plan import Plan, pluralize
from partitions.spelling import nearest_name
from partitions.why_answer import LoadingEntry, Reason, WhyAnswer
from resources.decisions.reasons import DECISION_REASONS
from resources.kinds.loading_entry import loading_entry
from resources.kinds.path.file_decisions import CAME_LATE
from resources.kinds.path.opening import path_planning
from resources.kinds.path.sweep import unhandled
from resources.listing import stat_files
from resources.notes.last_run import Attempt, AttemptNote, find_decision_since
from resources.platform.opener import Opener
from resources.sources.files.paths import SOURCE_FILE
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import GOES, LOADED_AGAIN, UNPROCESSED_WITHOUT_ROWS, WENT, IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

_POLICY = {
    "ingest": "the next sweep, or run, loads it (late_files: ingest)",
    "quarantine": "the next sweep puts it into quarantine (late_files: quarantine)",
    "alert": "nothing loads it (late_files: alert)",
    "ignore": "nothing loads it (late_files: ignore)",
}


_MAX_RELEASED = 20
"""The most files of a command that releases all of them at once."""


def explain_file(opener: Opener, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
    """Return what became of a file that a user names. Starts no Spark.

    Raises:
        ConfigurationError: neither the log nor the source knows such a file.
        NeedsDecision: as a run would.
        SourceError: the source cannot be read.
    """
    entry = opener.checked_entry(dataflow)
    return _FileExplanation(opener, dataflow, _relative(opener, dataflow, subject), now, entry).answer()


def _message(attempt: Attempt) -> str:
    return str((attempt.error or {}).get("message", ""))


def _is_later(file: SourceFile, attempt: Attempt) -> bool:
    """Return whether a file was changed after an attempt."""
    return file.modified > milliseconds(datetime.fromisoformat(attempt.time))


def _relative(opener: Opener, dataflow: Dataflow, subject: str) -> str:
    """Return a path relative to the source's root; an absolute path or address below it is shortened."""
    root = opener.root_of(dataflow)
    for prefix in (str(root), root.url, str(root.local or root), dataflow.files.path):
        folder = f"{prefix.rstrip('/')}/"
        if subject.startswith(folder):
            return subject.removeprefix(folder)
    return subject.removeprefix("./")


@dataclass(frozen=True)
class _FileExplanation:
    """Answers for one file.

    Attributes:
        path: relative to the source's root.
        entry: the newest entry; None if there is none.
    """

    opener: Opener
    dataflow: Dataflow
    path: str
    now: datetime
    entry: Entry | None

    def answer(self) -> WhyAnswer:
        """Return what the first of these tells: quarantine, record, late files, source."""
        record = self._record
        if (quarantined := self._quarantined) is not None:
            return self._in_quarantine(quarantined, record)
        if record is not None and record.reason not in LOADED_AGAIN:
            return self._handled(record)
        if record is not None and record.reason == WENT and self._source_file is None:
            return self._answer("missing", f"{WENT}; if it comes back, it is loaded", record)
        return self._unhandled(record)

    @cached_property
    def _record(self) -> IngestedFile | None:
        ingested = IngestedFiles(self.opener.log, self.dataflow.name, self.entry)
        return ingested.find_records([self.path]).get(self.path) if self.entry else None

    @cached_property
    def _quarantined(self) -> QuarantinedFile | None:
        files = read_quarantine(self.opener.log, self.entry).files
        return next((file for file in files if file.file.path == self.path), None)

    @cached_property
    def _source_file(self) -> SourceFile | None:
        """The file as it is at the source; None if it is not there."""
        if fault_of_key(self.path) is not None:
            return None
        return stat_files(self.opener.root_of(self.dataflow), [self.path]).get(self.path)

    def _in_quarantine(self, quarantined: QuarantinedFile, record: IngestedFile | None) -> WhyAnswer:
        if quarantined.released:
            return self._due("released from quarantine: the next run loads it", record)
        release = release_command(self.dataflow.name, [self.path])
        summary = f"in quarantine: {_with_remedy(quarantined.reason, 'it')}"
        return self._answer("quarantined", summary, record, release)

    def _handled(self, record: IngestedFile) -> WhyAnswer:
        """Return the answer for a file that an entry has loaded, or skipped with a reason."""
        if record.reason == GOES:
            return self._answer("due", GOES, record)
        if record.reason is not None:
            return self._answer("skipped", f"skipped: {record.reason}", record)
        now_there = self._source_file
        changed = now_there is not None and (now_there.size, now_there.version) != (
            record.size,
            record.version,
        )
        if changed and record.version:
            start, end = shlex.quote(self.path), shlex.quote(f"{self.path}~")
            again = f"strandline replay {self.dataflow.name} --start {start} --end {end} --column {SOURCE_FILE} --replace"
            why = Reason(
                "the file at the source",
                "changed since it was loaded; runs go by names, and do not load it again",
            )
            return self._answer("loaded", "loaded, and changed at the source since", record, again, why)
        return self._answer("loaded", "loaded", record)

    def _unhandled(self, record: IngestedFile | None) -> WhyAnswer:
        """Return the answer for a file that no entry counts as loaded: what the plan, or the sweep, does."""
        if (file := self._source_file) is None:
            raise self._unknown()
        if (ignored := self._why_ignored()) is not None:
            return self._answer("skipped", f"no file of the source: {ignored}")
        plan = self.opener.plan(self.dataflow, self.now)
        for number, slice_ in enumerate(plan.slices, 1):
            if any(planned.path == self.path for planned in slice_.files):
                how = " again" if record and record.reason != UNPROCESSED_WITHOUT_ROWS else ""
                in_slice = f"in slice {number} of {len(plan.slices)}"
                if (
                    self._failure() is None
                    and (failure := self._failure_of(plan.slices[:number])) is not None
                ):
                    waits = f"not loaded: it is {in_slice}, and waits for a slice that failed at other files"
                    return self._answer("waits", waits, record, None, failure)
                summary = f"not loaded yet: the next run loads it{how}, {in_slice}"
                return self._due(summary, record, f"strandline run {self.dataflow.name}")
        if skip := next((skip for skip in plan.skips if skip.subject == self.path), None):
            return self._answer("waits", f"not loaded yet: {skip.why}")
        planning = path_planning(self.opener, self.dataflow)
        if planning.at_or_below_watermark(self.entry, [self.path]):
            return self._late(file)
        return self._answer("unknown", f"not loaded, and the next run does not load it: {plan.why}")

    def _due(self, summary: str, record: IngestedFile | None, choice: str | None = None) -> WhyAnswer:
        """Return the answer for a file that the next run reads; the last attempt may have failed at it."""
        if (failure := self._failure()) is None:
            return self._answer("due", summary, record, choice)
        tries = "not loaded: the last attempt failed at it, and the next run tries it again"
        return self._answer("failing", tries, record, choice, failure)

    def _failure(self) -> Reason | None:
        """Return why the last attempt failed at the file.

        None if its error names another one, or if a decision, or a change of the file, may have mended it.
        """
        file = self._source_file
        for attempt in self._failed_attempts:
            if not names_path(_message(attempt), self.path):
                continue
            if file is not None and _is_later(file, attempt):
                return None
            return self._reason_of(attempt)
        return None

    def _failure_of(self, slices: Sequence[PathSlice]) -> Reason | None:
        """Return why the last attempt failed at one of these slices, which later files wait for.

        None if a file that the error names was changed since. An error of too many bad files names some
        of them, and is one of the first slice.
        """
        files = [file for slice_ in slices for file in slice_.files]
        for attempt in self._failed_attempts:
            named = [file for file in files if names_path(_message(attempt), file.path)]
            if any(_is_later(file, attempt) for file in named):
                return None
            if named or (attempt.error or {}).get("code") == TOO_MANY_BAD_FILES:
                return self._reason_of(attempt)
        return None

    @cached_property
    def _failed_attempts(self) -> list[Attempt]:
        """The last look and run, if they failed, and no decision since may have solved it."""
        note = AttemptNote.read(self.opener.log, self.dataflow.name)
        attempts = [attempt for attempt in (note.look, note.run) if attempt is not None and attempt.error]
        return [
            attempt
            for attempt in attempts
            if find_decision_since(self.opener.log, self.dataflow.name, attempt.time) is None
        ]

    def _reason_of(self, attempt: Attempt) -> Reason:
        error = attempt.error or {}
        return Reason(
            f"the last attempt {attempt.status}",
            strip_dataflow(self.dataflow.name, _message(attempt)),
            attempt.time,
            run_id=attempt.run_id,
            choices=tuple(error.get("choices", ())),
        )

    def _late(self, file: SourceFile) -> WhyAnswer:
        late = unhandled(self.opener.log, self.dataflow, self.entry, self.now)
        modified = time_text(datetime.fromtimestamp(file.modified / 1000, UTC))
        where = f"late: its name sorts at or below the watermark, and it is of {modified}"
        sweep = f"strandline late {self.dataflow.name}"
        if any(late_file.path == self.path for late_file in (*late.files, *late.settling)):
            return self._answer("late", f"{where}; {_POLICY[self.dataflow.late_files]}", None, sweep)
        return self._answer("late", f"{where}; the sweep has not met it yet", None, sweep)

    def _why_ignored(self) -> str | None:
        """Return why a listing passes the name over; None if it does not."""
        if (fault := fault_of_key(self.path)) is not None:
            return fault
        if not is_hidden_path(self.path) and self.path.endswith(tuple(self.dataflow.files.endings)):
            return None
        names = SkippedNamesCollector(self.dataflow.files.endings)
        names.take(self.path)
        return names.skipped[0].why

    def _unknown(self) -> ConfigurationError:
        """Return the error for a path that neither the log nor the source knows."""
        similar_paths = [file.file.path for file in read_quarantine(self.opener.log, self.entry).files]
        with suppress(StrandlineError):
            plan: Plan[PathSlice] = self.opener.plan(self.dataflow, self.now)
            similar_paths += [file.path for slice_ in plan.slices for file in slice_.files]
        if self.entry is not None:
            similar_paths += list(IngestedFiles(self.opener.log, self.dataflow.name, self.entry).recent)
        close = nearest_name(self.path, similar_paths)
        hint = f"did you mean {close}?" if close else "compare the spelling of its path"
        return ConfigurationError(
            f"dataflow {self.dataflow.name}: expected a file that was loaded, or is in "
            f"{self.opener.root_of(self.dataflow)}, found no {self.path!r} in either; {hint}",
        )

    def _answer(
        self,
        status: Any,
        summary: str,
        record: IngestedFile | None = None,
        choice: str | None = None,
        *reasons: Reason,
    ) -> WhyAnswer:
        entries = (self._entry_of(record),) if record is not None else ()
        choices = [*(of_reason for reason in reasons for of_reason in reason.choices), choice]
        return WhyAnswer(
            self.dataflow.name,
            status,
            summary,
            self.path,
            [entry for entry in entries if entry is not None],
            reasons,
            choices=tuple(dict.fromkeys(filter(None, choices))),
        )

    def _entry_of(self, record: IngestedFile) -> LoadingEntry | None:
        """Return the entry that handled the file; None if the log no longer has it."""
        with suppress(StrandlineError):
            entry = self.opener.log.entry(self.dataflow.name, record.number)
            is_left_out = record.reason not in (None, *DECISION_REASONS)  # its rows are of other files
            others = f"with {pluralize(entry.files - 1, 'other file')}" if entry.files > 1 else ""
            return (
                loading_entry(entry, "left the file out", 0) if is_left_out else loading_entry(entry, others)
            )
        return None


def names_path(message: str, path: str) -> bool:
    """Return whether a message names a file by its path below the source's root."""
    return re.search(rf"(?:^|[\s'\"]){re.escape(path)}(?=[,:;'\"\s]|\.?$|\.\s)", message) is not None


def unloaded_files(log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime) -> list[Reason]:
    """Return the files in quarantine, and the late files that the sweep has found. Opens no source."""
    reasons = []
    by_reason: dict[str, list[str]] = {}
    waiting = read_quarantine(log, entry).waiting
    for quarantined in waiting:
        by_reason.setdefault(quarantined.reason, []).append(quarantined.file.path)
    choice = release_command(
        dataflow.name, [quarantined.file.path for quarantined in waiting[:_MAX_RELEASED]]
    )
    for reason, paths in by_reason.items():
        label = pluralize(len(paths), "file")
        why = _with_remedy(reason, "it" if len(paths) == 1 else "them")
        reasons.append(Reason(f"{label} in quarantine, such as {paths[0]}", why, choices=(choice,)))
    if (late := unhandled(log, dataflow, entry, now)).count:
        named = f", such as {late.files[0].path}" if late.files else ""
        label = f"{pluralize(late.count, 'late file')}{named}"
        choice = f"strandline late {dataflow.name}"
        reasons.append(Reason(label, _POLICY[dataflow.late_files], choices=(choice,)))
    return reasons


def _with_remedy(reason: str, which: str) -> str:
    """Return why files are in quarantine, and what to do before their release; a late file is not bad."""
    return reason if reason == CAME_LATE else f"{reason}. Repair {which} at the source, then release {which}"
