"""Compare a Parquet table's lists with the recorded commit, and read the state that they record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from resources.tables.contract.adopting import AdoptableState
from resources.tables.contract.commits import TableCommit, TableHead, Writer
from resources.tables.parquet.commit_list import CommitList, PrecedingCommit, TableSnapshot
from resources.tables.parquet.file_check import FileCheck
from resources.tables.parquet.log import CommitLog

_SEARCHED_LISTS = 20
"""Newest lists that are searched for a commit under the tag."""


def compare_head(
    log: CommitLog,
    snapshot: TableSnapshot,
    file_check: FileCheck,
    recorded: TableCommit | None,
    app_id: str | None,
) -> TableHead:
    """Compare the lists with the recorded commit: one listing, and one read for each later list.

    See :meth:`resources.tables.contract.table.Table.head`.
    """
    newest = snapshot.newest
    since = None if recorded is None else recorded.version
    has_recorded = since is None or _has_recorded_commit(
        log, newest, since, recorded.id if recorded else None
    )
    versions = log.versions(since if has_recorded and isinstance(since, int) else None)
    later_commits = [commit for commit in log.read_all(versions) if commit.version <= newest.version]
    tagged = tuple(commit.as_tagged for commit in later_commits if commit.app_id == app_id)
    head = TableHead(
        newest.as_table_commit,
        has_recorded=has_recorded,
        is_older=not has_recorded and isinstance(since, int) and newest.version < since,
        highest_tag=snapshot.tags.get(app_id, 0) if app_id else 0,
        tagged_commits=tagged,
        writer=_find_writer(log, newest, later_commits, app_id),
    )
    if not has_recorded:
        return head
    return _with_file_check(head, snapshot, file_check)


def read_tip(snapshot: TableSnapshot, app_id: str | None) -> TableHead:
    """Return the newest commit and the highest number under the dataflow's tag."""
    tag = snapshot.tags.get(app_id, 0) if app_id else 0
    newest = snapshot.newest.as_table_commit
    return TableHead(TableCommit(newest.version, newest.id, tag, newest.file), highest_tag=tag)


def adoptable_state(log: CommitLog, file_check: FileCheck, app_id: str | None) -> AdoptableState | None:
    """Return the state of the newest commit up to which no file is missing.

    See :class:`resources.tables.contract.adopting.CanAdopt`.
    """
    missing, beyond = set(file_check.missing_paths), False
    for version in reversed(log.versions()):
        commit = log.read(version)
        is_lost = bool(missing)
        # A missing file affects the commit that added it and all later ones. Copied rows belong to earlier commits.
        if not commit.copied:
            missing -= {file.path for file in commit.added}
        if commit.gives_up or app_id not in (None, commit.app_id):
            continue
        app_id = commit.app_id
        if not is_lost and _still_follows(log, commit, commit.after):
            return AdoptableState(commit.state, app_id, commit.number, commit.owner, beyond, commit.rewound)
        beyond = True
    return AdoptableState(None, app_id, beyond=True) if beyond else None


def _find_writer(
    log: CommitLog, newest: CommitList, later_commits: Sequence[CommitList], app_id: str | None
) -> Writer | None:
    """Return the state that the newest commit under a tag belongs to."""
    if app_id is None:
        return None
    last_versions = range(newest.version - 1, max(newest.version - _SEARCHED_LISTS, 0), -1)
    for commit in chain((newest,), reversed(later_commits), map(log.read, last_versions)):
        if commit.app_id == app_id:
            return Writer.parse(commit.writer)
    return None


def _with_file_check(head: TableHead, snapshot: TableSnapshot, file_check: FileCheck) -> TableHead:
    missing = tuple(path for path in file_check.missing_paths if path in snapshot.files)
    return replace(head, missing_files=missing, foreign_files=file_check.foreign_paths)


def _has_recorded_commit(log: CommitLog, newest: CommitList, since: object, owner: str | None) -> bool:
    if not isinstance(since, int) or since > newest.version:
        return False
    return owner in (None, log.read(since).owner)


def _still_follows(log: CommitLog, commit: CommitList, before: PrecedingCommit | None) -> bool:
    """Return whether the rows that a commit was added to are those of earlier lists."""
    if before is None or before.version is None:
        return True
    if not isinstance(before.version, int) or before.version >= commit.version:
        return False
    return before.id in (None, log.read(before.version).owner)
