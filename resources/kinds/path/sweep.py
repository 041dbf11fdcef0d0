"""The sweep: small steps that look for never ingested files at or below the watermark.

See docs/reference/files.md, Late files. A round lists everything once, a few pages a step. A complete
round verifies all paths up to the watermark that it began with, as of its start. A note beside the log
keeps the progress. Nothing depends on the note: a plan looks each late file up again in the list of
ingested files.

The note stays small: it names a limited number of late files and counts the rest. The next round finds the
counted ones again, after the named ones were handled.
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
from resources.loop.missing_source import explain_missing_source
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_STORE_BUDGET = Budget(pages=20, seconds=20.0)
"""The listing budget of one step in an object store: at most 20,000 keys."""
_FOLDER_BUDGET = Budget(pages=500, seconds=5.0)
"""The same for local folders, which open quickly and often hold few files."""

_NOTE = "sweep"
_NAMED = {"ingest": 40_000, "quarantine": 40_000, "alert": 1_000, "ignore": 1_000}
"""The most late files that a round names, by policy: all that two steps can find in a bucket, if something is to be done with them."""

Row = tuple[str, int, str, int]
"""A file as the note keeps it."""


@dataclass(frozen=True)
class Sweep:
    """The progress of the sweep.

    Attributes:
        era: the number of the reset that it belongs to.
        begun: when this round began, ISO; None between two rounds.
        up_to: the watermark that the round began with, sentinel JSON text.
        resume: where the next step continues.
        listed: how many files the round has listed.
        late: late files of the round, as rows of path, size, version and modification time.
        more: how many late files it found beyond those.
        met: how many of all its late files the round before did not name.
        before: late files of the round before.
        beyond: how many late files that round found beyond those.
        verified_up_to: the watermark that the last complete round verified, sentinel JSON text.
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
        """Read a dataflow's note; return a new one after a reset, or if the note cannot be parsed."""
        note = log.note(dataflow, _NOTE) or {}
        try:
            fields_of_note = {
                attribute.name: note[attribute.name] for attribute in fields(cls) if attribute.name in note
            }
            sweep = cls(
                **fields_of_note | {key: tuple(map(tuple, note.get(key, ()))) for key in ("late", "before")}
            )
        except (TypeError, ValueError):
            return cls(era)
        return sweep if sweep.era == era else cls(era)

    def write(self, log: WatermarkLog, dataflow: str) -> None:
        """Write the note."""
        log.put_note(dataflow, _NOTE, asdict(self))

    @property
    def verified_path(self) -> Any:
        """The path that the last complete round verified; with scope partition, the whole watermark."""
        state = json.loads(self.verified_up_to) if self.verified_up_to else {}
        return state.get("path") or state or None

    @property
    def named(self) -> dict[str, SourceFile]:
        """The named late files of this round and the one before, by path."""
        return {row[0]: SourceFile(*row) for row in (*self.before, *self.late)}

    def without(self, handled: Collection[str]) -> Sweep:
        """Return the note without files that were handled."""
        late, before = (
            tuple(row for row in rows if row[0] not in handled) for rows in (self.late, self.before)
        )
        return replace(self, late=late, before=before)

    @property
    def unnamed(self) -> int:
        """The number of late files without a name.

        It counts those of the round before that this round has not reached yet.
        """
        return self.more + max(0, self.beyond - self.met)


@dataclass(frozen=True)
class LateFiles:
    """Late files that no entry has handled.

    Attributes:
        files: those that this look names.
        settling: named ones that are younger than ``settle``; they become late when they have settled.
        more: how many more there are; a later round names them.
    """

    files: tuple[SourceFile, ...] = ()
    settling: tuple[SourceFile, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """The number of late files, named or not."""
        return len(self.files) + self.more

    def first(self, count: int) -> list[str]:
        """Return the paths of the first ones."""
        return [file.path for file in self.files[:count]]


@dataclass(frozen=True)
class SweepStep:
    """The result of one step.

    Attributes:
        listed: how many files it listed at or below the watermark.
        late: the late ones among them, in pair order.
        complete: whether the round is complete.
        sweep: the progress after it.
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
    max_named: int | None = None,
) -> SweepStep:
    """Run one step: list some pages, and compare them with the list of ingested files.

    A late file that has not settled is noted now, and reported once it has.

    Args:
        log: the watermark log.
        place: the source's root.
        dataflow: the dataflow's name, source and policy.
        now: the clock, aware.
        budget: the limit of the listing; None for one that fits the place.
        max_named: how many late files the note may name; None for a number that fits the policy.

    Raises:
        SourceError: a listing failed; the note stays as it was.
        CorruptWatermark: the list of ingested files cannot be parsed.
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
    budget = budget or (_STORE_BUDGET if place.local is None else _FOLDER_BUDGET)
    with explain_missing_source(log, dataflow):
        listing = list_above(place, below, dataflow.files.endings, budget=budget, resume=sweep.resume)
    files = listing.listed.files
    ingested = _ingested(log, dataflow.name, entry, [*sweep.named, *(file.path for file in files)])
    late = tuple(file for file in files if file.path not in ingested)
    max_named = _NAMED[dataflow.late_files] if max_named is None else max_named
    sweep = _after_step(sweep.without(ingested), len(files), late, listing.resume, max_named)
    sweep.write(log, dataflow.name)
    settled = tuple(file for file in late if not is_settling(dataflow.path, file, now))
    return SweepStep(len(files), settled, listing.complete, sweep, listing.listed.calls)


def unhandled(log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime) -> LateFiles:
    """Return the late files that the sweep has found and no entry has handled."""
    if entry is None:
        return LateFiles()
    sweep = Sweep.read(log, dataflow.name, entry.era)
    sweep = sweep.without(_ingested(log, dataflow.name, entry, list(sweep.named)))
    named = in_pair_order(list(sweep.named.values()))
    settling = tuple(file for file in named if is_settling(dataflow.path, file, now))
    files = tuple(file for file in named if not is_settling(dataflow.path, file, now))
    return LateFiles(files, settling, sweep.unnamed)


def _ingested(log: WatermarkLog, dataflow: str, entry: Entry, paths: Sequence[str]) -> set[str]:
    """Return the ingested ones of these paths."""
    return IngestedFiles(log, dataflow, entry).find_handled(paths) if paths else set()


def _after_step(
    sweep: Sweep, listed: int, late: Sequence[SourceFile], resume: str | None, max_named: int
) -> Sweep:
    """Return the note after a step. Files that the round before named stay named, so they count once."""
    before = {row[0] for row in sweep.before}
    late_rows = [*sweep.late, *(file.row for file in late)]
    late_rows.sort(key=lambda row: row[0] not in before)
    sweep = replace(
        sweep,
        listed=sweep.listed + listed,
        late=tuple(late_rows[:max_named]),
        more=sweep.more + len(late_rows[max_named:]),
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
