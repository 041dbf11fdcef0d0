"""Decisions about the watermark itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision
from partitions.path.order import FileKey
from partitions.path.plan import at_or_below, covering
from partitions.path.quarantine import Quarantine, Quarantined
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.plan import counted
from partitions.sentinels import deserialise, serialise
from partitions.watermark import is_empty
from resources.decisions.draft import Draft, Making, agreed, drafted, required
from resources.loop.entries import moved
from resources.loop.guards import check_definition, other_place
from resources.loop.table_guard import check_table
from resources.platform import Platform
from resources.readers.files import SOURCE_FILE
from resources.tables.table import Adopted, adopted_state
from resources.watermarks.entry import Entry, Why
from resources.watermarks.ingested import UNPROCESSED, Ingested, Known
from resources.watermarks.quarantine import read_quarantine


def reset(reason: str, *, replace: bool = False) -> Making:
    """An empty watermark, which passes the guards as a decision.

    Args:
        reason: of the operator.
        replace: whether the next run's first commit empties the table; else the table is left as it is.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        entry = drafted(
            platform,
            dataflow,
            last,
            "reset",
            reason,
            watermark="{}",
            takes_table=True,
            total_rows=last.total_rows if replace and last else 0,
            total_files=0,
            modified=None,
            pinned=None,  # the next run reads a schema anew
            since=None,
            replace_until=None,
            replace_table=replace,
            quarantine=None,
        )
        return Draft(entry.model_copy(update={"era": entry.number}))

    return making


def accept(reason: str) -> Making:
    """The unchanged watermark under the definition as it is now. Of another root what lies at or below it counts as loaded.

    Raises:
        ConfigurationError: where there is no state to keep, or it has another form than the scope that the definition has now.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = required(dataflow, last)
        if not is_empty(last.state()):
            platform.flow(dataflow).parsed(last.watermark)
        changes: dict[str, Any] = {}
        remarks: tuple[str, ...] = ()
        if moved(dataflow, last):
            # What was decided about the old table says nothing of this one.
            rows = platform.table(dataflow).count_rows()
            changes = {"takes_table": True, "total_rows": rows, "replace_table": False}
            if rows and is_empty(last.state()):
                remarks = (
                    f"nothing counts as loaded, and table {dataflow.table} has {counted(rows, 'row')}: all that is loaded is added to them",
                )
        entry = drafted(platform, dataflow, last, "accept", reason, **changes)
        files = _passed_by_another_root(platform, dataflow, last)
        said = f"count as loaded, so neither loaded nor late: {counted(len(files), 'file')} at or below the watermark"
        rows_of = [(*file.row, _OTHER_ROOT) for file in files]
        return Draft(entry, rows_of, dealt_with=said if files else "", remarks=remarks)

    return making


def _passed_by_another_root(platform: Platform, dataflow: Dataflow, last: Entry) -> list[SourceFile]:
    """What lies at or below the watermark where the source has never been read; nothing if it is the place that was read so far."""
    if is_empty(last.state()) or not other_place(dataflow, last, platform.log):
        return []
    files = platform.flow(dataflow).up_to(last.state(), above=None)
    known = Ingested(platform.log, dataflow.name, last).known([file.path for file in files]) if files else ()
    return [file for file in files if file.path not in known]


def rewind(reason: str, to: int, *, replace: bool = False) -> Making:
    """The watermark of an older entry: what lies above it is read again. Late and released files below it stay ingested.

    Args:
        reason: of the operator.
        to: the number of that entry; 0 is the beginning.
        replace: whether rows of a file make room when the file is loaded again; else an append doubles them.

    Raises:
        ConfigurationError: where there is no such entry (any more), rows do not tell their file, or a set is tracked.
        NeedsDecision: code ``definition_changed``; ``would_rise``: it lies above the watermark, and the table does not tell that the rows
            between the two are in it.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = agreed(platform, dataflow, last)
        flow = platform.flow(dataflow)
        flow.check_rewind()
        until = flow.reached(last, platform.table(dataflow)) if replace else None
        watermark = _watermark_of(platform, dataflow, to)
        changes: dict[str, Any] = {"watermark": watermark, "replace_until": until}
        if not 0 < to <= last.era or is_empty(deserialise(watermark)):
            entry = drafted(platform, dataflow, last, "rewind", reason, **changes)
            _check_told(platform, dataflow, last, entry)
            return Draft(entry)
        # Back to before a reset, which is taken back: the rows below that watermark stay, and their files were ingested.
        rows = _ingested(platform, dataflow, last, None, watermark)
        entry = drafted(platform, dataflow, last, "rewind", reason, **changes, replace_table=False)
        if dataflow.kind != "path" or not flow.makes_room(platform.table(dataflow)):  # rows tell no file
            _check_told(platform, dataflow, last, entry)
        return rows.draft(dataflow, entry)

    return making


def _check_told(platform: Platform, dataflow: Dataflow, last: Entry, entry: Entry) -> None:
    """A rewind that takes another one back, or a reset, counts rows as loaded again: the table must tell that it has them.

    Raises:
        NeedsDecision: code ``would_rise``.
    """
    flow = platform.flow(dataflow)
    if flow.covers(last.watermark, entry.watermark):
        return
    found = None
    with suppress(NeedsDecision):
        found = adopted_state(platform.table(dataflow), last.app_id)
    if found and found.state and not found.beyond and flow.covers(found.state, entry.watermark):
        return
    raise NeedsDecision(
        f"dataflow {dataflow.name}: expected an entry at or below the watermark {last.watermark}, or a table that tells that it has the rows up"
        f" to it, found {entry.watermark}, and a table that tells {found.state if found and found.state else 'nothing'}: rows between the two"
        " may be missing. Run, which loads what is above the watermark; or say it yourself",
        code="would_rise",
        choices=(
            f"strandline run {dataflow.name}",
            f"strandline state set {dataflow.name} JSON --reason TEXT",
        ),
    )


def set_watermark(reason: str, text: str) -> Making:
    """A watermark that an operator has written. Files that it passes over count as dealt with, not as late.

    Raises:
        ConfigurationError: where the text is no watermark of this dataflow.
        NeedsDecision: code ``would_fall``: it lies below the watermark; rewinding is another decision; ``definition_changed``.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        watermark = platform.flow(dataflow).parsed(text)
        check_definition(dataflow, last, platform.log)
        if last is not None and not platform.flow(dataflow).covers(watermark, last.watermark):
            raise NeedsDecision(
                f"dataflow {dataflow.name}: expected a watermark at or above {last.watermark}, found {watermark}: set never lowers a"
                " value. To read files again, rewind to an older entry",
                code="would_fall",
                choices=(f"strandline state rewind {dataflow.name} --to NUMBER --reason TEXT",),
            )
        remark = (_SET, "passed over")
        takes = _nothing_else_leads_on(platform, dataflow, last)
        draft = _taken_over(platform, dataflow, last, "set", reason, watermark, remark, takes_table=takes)
        return replace(draft, takes_table=takes)

    return making


def adopt(reason: str) -> Making:
    """The watermark that the table tells: its newest commit of ours, else the largest path that a row came from.

    The files that count as ingested are those of the commit's own entry, if the log still has it; else those at or below the watermark
    that a row came from, and all at or below it if rows do not tell their file. The others are late.

    Raises:
        NeedsDecision: code ``nothing_to_adopt``: the table tells neither; ``state_object_missing``: the watermark of its newest commit
            lies beside the table, and is gone.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        target = platform.table(dataflow)
        found = _adopted(platform, dataflow, last)
        base = _base(platform, dataflow, found)
        text = _told(platform, dataflow, last, found)
        if text is None:
            column = f", or a column {SOURCE_FILE}," if dataflow.kind == "path" else ""
            raise NeedsDecision(
                f"dataflow {dataflow.name}: expected a commit of Strandline in table {dataflow.table}{column} to tell how far it is"
                " loaded; found none. Say it yourself, or start anew",
                code="nothing_to_adopt",
                choices=(
                    f"strandline state set {dataflow.name} JSON --reason TEXT",
                    f"strandline state reset {dataflow.name} --reason TEXT",
                ),
            )
        rows = _ingested(platform, dataflow, last, base, text, beyond=found is not None and found.beyond)
        if base is not None:
            kept: dict[str, Any] = {name: getattr(base, name) for name in _OF_A_STATE}
            kept |= {"replace_until": rows.replace_until} if rows.replace_until else {}
        else:
            kept = {"replace_table": False, "replace_until": rows.replace_until}
            kept |= {"app_id": found.app_id} if found and found.app_id else {}
        pinned = base.pinned if base else last.pinned if last else None
        kept["pinned"] = pinned if _reads(platform, pinned) else None
        entry = drafted(
            platform,
            dataflow,
            last,
            "adopt",
            reason,
            watermark=text,
            takes_table=True,
            total_rows=target.count_rows(),
            **kept,
        )
        return rows.draft(dataflow, entry)

    return making


def _reads(platform: Platform, pinned: str | None) -> bool:
    """Whether a pinned schema is still there; without it the next run pins one again."""
    try:
        return pinned is None or bool(platform.log.get_schema(pinned))
    except CorruptWatermark:
        return False


_IN_TABLE = "in the table when it was adopted"
_SET = "passed over by state set"
_IMPORTED = "ingested before the import"

_OTHER_ROOT = "at or below the watermark when another root was accepted"

_DECIDED = (_IN_TABLE, _SET, _IMPORTED, _OTHER_ROOT, UNPROCESSED)
"""Why decisions have dealt with files that are in no quarantine."""

_OF_A_STATE = ("since", "replace_until", "replace_table", "modified", "total_files", "pinned")
"""What an entry says beside its watermark of how the next slice is made."""


@dataclass(frozen=True)
class _Ingested:
    """The files whose rows a table holds.

    Attributes:
        listed: rows of the list of ingested files.
        taken: how many of them the log did not know.
        missing: how many files at or below the watermark have no row in the table.
        replace_until: sentinel JSON text of the state up to which the table holds rows of files above the watermark; None if it holds none.
        aside: the files in quarantine that have no row in the table; None if files are not what is loaded.
        freed: how many others were in quarantine.
    """

    listed: Sequence[Sequence[Any]] = ()
    taken: int = 0
    missing: int = 0
    replace_until: str | None = None
    aside: Quarantine | None = None
    freed: int = 0

    def draft(self, dataflow: Dataflow, entry: Entry) -> Draft:
        """The draft of an entry from which on its own lists count: the files of older entries may not be in the table."""
        if dataflow.kind == "path":
            entry = entry.model_copy(update={"era": entry.number - 1, "quarantine": None})
        remarks = self._remarks(again=bool(self.replace_until and entry.replace_until))
        return Draft(entry, self.listed, self.aside, dealt_with=self.told, remarks=remarks)

    @property
    def told(self) -> str:
        """What becomes of the files that the log did not know, for people."""
        files = counted(self.taken, "file")
        return f"taken as ingested, so neither loaded nor late: {files} of the source" if self.taken else ""

    def _remarks(self, *, again: bool) -> tuple[str, ...]:
        """What else follows, for people; ``again``: whether rows above the watermark make room."""
        late = f"{counted(self.missing, 'file')} at or below the watermark without a row in the table: late, as the sweep will find"
        room = "rows of files above the watermark are in the table: each commit deletes the rows of its own files and inserts them again"
        freed = (
            f"{counted(self.freed, 'file')} of the quarantine with rows in the table: no longer in quarantine"
        )
        said = ((self.missing, late), (self.freed, freed), (again, room))
        return tuple(line for holds, line in said if holds)


def _ingested(
    platform: Platform,
    dataflow: Dataflow,
    last: Entry | None,
    base: Entry | None,
    watermark: str,
    *,
    beyond: bool = False,
) -> _Ingested:
    """The files whose rows a table holds, and that no run loads again.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        last: the newest entry.
        base: the entry of the newest commit that the table's rows go back to, if the log has it.
        watermark: of that commit, sentinel JSON text.
        beyond: whether the table may hold rows of files that the commit's entry knows nothing of.
    """
    if dataflow.kind != "path":
        return _Ingested()
    target = platform.table(dataflow)
    listed = platform.flow(dataflow).up_to(deserialise(watermark), above=None)
    known = _known(platform, dataflow, last, base)
    before = [one for one in (known or {}).values() if base and one.number <= base.number]
    held = _in_quarantine(platform, last, before)
    # Of a file that was dealt with after that commit only the table says whether its rows were there before.
    doubtful = [
        file
        for file in listed
        if known is None
        or (base and (one := known.get(file.path)) and one.number > base.number)
        or (beyond and file.path not in known)
    ]
    loaded = target.texts(SOURCE_FILE) if doubtful or held or known is None or beyond else set()
    told = SOURCE_FILE in target.columns()
    since = base.since if base else last.since if last else None
    taken = _with_rows(dataflow, doubtful, loaded, since) if told else doubtful if known is None else []
    there = {one.path for one in before if one.reason is None} | (
        loaded if told else {file.path for file in taken}
    )
    aside = tuple(one for one in held if one.file.path not in there)
    rows: dict[str, Sequence[Any]] = {one.file.path: (*one.file.row, one.reason) for one in aside}
    rows |= {file.path: (*file.row, _IN_TABLE) for file in taken}
    rows |= {one.path: (one.path, one.size, one.version, one.modified, one.reason) for one in before}
    until = None
    if (known is None or beyond) and dataflow.path.tracking != "set":
        until = serialise(covering(dataflow.path, PathState.of(deserialise(watermark)), loaded))
    return _Ingested(
        [*rows.values()],
        len(taken),
        sum(file.path not in rows for file in doubtful),
        until if until != watermark else None,
        Quarantine(aside),
        len(held) - len(aside),
    )


def _known(
    platform: Platform, dataflow: Dataflow, last: Entry | None, base: Entry | None
) -> dict[str, Known] | None:
    """What the log knows to be ingested since before a commit's entry, by path; None if it does not go back to it, or does not read."""
    if base is None or last is None or base.number <= last.era:
        return None
    try:
        return {one.path: one for one in Ingested(platform.log, dataflow.name, last).all()}
    except CorruptWatermark:
        return None


def _in_quarantine(
    platform: Platform, last: Entry | None, known: Sequence[Known] = ()
) -> Sequence[Quarantined]:
    """The files that were in quarantine; if the list of them is gone, those that the log knows to be passed over by a run."""
    try:
        return read_quarantine(platform.log, last).files
    except CorruptWatermark:
        passed_over = (one for one in known if one.reason and one.reason not in _DECIDED)
        return [Quarantined(SourceFile(*one[:4]), one.reason or "") for one in passed_over]


def _freed(files: int) -> str:
    return f"{counted(files, 'file')} of the quarantine with rows in the table: no longer in quarantine"


def _without_rows(platform: Platform, dataflow: Dataflow, held: Sequence[Quarantined]) -> Quarantine:
    """The files in quarantine that have no row in the table, as far as rows tell their file."""
    loaded = platform.table(dataflow).texts(SOURCE_FILE) if held else set()
    return Quarantine(tuple(one for one in held if one.file.path not in loaded))


def _with_rows(
    dataflow: Dataflow, files: Sequence[SourceFile], loaded: Collection[str], since: str | None
) -> list[SourceFile]:
    """The files that rows came from, and those that a filtered cold start has not looked at.

    If nobody knows where that began any more, it is taken to be the first file that a row came from.
    """
    if since is not None:
        unseen = at_or_below(dataflow.path, PathState.of(deserialise(since)), None).above
        return [file for file in files if file.path in loaded or unseen(file.path)]
    first = min(map(FileKey.of, loaded), default=None) if dataflow.path.partition_filter else None
    return [
        file for file in files if file.path in loaded or (first is not None and FileKey.of(file.path) < first)
    ]


def _adopted(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Adopted | None:
    name = dataflow.name
    try:
        return adopted_state(platform.table(dataflow), last.app_id if last and last.table else None)
    except NeedsDecision as error:
        raise NeedsDecision(
            f"dataflow {name}: {error.message} Import an export of the state, say it yourself, or start again",
            code=error.code,
            choices=(
                f"strandline state import {name} FILE --reason TEXT",
                f"strandline state set {name} JSON --reason TEXT",
                f"strandline state reset {name} --replace --reason TEXT",
            ),
        ) from error


def _base(platform: Platform, dataflow: Dataflow, found: Adopted | None) -> Entry | None:
    """The entry of the commit that a table tells its state with, if the log still has it."""
    commit = platform.log.find(dataflow.name, found.number) if found and found.number else None
    return commit if commit and found and commit.id == found.owner else None


def _told(platform: Platform, dataflow: Dataflow, last: Entry | None, found: Adopted | None) -> str | None:
    """The watermark that the table's commits tell, else its rows; where others have put all rows of ours aside, where a first run began.

    That is empty, unless a partition filter has narrowed it: by now the filter would pass over partitions that were loaded. Where the
    table may hold rows that no watermark covers, it can only be told if they make room when they are loaded again.
    """
    flow = platform.flow(dataflow)
    if found is None:
        return flow.told_by_rows(platform.table(dataflow))
    beyond = found.beyond or (found.rewound and _base(platform, dataflow, found) is None)
    if found.state is not None and not beyond:
        return found.state
    if not flow.makes_room(platform.table(dataflow)):
        return None
    since = last.since if last else None
    return found.state or flow.told_by_rows(platform.table(dataflow)) or since or "{}"


def _nothing_else_leads_on(platform: Platform, dataflow: Dataflow, last: Entry | None) -> bool:
    """Whether state and table do not belong together, and the table tells no watermark to adopt: the operator's word is all there is."""
    try:
        check_table(dataflow, last, platform.table(dataflow))
    except NeedsDecision:
        try:
            return _told(platform, dataflow, last, _adopted(platform, dataflow, last)) is None
        except NeedsDecision:
            return True
    return False


def import_entries(reason: str, lines: Sequence[str]) -> Making:
    """The watermark of the newest entry of an export; every file at or below it counts as ingested.

    Raises:
        ConfigurationError: where the text is no export of a dataflow of this kind.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        newest = _newest_of(dataflow, lines)
        watermark = platform.flow(dataflow).parsed(json.dumps(newest["watermark"]))
        app_id = str(newest["app_id"]) if last is None and newest.get("app_id") else None
        remark = (_IMPORTED, "taken as ingested")
        return _taken_over(platform, dataflow, last, "import", reason, watermark, remark, app_id)

    return making


def _taken_over(
    platform: Platform,
    dataflow: Dataflow,
    last: Entry | None,
    why: Why,
    reason: str,
    watermark: str,
    remark: tuple[str, str],
    app_id: str | None = None,
    *,
    takes_table: bool = True,
) -> Draft:
    """A watermark that no run has come to. What the source holds up to it is listed once, and counts as dealt with.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        last: the newest entry.
        why: of the entry.
        reason: of the operator.
        watermark: sentinel JSON text.
        remark: what is noted of each of these files; and what is said of all of them.
        app_id: the dataflow's id in the table, where the table tells it.
        takes_table: whether the table as it is now belongs to the state from here on.
    """
    files = platform.flow(dataflow).up_to(deserialise(watermark), above=last)
    changes: dict[str, Any] = {"app_id": app_id} if app_id else {}
    if why == "import":
        # The table's rows count now: a reset before must not empty it any more.
        changes["replace_table"] = False
    aside: Quarantine | None = None
    remarks: tuple[str, ...] = ()
    if why == "import" and dataflow.kind == "path":
        held = _in_quarantine(platform, last)
        aside = _without_rows(platform, dataflow, held)
        remarks = (_freed(len(held) - len(aside.files)),) if len(held) > len(aside.files) else ()
        changes["quarantine"] = None
    entry = drafted(
        platform,
        dataflow,
        last,
        why,
        reason,
        watermark=watermark,
        takes_table=takes_table,
        total_rows=platform.table(dataflow).count_rows(),
        **changes,
    )
    rows = [(*file.row, remark[0]) for file in files]
    said = f"{remark[1]}, so neither loaded nor late: {counted(len(files), 'file')} of the source"
    return Draft(entry, rows, aside, dealt_with=said if files else "", remarks=remarks)


def _watermark_of(platform: Platform, dataflow: Dataflow, number: int) -> str:
    if number == 0:
        return "{}"
    entry = platform.log.find(dataflow.name, number)
    if entry is None:
        floor = platform.log.floor(dataflow.name)
        gone = f"; entries up to {floor} were compacted away" if 0 < number <= floor else ""
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected the number of an entry, found {number}{gone}",
            choices=(f"strandline state history {dataflow.name}",),
        )
    return entry.watermark


def _newest_of(dataflow: Dataflow, lines: Sequence[str]) -> dict[str, Any]:
    try:
        entries = [json.loads(line) for line in lines if line.strip()]
        newest: dict[str, Any] = max(entries, key=lambda entry: int(entry["number"]))
        kind, _ = newest["kind"], newest["watermark"]
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected the lines of `strandline state export`, each an entry as JSON, found something else"
            f" ({type(error).__name__}: {error})"
        ) from error
    if kind != dataflow.kind:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected entries of kind {dataflow.kind}, found {kind}"
        )
    return newest
