"""What a Parquet table's lists say, compared with what the watermark log has recorded of it; and the state that they tell."""

from __future__ import annotations

from dataclasses import replace

from resources.tables.contract.adopting import AdoptableState
from resources.tables.contract.commits import TableCommit, TableHead
from resources.tables.parquet.commit_list import After, CommitList, Snapshot
from resources.tables.parquet.file_check import Look
from resources.tables.parquet.log import CommitLog


def compared(
    log: CommitLog, snapshot: Snapshot, look: Look, recorded: TableCommit | None, app_id: str | None
) -> TableHead:
    """Compare: one listing, and one read for each list after the recorded one; see :meth:`resources.tables.contract.table.Table.head`."""
    newest = snapshot.newest
    since = None if recorded is None else recorded.version
    kept = since is None or _is_kept(log, newest, since, recorded.id if recorded else None)
    versions = log.versions(since if kept and isinstance(since, int) else None)
    later = [commit for commit in log.read_all(versions) if commit.version <= newest.version]
    tagged = tuple(commit.tagged for commit in later if commit.app_id == app_id)
    head = TableHead(
        newest.recorded,
        has_recorded=kept,
        is_older=not kept and isinstance(since, int) and newest.version < since,
        highest_tag=snapshot.tags.get(app_id, 0) if app_id else 0,
        tagged_commits=tagged,
    )
    if not kept:
        return head
    return _with_look(head, snapshot, look)


def tip_of(snapshot: Snapshot, app_id: str | None) -> TableHead:
    """Return the newest commit, and the highest number under the dataflow's tag."""
    tag = snapshot.tags.get(app_id, 0) if app_id else 0
    newest = snapshot.newest.recorded
    return TableHead(TableCommit(newest.version, newest.id, tag, newest.file), highest_tag=tag)


def adoptable_state(log: CommitLog, look: Look, app_id: str | None) -> AdoptableState | None:
    """Return the state of the newest commit whose rows, and those of all before it, are there; see :class:`resources.tables.contract.adopting.CanAdopt`."""
    missing, beyond = set(look.missing), False
    for version in reversed(log.versions()):
        commit = log.read(version)
        lost = bool(missing)
        # Files that a commit has added are lost to it and to all after it. Copied rows are those of earlier commits.
        if not commit.copied:
            missing -= {file.path for file in commit.added}
        if commit.gives_up or app_id not in (None, commit.app_id):
            continue
        app_id = commit.app_id
        if not lost and _follows(log, commit, commit.after):
            return AdoptableState(commit.state, app_id, commit.number, commit.owner, beyond, commit.rewound)
        beyond = True
    return AdoptableState(None, app_id, beyond=True) if beyond else None


def _with_look(head: TableHead, snapshot: Snapshot, look: Look) -> TableHead:
    missing = tuple(path for path in look.missing if path in snapshot.files)
    return replace(head, missing_files=missing, foreign_files=look.foreign)


def _is_kept(log: CommitLog, newest: CommitList, since: object, owner: str | None) -> bool:
    if not isinstance(since, int) or since > newest.version:
        return False
    return owner in (None, log.read(since).owner)


def _follows(log: CommitLog, commit: CommitList, before: After | None) -> bool:
    """Whether the rows that a commit was added to are those of lists before it."""
    if before is None or before.version is None:
        return True
    if not isinstance(before.version, int) or before.version >= commit.version:
        return False
    return before.id in (None, log.read(before.version).owner)
