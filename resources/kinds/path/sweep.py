"""The sweep: looks in small steps for files at or below the watermark that were never ingested (docs/reference/files.md, Late files).

A round lists everything once, a few pages a step. When it is over, it says: all paths up to the watermark that it began
with were verified, as of its beginning. How far it has come stands in a note beside the log. The note is no truth: that a
file is late is looked up again, in what was ingested, when it is planned.

The note stays small whatever a round finds: it names so many late files, and counts those beyond. Nothing that is only
counted is lost: the next round finds it again, and by then what was named is dealt with.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.position_of_state import sweep_start
from partitions.path.settle import is_settling
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from resources.connections.places import Place
from resources.listing import Budget, list_above
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_OF_A_STORE = Budget(pages=20, seconds=20.0)
"""Of one step: at most 20,000 keys."""
_OF_A_FOLDER = Budget(pages=500, seconds=5.0)
"""Folders are opened quickly, and often hold few files."""

_NOTE = "sweep"
_NAMED = {"ingest": 40_000, "quarantine": 40_000, "alert": 1_000, "ignore": 1_000}
"""Late files that a round names, by policy: all that two steps can find in a bucket, if something is to be done with them."""

Row = tuple[str, int, str, int]
"""A file as the note keeps it."""


@dataclass(frozen=True)
class Sweep:
    """How far the sweep has come.

    Attributes:
        era: the number of the reset that it belongs to.
        begun: when this round began, ISO; None between two rounds.
        up_to: the watermark that the round began with, sentinel JSON text.
        resume: where the next step continues.
        listed: files that the round has seen.
        late: late files that the round has found, as rows of path, size, version and modification time.
        more: how many it has found beyond those.
        met: how many of all these the round before has not named.
        before: late files of the round before.
        beyond: how many that round had found beyond those.
        verified_up_to: the watermark up to which the last whole round has looked, sentinel JSON text.
        verified_at: when that round began, ISO.
    """

    era: int = 0
    begun: str | None = None
    up_to: str | None = None
    resume: str | None = None
    listed: int = 0
    late: tuple[Row, ...] = ()
    more: int = 0
    met: int = 0
    before: tuple[Row, ...] = ()
    beyond: int = 0
    verified_up_to: str | None = None
    verified_at: str | None = None

    @classmethod
    def read(cls, log: WatermarkLog, dataflow: str, era: int) -> Sweep:
        """The note of a dataflow; a new one after a reset, or if it does not read."""
        note = log.note(dataflow, _NOTE) or {}
        try:
            known = {
                attribute.name: note[attribute.name] for attribute in fields(cls) if attribute.name in note
            }
            noted = cls(**known | {key: tuple(map(tuple, note.get(key, ()))) for key in ("late", "before")})
        except (TypeError, ValueError):
            return cls(era)
        return noted if noted.era == era else cls(era)

    def write(self, log: WatermarkLog, dataflow: str) -> None:
        """Keep it."""
        log.put_note(dataflow, _NOTE, asdict(self))

    @property
    def verified_path(self) -> Any:
        """The watermark up to which the last whole round has looked: a path, or the whole of scope partition."""
        state = json.loads(self.verified_up_to) if self.verified_up_to else {}
        return state.get("path") or state or None

    @property
    def named(self) -> dict[str, SourceFile]:
        """The late files of this round and the one before that are known by name, each once."""
        return {row[0]: SourceFile(*row) for row in (*self.before, *self.late)}

    def without(self, known: Collection[str]) -> Sweep:
        """The note without files that were dealt with."""
        late, before = (
            tuple(row for row in rows if row[0] not in known) for rows in (self.late, self.before)
        )
        return replace(self, late=late, before=before)

    @property
    def unnamed(self) -> int:
        """How many late files there are beside those that have a name: of this round, and of the round before if this round has not met them yet."""
        return self.more + max(0, self.beyond - self.met)


@dataclass(frozen=True)
class LateFiles:
    """Late files that no entry has dealt with.

    Attributes:
        files: known by name.
        settling: known by name, and younger than ``settle``: they are late once they are not.
        more: how many there are beyond those; a later round names them.
    """

    files: tuple[SourceFile, ...] = ()
    settling: tuple[SourceFile, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many are late."""
        return len(self.files) + self.more

    def first(self, most: int) -> list[str]:
        """The paths of the first ones."""
        return [file.path for file in self.files[:most]]


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
    log: WatermarkLog,
    place: Place,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    most: int | None = None,
) -> SweepStep:
    """Go one step on: list some pages, and compare them with what was ingested.

    A late file that has not settled is noted, and reported once it has.

    Args:
        log: what was ingested.
        place: the source's root.
        dataflow: its name, source and policy.
        now: the clock, aware.
        budget: of the listing; None is one that suits the place.
        most: late files that the note names; None is a number that suits the policy.

    Raises:
        SourceError: if a listing fails; nothing is noted of it then.
        CorruptWatermark: if what was ingested does not read.
    """
    entry = log.newest(dataflow.name)
    state = PathState.of(entry.state() if entry else None)
    if entry is None or state.status == "initial" or dataflow.path.tracking == "set":
        return SweepStep(0, (), complete=True, sweep=Sweep(entry.era if entry else 0))
    sweep = Sweep.read(log, dataflow.name, entry.era)
    if sweep.begun is None:
        sweep = replace(
            sweep, begun=now.isoformat(), up_to=entry.watermark, resume=None, listed=0, late=(), more=0, met=0
        )
    since = PathState.of(deserialise(entry.since)) if entry.since else None
    below = sweep_start(dataflow.path, state, since)
    budget = budget or (_OF_A_STORE if place.local is None else _OF_A_FOLDER)
    listing = list_above(place, below, dataflow.files.endings, budget=budget, resume=sweep.resume)
    files = listing.listed.files
    known = _known(log, dataflow.name, entry, [*sweep.named, *(file.path for file in files)])
    late = tuple(file for file in files if file.path not in known)
    most = _NAMED[dataflow.late_files] if most is None else most
    sweep = _noted(sweep.without(known), len(files), late, listing.resume, most)
    sweep.write(log, dataflow.name)
    settled = tuple(file for file in late if not is_settling(dataflow.path, file, now))
    return SweepStep(len(files), settled, listing.complete, sweep, listing.listed.calls)


def unhandled(log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime) -> LateFiles:
    """The late files that the sweep has found and that no entry has dealt with."""
    if entry is None:
        return LateFiles()
    sweep = Sweep.read(log, dataflow.name, entry.era)
    sweep = sweep.without(_known(log, dataflow.name, entry, list(sweep.named)))
    named = in_pair_order(list(sweep.named.values()))
    settling = tuple(file for file in named if is_settling(dataflow.path, file, now))
    files = tuple(file for file in named if not is_settling(dataflow.path, file, now))
    return LateFiles(files, settling, sweep.unnamed)


def _known(log: WatermarkLog, dataflow: str, entry: Entry, paths: Sequence[str]) -> set[str]:
    """Which of these paths were dealt with."""
    return IngestedFiles(log, dataflow, entry).find_handled(paths) if paths else set()


def _noted(sweep: Sweep, listed: int, late: Sequence[SourceFile], resume: str | None, most: int) -> Sweep:
    """The note after a step that has listed so many files. A name of the round before stays, so that it is not counted twice."""
    before = {row[0] for row in sweep.before}
    late_rows = [*sweep.late, *(file.row for file in late)]
    late_rows.sort(key=lambda row: row[0] not in before)
    sweep = replace(
        sweep,
        listed=sweep.listed + listed,
        late=tuple(late_rows[:most]),
        more=sweep.more + len(late_rows[most:]),
        met=sweep.met + sum(1 for file in late if file.path not in before),
        resume=resume,
    )
    if resume is not None:
        return sweep
    return replace(
        sweep,
        begun=None,
        before=sweep.late,
        beyond=sweep.more,
        late=(),
        more=0,
        met=0,
        verified_up_to=sweep.up_to,
        verified_at=sweep.begun,
    )
