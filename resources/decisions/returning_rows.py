"""Rows that others deleted, and that a decision would bring back (docs/reference/state.md).

They come back if a decision reads files or values again, or calls files late that were loaded before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark
from partitions.path.source import SourceFile
from resources.decisions.files_in_table import HeldRows
from resources.decisions.reasons import DELETED, IN_TABLE
from resources.kinds.contract.decisions import KnowsFiles, StateRules, TellsLostRows
from resources.kinds.contract.lost_rows import DeletedRows, LostRows, check_lost_rows, lost_in_all
from resources.platform.opener import Opener
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_ALL = 1_000_000
_LOADED = (None, IN_TABLE, DELETED)


@dataclass(frozen=True)
class ReturningRows:
    """The rows that a decision would bring back, and what an operator has said of them.

    Attributes:
        lost_rows: rows that come back.
        files: files without a row that may have been loaded; ``skip`` counts them as loaded.
        in_all: all rows that the table lacks, for the entry.
        answer: what an operator has said.
        can_skip: whether ``skip`` keeps all of these rows away.
    """

    lost_rows: LostRows
    files: Sequence[SourceFile] = ()
    in_all: LostRows = field(default_factory=LostRows)
    answer: DeletedRows | None = None
    can_skip: bool = False

    @property
    def skipped_files(self) -> Sequence[SourceFile]:
        """The files that count as loaded; none if nothing was asked."""
        return self.files if self.answer == "skip" and not self.lost_rows.are_none else ()

    @property
    def skipped(self) -> list[tuple[object, ...]]:
        """The rows of the list of ingested files that count these files as loaded."""
        return [(*file.row, DELETED) for file in self.skipped_files]

    @property
    def lost_afterwards(self) -> LostRows:
        """The rows that the table lacks after the decision; nothing tells how many of those let in come back."""
        if self.answer == "load" and not self.lost_rows.are_none:
            return LostRows(None)
        return self.in_all


def check_returning_rows(dataflow: str, returning: ReturningRows, command: str) -> tuple[str, ...]:
    """Return notes on rows that come back; raise if the answer does not say their fate.

    Args:
        dataflow: the dataflow's name.
        returning: the rows, and the answer.
        command: the decision as typed, without ``--deleted``.

    Raises:
        ConfigurationError: the answer is ``skip``, and it would not keep the rows away.
        NeedsDecision: code ``deleted_rows``.
    """
    lost_rows = returning.lost_rows
    if lost_rows.are_none:
        return ()
    if returning.answer == "skip" and not returning.can_skip:
        raise ConfigurationError(
            f"dataflow {dataflow}: expected --deleted load, found skip, which counts files at or below the watermark as loaded, but rows"
            f" above it are read again: {lost_rows.describe()}",
            choices=(f"{command} --deleted load --reason TEXT",),
        )
    answers = ["load", "skip"] if returning.can_skip else ["load"]
    commands = [f"{command} --deleted {answer} --reason TEXT" for answer in answers]
    return check_lost_rows(dataflow, lost_rows, returning.answer, commands)


def loaded_before(
    log: WatermarkLog, dataflow: str, rules: StateRules, last: Entry | None, files: Sequence[SourceFile]
) -> list[SourceFile]:
    """Return the files that an entry has handled, also before a reset; all if the log cannot tell."""
    if not isinstance(rules, KnowsFiles) or not files:
        return []
    entry, unknown_files = last, list(files)
    while entry is not None:
        try:
            unknown_files = rules.not_ingested(unknown_files, entry)
        except CorruptWatermark:
            return list(files)
        if not entry.era or not unknown_files:
            return [file for file in files if file not in unknown_files]
        entry = _newest_before(log, dataflow, entry.era)
    return list(files)


def _newest_before(log: WatermarkLog, dataflow: str, era: int) -> Entry | None:
    """Return the newest entry whose lists still held what a reset or adopt has ended."""
    past_entries = log.history(dataflow, _ALL)
    return next((past for past in past_entries if past.number <= era and past.era < era), None)


def lost_by_all_loads(log: WatermarkLog, dataflow: str, table: Table, last: Entry, to: int = 0) -> LostRows:
    """Return how many loaded rows the table lacks, also of loads before resets that kept the table.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        table: its table.
        last: the newest entry.
        to: the number of the entry whose state comes back: earlier resets do not matter.
    """
    lost_rows = lost_in_all(table, last)
    if not table.exists() or lost_rows.rows is None:
        return lost_rows
    written, is_emptied = last.total_rows, True
    for before, reset in _ended_by_resets(log, dataflow, to):
        if reset.replace_table:
            continue
        if before.lost_rows == "unknown":
            return LostRows(None)
        written, is_emptied = written + before.total_rows + before.lost_rows, False
    if is_emptied:
        return lost_rows
    missing = max(written - table.contents.count_rows(), 0)
    # What was loaded since the reset may be the same rows.
    return LostRows(None) if missing and last.total_rows else LostRows(missing)


def _ended_by_resets(log: WatermarkLog, dataflow: str, to: int) -> list[tuple[Entry, Entry]]:
    """Return the resets after an entry, each behind the entry before it."""
    newer = takewhile(lambda past: past.number >= to, log.history(dataflow, _ALL))
    return [(before, past) for past, before in pairwise(newer) if past.why == "reset"]


def returning_rows(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry,
    watermark: str,
    rows: HeldRows,
    answer: DeletedRows | None,
    *,
    to: int = 0,
) -> ReturningRows:
    """Return the rows that come back by a state which ends a reset, or whose files count anew.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        last: the newest entry.
        watermark: sentinel JSON text: rows above it are read again.
        rows: the rows that the table holds; missing files are late.
        answer: what an operator has said.
        to: the number of the entry whose state comes back.
    """
    log, table, rules = platform.log, platform.table(dataflow), platform.rules(dataflow)
    doubtful = loaded_before(log, dataflow.name, rules, last, rows.files.missing)
    forgotten_paths = _forgotten_paths(log, dataflow.name, last, rows)
    in_all = lost_by_all_loads(log, dataflow.name, table, last, to)
    planning = platform.kind(dataflow).planning
    entries = [last, *(before for before, _ in _ended_by_resets(log, dataflow.name, to))]
    reads_again = not all(planning.covers(watermark, past.watermark) for past in entries)
    lost_rows = LostRows()
    if doubtful or forgotten_paths:
        lost_rows = replace(in_all, files=(*(file.path for file in doubtful), *forgotten_paths))
    elif reads_again and isinstance(rules, TellsLostRows) and last.era <= to:
        lost_rows = rules.lost_above(last, watermark)
    elif reads_again:
        lost_rows = in_all
    can_skip = bool(doubtful) and not reads_again and not forgotten_paths
    return ReturningRows(lost_rows, doubtful, in_all, answer, can_skip=can_skip)


def _forgotten_paths(log: WatermarkLog, dataflow: str, last: Entry, rows: HeldRows) -> list[str]:
    """Return loaded files without a row that the source lacks and the decision no longer records.

    They are late if they come back.
    """
    if rows.counts is None:
        return []
    loaded_paths = set[str]()
    entry: Entry | None = last
    while entry is not None:
        with suppress(CorruptWatermark):
            records = IngestedFiles(log, dataflow, entry).all()
            loaded_paths |= {record.path for record in records if record.reason in _LOADED}
        entry = _newest_before(log, dataflow, entry.era) if entry.era else None
    recorded_paths = {str(row[0]) for row in rows.files.listed} | {file.path for file in rows.files.missing}
    return sorted(loaded_paths - rows.counts.keys() - recorded_paths)
