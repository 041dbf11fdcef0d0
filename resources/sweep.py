"""The sweep: looks in small steps for files at or below the watermark that were never ingested (spec 01, Late files).

A round lists everything once, a few pages a step. When it is over, it says: all paths up to the watermark that it began
with were verified, as of its beginning. How far it has come stands in a note beside the log. The note is no truth: that a
file is late is looked up again, in what was ingested, when it is planned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.plan import at_or_below
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from resources.listing import Budget, list_above
from resources.places import Place
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import Ingested
from resources.watermarks.log import WatermarkLog

_OF_A_STORE = Budget(pages=20, seconds=20.0)
"""Of one step: at most 20,000 keys."""
_OF_A_FOLDER = Budget(pages=500, seconds=5.0)
"""Folders are opened quickly, and often hold few files."""

_NOTE = "sweep"
_MOST = 10_000
"""Late files that are remembered by name; the round waits where these are to be ingested first."""


@dataclass(frozen=True)
class Sweep:
    """How far the sweep has come.

    Attributes:
        era: the number of the reset that it belongs to.
        begun: when this round began, ISO; None between two rounds.
        up_to: the watermark that the round began with, sentinel JSON text.
        resume: where the next step goes on.
        listed: files that the round has seen.
        late: the late files that the round has found, as rows of path, size, version and modification time.
        more: how many it has found beyond those.
        before: the late files of the round before.
        verified_up_to: the watermark up to which the last whole round has looked, sentinel JSON text.
        verified_at: when that round began, ISO.
    """

    era: int = 0
    begun: str | None = None
    up_to: str | None = None
    resume: str | None = None
    listed: int = 0
    late: tuple[tuple[str, int, str, int], ...] = ()
    more: int = 0
    before: tuple[tuple[str, int, str, int], ...] = ()
    verified_up_to: str | None = None
    verified_at: str | None = None

    @classmethod
    def read(cls, log: WatermarkLog, dataflow: str, era: int) -> Sweep:
        """The note of a dataflow; a new one after a reset, or where it does not read."""
        note = log.note(dataflow, _NOTE) or {}
        try:
            known = {one.name: note[one.name] for one in fields(cls) if one.name in note}
            found = cls(**known | {key: tuple(map(tuple, note.get(key, ()))) for key in ("late", "before")})
        except (TypeError, ValueError):
            return cls(era)
        return found if found.era == era else cls(era)

    def write(self, log: WatermarkLog, dataflow: str) -> None:
        """Keep it."""
        log.put_note(dataflow, _NOTE, asdict(self))

    @property
    def verified_path(self) -> Any:
        """The watermark up to which the last whole round has looked: a path, or the whole of scope partition."""
        state = json.loads(self.verified_up_to) if self.verified_up_to else {}
        return state.get("path") or state or None

    @property
    def found(self) -> list[SourceFile]:
        """The late files of this round and the one before, each once."""
        return list({row[0]: SourceFile(*row) for row in (*self.before, *self.late)}.values())


@dataclass(frozen=True)
class SweepStep:
    """What one step has done.

    Attributes:
        listed: files that it saw at or below the watermark.
        late: the late ones among them, in pair order.
        complete: whether the round is over.
        sweep: how far it has come.
        calls: LIST calls, or folders opened.
    """

    listed: int
    late: tuple[SourceFile, ...]
    complete: bool
    sweep: Sweep
    calls: int = 0


def step(
    log: WatermarkLog, place: Place, dataflow: Dataflow, now: datetime, budget: Budget | None = None
) -> SweepStep:
    """Go one step on: list some pages, and compare them with what was ingested.

    Args:
        log: what was ingested.
        place: the source's root.
        dataflow: its name, source and policy.
        now: the clock, aware.
        budget: of the listing; None is one that suits the place.

    Raises:
        SourceError: where a listing fails; nothing is noted of it then.
        CorruptWatermark: where what was ingested does not read.
    """
    entry = log.newest(dataflow.name)
    state = PathState.of(entry.state() if entry else None)
    if entry is None or state.status == "initial" or dataflow.path.tracking == "set":
        return SweepStep(0, (), complete=True, sweep=Sweep(entry.era if entry else 0))
    sweep = Sweep.read(log, dataflow.name, entry.era)
    if sweep.begun is None:
        sweep = replace(
            sweep, begun=now.isoformat(), up_to=entry.watermark, resume=None, listed=0, late=(), more=0
        )
    if dataflow.late_files in ("ingest", "quarantine") and len(sweep.late) >= _MOST:
        return SweepStep(0, (), complete=False, sweep=sweep)
    since = PathState.of(deserialise(entry.since)) if entry.since else None
    below = at_or_below(dataflow.path, state, since)
    budget = budget or (_OF_A_STORE if place.local is None else _OF_A_FOLDER)
    listing = list_above(place, below, dataflow.files.endings, budget=budget, resume=sweep.resume)
    late = _unknown(log, dataflow.name, entry, listing.found.files)
    sweep = _noted(sweep, len(listing.found.files), late, listing.resume)
    sweep.write(log, dataflow.name)
    return SweepStep(len(listing.found.files), late, listing.complete, sweep, listing.found.calls)


def waiting(log: WatermarkLog, dataflow: Dataflow, entry: Entry) -> list[str]:
    """Paths that the sweep has found and the next run shall load; whether they still are late is not looked up here."""
    if dataflow.late_files != "ingest":
        return []
    return [file.path for file in Sweep.read(log, dataflow.name, entry.era).found][:_MOST]


def unhandled(log: WatermarkLog, dataflow: str, entry: Entry | None) -> list[SourceFile]:
    """The late files that were found and that no entry has dealt with."""
    if entry is None:
        return []
    found = Sweep.read(log, dataflow, entry.era).found
    return list(_unknown(log, dataflow, entry, found)) if found else []


def _unknown(
    log: WatermarkLog, dataflow: str, entry: Entry, files: Sequence[SourceFile]
) -> tuple[SourceFile, ...]:
    if not files:
        return ()
    known = Ingested(log, dataflow, entry).known([file.path for file in files])
    return tuple(file for file in files if file.path not in known)


def _noted(sweep: Sweep, listed: int, late: Sequence[SourceFile], resume: str | None) -> Sweep:
    kept = (*sweep.late, *(file.row for file in late))
    sweep = replace(
        sweep,
        listed=sweep.listed + listed,
        late=kept[:_MOST],
        more=sweep.more + max(0, len(kept) - _MOST),
        resume=resume,
    )
    if resume is not None:
        return sweep
    return replace(
        sweep, begun=None, before=sweep.late, late=(), verified_up_to=sweep.up_to, verified_at=sweep.begun
    )
