"""Decisions about the watermark itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.path.quarantine import Quarantine
from partitions.sentinels import deserialise
from partitions.watermark import is_empty
from resources.decisions.draft import Draft, Making, agreed, drafted, required
from resources.loop.guards import check_definition, moved
from resources.platform import Platform
from resources.readers.files import SOURCE_FILE
from resources.watermarks.entry import Entry, Why
from resources.watermarks.ingested import Ingested
from resources.watermarks.quarantine import read_quarantine
from resources.writers.target import Adopted


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
        )
        return Draft(entry.model_copy(update={"era": entry.number}), quarantine=Quarantine())

    return making


def accept(reason: str) -> Making:
    """The unchanged watermark under the definition as it is now.

    Raises:
        ConfigurationError: where there is no state to keep, or it has another form than the scope that the definition has now.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = required(dataflow, last)
        if not is_empty(last.state()):
            platform.flow(dataflow).parsed(last.watermark)
        if not moved(dataflow, last):
            return Draft(drafted(platform, dataflow, last, "accept", reason))
        rows = platform.target(dataflow).count_rows()
        return Draft(drafted(platform, dataflow, last, "accept", reason, takes_table=True, total_rows=rows))

    return making


def rewind(reason: str, to: int, *, replace: bool = False) -> Making:
    """The watermark of an older entry: what lies above it is read again. Late and released files below it stay ingested.

    Args:
        reason: of the operator.
        to: the number of that entry; 0 is the beginning.
        replace: whether rows of a file make room when the file is loaded again; else an append doubles them.

    Raises:
        ConfigurationError: where there is no such entry (any more), rows do not tell their file, or a set is tracked.
        NeedsDecision: code ``definition_changed``.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = agreed(platform, dataflow, last)
        flow = platform.flow(dataflow)
        flow.check_rewind()
        until = flow.reached(last, platform.target(dataflow)) if replace else None
        watermark = _watermark_of(platform, dataflow, to)
        return Draft(
            drafted(platform, dataflow, last, "rewind", reason, watermark=watermark, replace_until=until)
        )

    return making


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
        remark = ("passed over by state set", "passed over")
        draft = _taken_over(platform, dataflow, last, "set", reason, watermark, remark)
        return replace(draft, takes_table=_tells_nothing(platform, dataflow, last))

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
        found = _adopted(platform, dataflow)
        text = found.state if found else platform.flow(dataflow).told_by_rows(platform.target(dataflow))
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
        of_commit = platform.log.find(dataflow.name, found.number) if found else None
        if found and of_commit and of_commit.id == found.owner:
            return _gone_back(platform, dataflow, last, of_commit, reason, text)
        app_id = found.app_id if found else None
        remark = ("in the table when it was adopted", "taken as ingested")
        return _taken_over(platform, dataflow, last, "adopt", reason, text, remark, app_id)

    return making


def _adopted(platform: Platform, dataflow: Dataflow) -> Adopted | None:
    name = dataflow.name
    try:
        return platform.target(dataflow).adopted()
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


def _gone_back(
    platform: Platform, dataflow: Dataflow, last: Entry | None, commit: Entry, reason: str, watermark: str
) -> Draft:
    """The state as it was after an older entry, whose commit is the newest that the table's rows go back to."""
    kept = {
        name: getattr(commit, name)
        for name in ("since", "replace_until", "replace_table", "modified", "total_files", "pinned")
    }
    entry = drafted(
        platform,
        dataflow,
        last,
        "adopt",
        reason,
        watermark=watermark,
        takes_table=True,
        total_rows=platform.target(dataflow).count_rows(),
        **kept,
    )
    if dataflow.kind != "path":
        return Draft(entry)
    log, name = platform.log, dataflow.name
    ingested = {one.path: one for one in Ingested(log, name, commit).all()}
    rows = [[one.path, one.size, one.version, one.modified, one.reason] for one in ingested.values()]
    aside = [one for one in read_quarantine(log, last).files if one.file.path not in ingested]
    rows += [[*one.file.row, one.reason] for one in aside]
    return Draft(_own_era(entry), rows)


def _own_era(entry: Entry) -> Entry:
    """The entry, with its own list as all that was ingested: what older entries have ingested may not be in the table."""
    return entry.model_copy(update={"era": entry.number - 1})


def _tells_nothing(platform: Platform, dataflow: Dataflow, last: Entry | None) -> bool:
    """Whether no entry knows the table, and the table tells no watermark: then the operator's word is all there is."""
    if last is not None and last.table is not None:
        return False
    target = platform.target(dataflow)
    return (
        target.has_data()
        and target.adopted() is None
        and platform.flow(dataflow).told_by_rows(target) is None
    )


def import_entries(reason: str, lines: Sequence[str]) -> Making:
    """The watermark of the newest entry of an export; every file at or below it counts as ingested.

    Raises:
        ConfigurationError: where the text is no export of a dataflow of this kind.
    """

    def making(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Draft:
        newest = _newest_of(dataflow, lines)
        watermark = platform.flow(dataflow).parsed(json.dumps(newest["watermark"]))
        app_id = str(newest["app_id"]) if last is None and newest.get("app_id") else None
        remark = ("ingested before the import", "taken as ingested")
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
    """
    target = platform.target(dataflow)
    adopts = why == "adopt" and dataflow.kind == "path"
    files = platform.flow(dataflow).up_to(deserialise(watermark), above=None if adopts else last)
    if adopts and files and SOURCE_FILE in target.columns():
        loaded = target.texts(SOURCE_FILE)
        files = [file for file in files if file.path in loaded]
    changes: dict[str, Any] = {"app_id": app_id} if app_id else {}
    entry = drafted(
        platform,
        dataflow,
        last,
        why,
        reason,
        watermark=watermark,
        takes_table=why != "set" or _tells_nothing(platform, dataflow, last),
        total_rows=target.count_rows(),
        **changes,
    )
    if adopts:
        entry = _own_era(entry)
    rows = [[*file.row, remark[0]] for file in files]
    return Draft(entry, rows, dealt_with=remark[1] if files else "")


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
