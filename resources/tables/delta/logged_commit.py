"""Tell from a Delta commit's log file alone what it does to rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from resources.tables.contract.commit_log import LoggedCommit
from resources.tables.contract.descriptions import (
    ADDS_ROWS,
    CHANGES_NOTHING,
    CHANGES_ROWS,
    describe_commit,
)
from resources.tables.delta.commit import DeltaCommit

FILE_ACTIONS = (b'{"add"', b'{"remove"', b'{"cdc"')
"""Beginnings of the lines that name data files, and files of the change data feed."""

_ACTIONS = ("add", "remove", "cdc")
_ROW_COUNT = re.compile(r'\s*{\s*"numRecords"\s*:\s*(\d+)')
_SPARK = "Apache-Spark/"
"""Engine whose counts of changed rows are right. Other writers count copied rows, or nothing."""
_MERGE_COUNTS = {
    "adds": "numTargetRowsInserted",
    "updates": "numTargetRowsUpdated",
    "deletes": "numTargetRowsDeleted",
}
_OTHER_COUNTS = {"updates": "numUpdatedRows", "deletes": "numDeletedRows"}
"""Names of the counts that writers record, by what they count."""


def logged_commit(commit: DeltaCommit, actions: Sequence[Mapping[str, Any]]) -> LoggedCommit:
    """Return what a commit does to rows.

    Args:
        commit: the commit.
        actions: its actions on files, in any order.
    """
    adds, removes, cdc = ([action[name] for action in actions if name in action] for name in _ACTIONS)
    added_files = [add for add in adds if add.get("dataChange", True)]
    removed_files = [remove for remove in removes if remove.get("dataChange", True)]
    if not removed_files:
        return _appending(commit, added_files)
    inserted = _proven_inserts(commit)
    if inserted == 0:
        return _appending(commit, ())
    files = cdc or [*added_files, *removed_files]
    return LoggedCommit(
        commit.version,
        "rewrites",
        len(files),
        sum(map(_size_of, files)),
        commit.id,
        describe(commit),
        commit_time(commit),
        inserted,
        only_inserts=inserted is not None,
        deletes_for_good=bool(commit.strandline_metadata.get("deletes")),
    )


def whole_table(commit: DeltaCommit, files: Sequence[Mapping[str, Any]]) -> LoggedCommit:
    """Return all files of the oldest version in the log as files that it adds."""
    return _appending(commit, files)._replace(holds_all_files=True)


def commit_time(commit: DeltaCommit) -> datetime | None:
    """Return the time of a commit in UTC; None if its writer recorded none."""
    return None if commit.timestamp is None else datetime.fromtimestamp(commit.timestamp / 1000, UTC)


def row_count(add: Mapping[str, Any]) -> int | None:
    """Return the number of rows of an added file by its statistics; None if it has none.

    Rows that a deletion vector hides do not count.
    """
    statistics = add.get("stats") or ""
    match = _ROW_COUNT.match(statistics)
    count = int(match[1]) if match else (json.loads(statistics or "{}").get("numRecords"))
    if count is None:
        return None
    return int(count) - int((add.get("deletionVector") or {}).get("cardinality", 0))


def describe(commit: DeltaCommit) -> str:
    """Return what a rewriting commit does, for people, with the counts that its writer recorded."""
    metrics = {name: int(value) for name, value in commit.metrics.items() if str(value).isdigit()}
    names = _MERGE_COUNTS if commit.operation == "MERGE" else _OTHER_COUNTS
    return _describe(commit, {verb: metrics.get(name) for verb, name in names.items()})


def _appending(commit: DeltaCommit, files: Sequence[Mapping[str, Any]]) -> LoggedCommit:
    counts = [row_count(add) for add in files]
    rows = None if None in counts else sum(count for count in counts if count is not None)
    return LoggedCommit(
        commit.version,
        "appends" if files else "nothing",
        len(files),
        sum(map(_size_of, files)),
        commit.id,
        _describe(commit, {"adds": rows}, ADDS_ROWS if files else CHANGES_NOTHING),
        commit_time(commit),
        rows,
        only_inserts=True,
    )


def _proven_inserts(commit: DeltaCommit) -> int | None:
    """Return the rows that a rewriting commit adds if its counts prove that it changes no other row.

    None if they prove nothing.
    """
    if commit.operation != "MERGE" or not commit.engine.startswith(_SPARK):
        return None
    if any(commit.metrics.get(_MERGE_COUNTS[verb]) != "0" for verb in ("updates", "deletes")):
        return None
    inserted = commit.metrics.get(_MERGE_COUNTS["adds"])
    return None if inserted is None else int(inserted)


def _describe(commit: DeltaCommit, counts: Mapping[str, int | None], otherwise: str = CHANGES_ROWS) -> str:
    return describe_commit(
        f"version {commit.version}", commit.operation, _writer_of(commit), counts, otherwise
    )


def _writer_of(commit: DeltaCommit) -> str:
    if commit.user:
        return commit.user
    if commit.strandline_metadata:
        return "Strandline"
    return "Spark" if commit.engine.startswith(_SPARK) else commit.engine.partition(":")[0]


def _size_of(file: Mapping[str, Any]) -> int:
    return int(file.get("size") or 0)
