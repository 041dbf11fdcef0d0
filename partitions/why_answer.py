"""The answer of ``strandline why``: what became of a part, or why a dataflow loads nothing now.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from partitions.instants import time_text

Status = Literal[
    "up_to_date",
    "due",
    "running",
    "waits",
    "failing",
    "stopped",
    "loaded",
    "loaded_in_part",
    "failed",
    "growing",
    "future",
    "late",
    "quarantined",
    "skipped",
    "missing",
    "outside",
    "unknown",
]
"""``up_to_date`` to ``stopped`` are of a dataflow as a whole, or of a part that is not loaded; the others of parts."""


_LONGEST = 1_000
"""The longest reason for people, which loses its middle beyond: the end often names the cause. JSON has all of it."""


@dataclass(frozen=True)
class Reason:
    """One reason why a part, or something of it, is not loaded.

    Attributes:
        what: the part, as a user knows it.
        why: the reason, in words.
        since: when it began, ISO in UTC; None if unknown.
        next_try: when Dagster's sensor tries it next, ISO; None if it does not wait, or nobody knows.
        due_since: when the pause after a failure was over, ISO; None if it is not, or nothing waited.
        tried_at: when a run last found the reason, ISO; the source may have changed since. None if unknown.
        run_id: the run that failed; None if none did, or it is unknown.
        choices: commands that help.
    """

    what: str
    why: str
    since: str | None = None
    next_try: str | None = None
    due_since: str | None = None
    tried_at: str | None = None
    run_id: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The reason as one line for people."""
        since = f", since {time_text(self.since)}" if self.since else ""
        run = f", run {self.run_id[:8]}" if self.run_id else ""
        next_try = (
            f"; Dagster's sensor, if it is on, tries it again at {time_text(self.next_try)}"
            if self.next_try
            else f"; due since {time_text(self.due_since)}"
            if self.due_since
            else ""
        )
        tried = f" (when it was last tried, {time_text(self.tried_at)})" if self.tried_at else ""
        return f"{self.what}: {_shortened(self.why)}{tried}{since}{run}{next_try}"

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, why)."""
        return {
            "what": self.what,
            "why": self.why,
            "since": self.since,
            "next_try": self.next_try,
            "due_since": self.due_since,
            "tried_at": self.tried_at,
            "run_id": self.run_id,
            "choices": list(self.choices),
        }


@dataclass(frozen=True)
class LoadingEntry:
    """An entry of the log that loaded a part, or something of it.

    Attributes:
        number: the entry's number.
        time: when it was appended, ISO in UTC.
        why: the entry's reason, such as ``run`` or ``replay``.
        rows: rows of the whole entry.
        run_id: the run; None if it is unknown.
        table_version: the version of the table with these rows; None if there is none.
        part: what of the part it loaded; "" for all of it.
        part_rows: rows of the part alone; None if nobody has counted them.
    """

    number: int
    time: str
    why: str
    rows: int
    run_id: str | None = None
    table_version: int | str | None = None
    part: str = ""
    part_rows: int | None = None

    @property
    def line(self) -> str:
        """The entry as one line for people."""
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        counted = rows if self.part_rows is None else f"{self.part_rows:,} of its {rows}"
        version = f", table version {self.table_version}" if self.table_version is not None else ""
        run = f", run {self.run_id[:8]}" if self.run_id else ""
        part = f" ({self.part})" if self.part else ""
        return f"entry {self.number} ({self.why}) of {time_text(self.time)}: {counted}{version}{run}{part}"

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, why)."""
        return {
            "entry": self.number,
            "time": self.time,
            "why": self.why,
            "rows": self.rows,
            "run_id": self.run_id,
            "table_version": self.table_version,
            "part": self.part or None,
            "part_rows": self.part_rows,
        }


@dataclass(frozen=True)
class WhyAnswer:
    """What became of a part, or why a dataflow loads nothing now.

    Attributes:
        dataflow: its name.
        status: the answer in a word.
        summary: the answer in a sentence.
        subject: the part that was asked about, as a user knows it; None for the whole dataflow.
        entries: the entries that loaded it, newest first.
        reasons: why it, or something of it, is not loaded; the most important first.
        hidden: the number of entries and reasons that are left out.
        choices: commands that help.
        verified: what the last comparison of source and table showed, in words; None without one.
    """

    dataflow: str
    status: Status
    summary: str
    subject: str | None = None
    entries: Sequence[LoadingEntry] = ()
    reasons: Sequence[Reason] = ()
    hidden: int = 0
    choices: Sequence[str] = ()
    verified: str | None = None

    @property
    def lines(self) -> list[str]:
        """The answer for people, without the commands: the summary, then what it rests on."""
        heading = " ".join(filter(None, [self.dataflow, self.subject]))
        body = [*(entry.line for entry in self.entries), *(reason.line for reason in self.reasons)]
        more = [f"… and {self.hidden:,} more (--json shows all)"] if self.hidden > 0 else []
        return [f"{heading}: {self.summary}", *body, *more, *filter(None, [self.verified])]

    def short(self, lines: int) -> str:
        """Return the summary and the first reasons as text, which reads well in one line, too."""
        body = [reason.line for reason in self.reasons[:lines]]
        more = len(self.reasons) - len(body)
        rest = [f"… and {more:,} more"] if more > 0 else []
        return "\n• ".join([self.summary, *body, *rest])

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, why)."""
        return {
            "dataflow": self.dataflow,
            "subject": self.subject,
            "status": self.status,
            "summary": self.summary,
            "entries": [entry.as_json() for entry in self.entries],
            "reasons": [reason.as_json() for reason in self.reasons],
            "choices": list(self.choices),
            "verified": self.verified,
        }


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _LONGEST:
        return line
    start, _, _ = line[: _LONGEST // 2].rpartition(" ")
    _, _, end = line[-_LONGEST // 2 :].partition(" ")
    return f"{start} … {end}"
