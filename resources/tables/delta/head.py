"""Compare a Delta table's log with the commit that the watermark log recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from partitions.errors import TargetError
from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit, Writer
from resources.tables.delta.commit import DeltaCommit
from resources.tables.delta.history import RowHistory
from resources.tables.delta.log import DeltaLog

_TAGS_EXPIRE = "delta.setTransactionRetentionDuration"
"""The property that makes tags expire. Delta would then no longer skip a write of an old number."""

_SEARCHED_VERSIONS = 20
"""Versions before the recorded one that are searched for a commit under the tag."""


def compare_head(
    log: DeltaLog, recorded: TableCommit | None, app_id: str | None, dataflow: str | None = None
) -> TableHead:
    """Compare the log with the recorded commit: one listing, and one read for each later commit.

    See :meth:`resources.tables.contract.table.Table.head`.

    Args:
        log: log of the table.
        recorded: commit that the table must have.
        app_id: app id of the dataflow.
        dataflow: name of the dataflow in a shared table; commits of other dataflows do not come between
            its own.
    """
    recorded_version = None if recorded is None or recorded.version is None else int(recorded.version)
    versions = log.versions(recorded_version - 1 if recorded_version else None)
    if not versions and recorded_version is None:
        return TableHead(None)
    commits = [log.read(version) for version in versions]
    has_recorded = recorded_version is None or bool(
        commits and recorded and _has_recorded_commit(log, recorded, commits[0], app_id)
    )
    if not has_recorded:
        return _head_without_recorded(log, recorded_version, app_id)
    commits_cleaned = recorded_version is not None and commits[0].version > recorded_version
    later_commits = [
        commit for commit in commits if recorded_version is None or commit.version > recorded_version
    ]
    tagged_commits = _with_own_predecessors(
        _tagged_commits(app_id, later_commits), later_commits, recorded_version, dataflow
    )
    tagged_commits = _with_remaining_file(log, recorded, tagged_commits, later_commits)
    # Without a recorded commit every commit is later, so a log that starts above 0 was cleaned.
    is_incomplete = commits[0].version > (recorded_version or 0)
    return TableHead(
        commits[-1].as_table_commit,
        commits_cleaned=commits_cleaned,
        highest_tag=_highest_tag(
            log,
            app_id,
            tagged_commits,
            is_complete=not is_incomplete,
            recorded_number=recorded.number if recorded else 0,
        ),
        tagged_commits=tagged_commits,
        emptied_by=_find_emptying_commit(log, recorded_version, later_commits, tagged_commits, app_id),
        lacks_recorded_file=bool(
            is_incomplete and recorded and recorded.file and not _holds_file(log, recorded.file, versions)
        ),
        tags_expire=_expiry_property(log, commits, look_in_table=is_incomplete),
        writer=_find_writer(log, commits, app_id),
    )


def read_tip(log: DeltaLog, app_id: str | None) -> TableHead:
    """Return the newest commit and the table's highest tag.

    See :meth:`resources.tables.contract.table.Table.tip`.
    """
    table = log.table()
    if table is None:
        return TableHead(None)
    newest = log.read(table.version())
    highest_tag = (table.transaction_version(app_id) if app_id else None) or 0
    return TableHead(
        replace(newest.as_table_commit, number=highest_tag),
        highest_tag=highest_tag,
        tags_expire=_TAGS_EXPIRE if table.metadata().configuration.get(_TAGS_EXPIRE) else None,
    )


def _head_without_recorded(log: DeltaLog, recorded_version: int | None, app_id: str | None) -> TableHead:
    """Return the head of a table that lacks the recorded commit."""
    commits = log.commits(None)
    if not commits:
        return TableHead(None, has_recorded=False)
    tagged_commits, is_complete = _tagged_commits(app_id, commits), commits[0].version == 0
    return TableHead(
        commits[-1].as_table_commit,
        has_recorded=False,
        is_older=recorded_version is not None and commits[-1].version < recorded_version,
        highest_tag=_highest_tag(log, app_id, tagged_commits, is_complete=is_complete),
        tagged_commits=tagged_commits,
        tags_expire=_expiry_property(log, commits, look_in_table=not is_complete),
        writer=_find_writer(log, commits, app_id),
    )


def _find_writer(log: DeltaLog, commits: Sequence[DeltaCommit], app_id: str | None) -> Writer | None:
    """Return the state that the newest commit under a tag belongs to.

    Maintenance may have made the commits that were read; then those before them are read, too.
    """
    if app_id is None or not commits:
        return None
    for commit in reversed(commits):
        if app_id in commit.tags:
            return Writer.parse(commit.strandline_metadata.get("writer"))
    first = commits[0].version
    with suppress(TargetError):  # cleaned from the log
        for version in range(first - 1, max(first - _SEARCHED_VERSIONS, -1), -1):
            commit = log.read(version)
            if app_id in commit.tags:
                return Writer.parse(commit.strandline_metadata.get("writer"))
    return None


def _has_recorded_commit(
    log: DeltaLog, recorded: TableCommit, first_commit: DeltaCommit, app_id: str | None
) -> bool:
    """Return whether the table has the recorded commit: by id, or by tag if it was cleaned from the log."""
    if first_commit.version == recorded.version:
        return recorded.id in (None, first_commit.id)
    return not app_id or _table_tag(log, app_id) >= recorded.number


def _find_emptying_commit(
    log: DeltaLog,
    recorded_version: int | None,
    later_commits: Sequence[DeltaCommit],
    tagged_commits: Sequence[TaggedCommit],
    app_id: str | None,
) -> str | None:
    """Describe another writer's commit that removed all rows; None if the table has all of them again."""
    emptied_by = next(
        (commit.description for commit in reversed(later_commits) if commit.removes_all_rows(app_id)), None
    )
    if emptied_by is None or recorded_version is None:
        return emptied_by
    history = takewhile(lambda commit: commit.version >= recorded_version, RowHistory(log, app_id))
    needed_versions = {recorded_version, *(commit.version for commit in tagged_commits)}
    return None if needed_versions <= {commit.version for commit in history} else emptied_by


def _holds_file(log: DeltaLog, file: str, versions: Sequence[int]) -> bool:
    """Return whether a data file is part of the table, or one of some versions has removed it."""
    return file in log.files() or any(log.removes(version, file) for version in versions)


def _highest_tag(
    log: DeltaLog,
    app_id: str | None,
    tagged_commits: Sequence[TaggedCommit],
    *,
    is_complete: bool,
    recorded_number: int = 0,
) -> int:
    """Return the highest number under an app id.

    It comes from the commits that were read, or from the table if these are not its whole log.
    """
    if app_id and not is_complete:
        return _table_tag(log, app_id)
    return max((commit.number for commit in tagged_commits), default=recorded_number)


def _table_tag(log: DeltaLog, app_id: str) -> int:
    table = log.table()
    return (table.transaction_version(app_id) if table else None) or 0


def _expiry_property(log: DeltaLog, commits: Sequence[DeltaCommit], *, look_in_table: bool) -> str | None:
    """Return the property that makes tags expire, according to the newest commit that sets properties."""
    newest_first = reversed(commits)
    properties = next(
        (commit.configuration for commit in newest_first if commit.configuration is not None), None
    )
    if properties is None and look_in_table:
        table = log.table()
        properties = table.metadata().configuration if table else {}
    return _TAGS_EXPIRE if properties and properties.get(_TAGS_EXPIRE) else None


def _with_own_predecessors(
    tagged_commits: Sequence[TaggedCommit],
    later_commits: Sequence[DeltaCommit],
    recorded_version: int | None,
    dataflow: str | None,
) -> tuple[TaggedCommit, ...]:
    """Set the predecessor of each commit, leaving out other dataflows that share the table.

    Commits that change no row and carry no tag are left out, too.
    """
    if dataflow is None:
        return tuple(tagged_commits)
    counted_versions = [
        commit.version
        for commit in later_commits
        if not (commit.is_of_other_dataflow(dataflow) or commit.changes_no_row)
    ]
    return tuple(
        replace(
            commit,
            follows=max(
                (version for version in counted_versions if version < int(commit.version)),
                default=recorded_version,
            ),
        )
        for commit in tagged_commits
    )


def _with_remaining_file(
    log: DeltaLog,
    recorded: TableCommit | None,
    tagged_commits: Sequence[TaggedCommit],
    later_commits: Sequence[DeltaCommit],
) -> tuple[TaggedCommit, ...]:
    """Give a commit without files another file as proof if the recorded one was removed before it.

    A compaction or a delete of another writer removes it. The newest file that was added since proves then
    that the commit was not undone.
    """

    def remaining(commit: TaggedCommit) -> TaggedCommit:
        if recorded is None or recorded.file is None or commit.file is not None or commit.removed != 0:
            return commit
        until = [later for later in later_commits if later.version <= int(commit.version)]
        if not any(log.removes(later.version, recorded.file) for later in until):
            return commit
        file = next((later.file for later in reversed(until) if later.file), None)
        return replace(commit, file=file, removed_recorded_file=True)

    return tuple(remaining(commit) for commit in tagged_commits)


def _tagged_commits(app_id: str | None, commits: Sequence[DeltaCommit]) -> tuple[TaggedCommit, ...]:
    return tuple(commit.as_tagged(app_id) for commit in commits if app_id in commit.tags) if app_id else ()
