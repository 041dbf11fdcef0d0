"""Tell from an Iceberg commit's summaries alone what it does to rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from resources.tables.contract.commit_log import CommitKind, LoggedCommit, ReadPosition
from resources.tables.contract.descriptions import (
    ADDS_ROWS,
    CHANGES_NOTHING,
    CHANGES_ROWS,
    describe_commit,
)
from resources.tables.iceberg.commit import MERGE_COUNTS, IcebergCommit, changes_rows
from resources.tables.iceberg.file_sets import LiveFile
from resources.tables.iceberg.metadata import Snapshot

_COUNTS = ("added-", "deleted-", "removed-", "total-", "changed-")
"""Beginnings of the counts in a summary."""
_ENGINES = {"spark": "Spark", "flink": "Flink", "trino": "Trino"}


def logged_commit(commit: IcebergCommit) -> LoggedCommit:
    """Return what a commit does to rows. Compactions and fences change nothing."""
    snapshot = commit.snapshot
    parts = [part for part in (*commit.parts, snapshot) if part.operation != "replace"]
    files, size = _total(parts, "added-data-files"), _total(parts, "added-files-size")
    inserted: int | None = _total(parts, "added-records")
    kind: CommitKind = "appends" if files else "nothing"
    only_inserts = True
    if commit.is_fence:
        kind = "nothing"
    elif any(map(changes_rows, parts)):
        inserted = _proven_inserts(parts)
        kind, only_inserts = "nothing" if inserted == 0 else "rewrites", inserted is not None
        files += _total(parts, "deleted-data-files") + _total(parts, "added-delete-files")
        size += _total(parts, "removed-files-size")
    elif files and len(parts) <= len(commit.parts):
        kind = "rewrites"  # beside the added files others were joined
    is_empty = kind == "nothing"
    return LoggedCommit(
        snapshot.sequence,
        kind,
        0 if is_empty else files,
        0 if is_empty else size,
        str(snapshot.id),
        _describe(commit, parts, kind, inserted),
        commit_time(snapshot),
        0 if is_empty else inserted,
        _position_before(commit),
        only_inserts=only_inserts,
        deletes_for_good=bool(commit.strandline_metadata.get("deletes")),
    )


def tells_counts(commit: IcebergCommit) -> bool:
    """Return whether the summaries count files. Iceberg asks a writer only for the operation."""
    parts = (*commit.parts, commit.snapshot)
    return all(any(key.startswith(_COUNTS) for key in part.summary) for part in parts)


def counted_commit(commit: IcebergCommit, went: Sequence[LiveFile], came: Sequence[LiveFile]) -> LoggedCommit:
    """Return what a commit without counts does to rows, by its files of before and after."""
    described = logged_commit(commit)
    if commit.is_fence or commit.snapshot.operation == "replace" or not (went or came):
        return described
    kind: CommitKind = "rewrites" if went else "appends"
    files = [file.file for file in (*went, *came)]
    return described._replace(
        kind=kind,
        files=len(files),
        bytes=sum(int(file["file_size_in_bytes"]) for file in files),
        rows=None if went else sum(int(file["record_count"]) for file in files),
        only_inserts=not went,
        description=_describe(commit, (commit.snapshot,), kind, None),
    )


def unknown_commit(commit: IcebergCommit) -> LoggedCommit:
    """Return a commit without counts whose snapshot before was expired: it may have changed any row.

    It has a file to read, so that its reader notices that nothing tells its rows.
    """
    described = logged_commit(commit)
    if commit.is_fence or commit.snapshot.operation == "replace":
        return described
    return described._replace(
        kind="rewrites",
        files=1,
        rows=None,
        only_inserts=False,
        description=_describe(commit, (commit.snapshot,), "rewrites", None),
    )


def rollback(position: ReadPosition, snapshot: Snapshot) -> LoggedCommit:
    """Return the change of a table that was rolled back from a position to a snapshot.

    It has a file to read in any case: a snapshot without files lacks the rows that went.
    """
    return LoggedCommit(
        position.version,
        "rewrites",
        max(1, snapshot.count("total-data-files")),
        snapshot.count("total-files-size"),
        str(snapshot.id),
        f"rollback from snapshot {position.id} to {snapshot.id} {CHANGES_ROWS}",
        None,
        before=position,
        rolls_back=True,
    )


def whole_table(commit: IcebergCommit) -> LoggedCommit:
    """Return all files of the oldest remaining snapshot as files that it adds."""
    snapshot = commit.snapshot
    files = snapshot.count("total-data-files")
    return LoggedCommit(
        snapshot.sequence,
        "appends" if files else "nothing",
        files,
        snapshot.count("total-files-size"),
        str(snapshot.id),
        describe_commit(
            f"snapshot {snapshot.id}", snapshot.operation, "", {"adds": snapshot.rows}, ADDS_ROWS
        ),
        commit_time(snapshot),
        snapshot.rows,
        _position_before(commit),
        only_inserts=True,
        holds_all_files=True,
    )


def commit_time(snapshot: Snapshot) -> datetime:
    """Return the time of a snapshot in UTC."""
    return datetime.fromtimestamp(snapshot.timestamp / 1000, UTC)


def _position_before(commit: IcebergCommit) -> ReadPosition | None:
    if commit.follows is None:
        return None
    return ReadPosition(commit.before.sequence if commit.before else 0, str(commit.follows))


def _proven_inserts(parts: Sequence[Snapshot]) -> int | None:
    """Return the rows that a rewriting commit adds if Spark's counts prove that it changes no other row.

    None if they prove nothing. Spark writes -1 for a count that it does not know.
    """
    if len(parts) != 1:
        return None
    counts = _merge_counts(parts[0])
    if counts["updates"] != 0 or counts["deletes"] != 0 or (counts["adds"] or 0) < 0:
        return None
    return counts["adds"]


def _merge_counts(snapshot: Snapshot) -> dict[str, int | None]:
    texts = {verb: snapshot.summary.get(f"{MERGE_COUNTS}{name}") for verb, name in _COUNT_NAMES.items()}
    return {verb: None if text is None else int(text) for verb, text in texts.items()}


_COUNT_NAMES = {"adds": "inserted", "updates": "updated", "deletes": "deleted"}


def _describe(
    commit: IcebergCommit, parts: Sequence[Snapshot], kind: CommitKind, inserted: int | None
) -> str:
    snapshot = commit.snapshot
    engine = snapshot.summary.get("engine-name", "")
    writer = "Strandline" if commit.strandline_metadata else _ENGINES.get(engine, engine)
    counts: dict[str, int | None]
    match kind:
        case "nothing":
            counts, otherwise = {}, CHANGES_NOTHING
        case "appends":
            counts, otherwise = {"adds": inserted}, ADDS_ROWS
        case _:
            counts, otherwise = _merge_counts(parts[0]) if len(parts) == 1 else {}, CHANGES_ROWS
            counts = {verb: count for verb, count in counts.items() if (count or 0) > 0}
    return describe_commit(f"snapshot {snapshot.id}", snapshot.operation, writer, counts, otherwise)


def _total(parts: Sequence[Snapshot], name: str) -> int:
    return sum(part.count(name) for part in parts)
