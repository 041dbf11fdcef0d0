"""What a Delta table's log says, compared with what the watermark log has recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit
from resources.tables.delta.commit import Commit
from resources.tables.delta.history import RowHistory
from resources.tables.delta.log import DeltaLog

_TAGS_EXPIRE = "delta.setTransactionRetentionDuration"
"""The property by which Delta forgets tags, so that a write of an old number would not be skipped."""


def compared(
    log: DeltaLog, recorded: TableCommit | None, app_id: str | None, dataflow: str | None = None
) -> TableHead:
    """Compare: one listing, and one read for each commit from the recorded one on; see :meth:`resources.tables.contract.table.Table.head`.

    Args:
        log: of the table.
        recorded: the commit that it must have.
        app_id: the dataflow's.
        dataflow: its name, in a table that several share: commits of the others do not come between its own.
    """
    since = None if recorded is None or recorded.version is None else int(recorded.version)
    versions = log.versions(since - 1 if since else None)
    if not versions and since is None:
        return TableHead(None)
    commits = [log.read(version) for version in versions]
    kept = since is None or bool(commits and recorded and _is_kept(log, recorded, commits[0], app_id))
    if not kept:
        return _other_table(log, since, app_id)
    cleaned = since is not None and commits[0].version > since
    later = [commit for commit in commits if since is None or commit.version > since]
    tagged = _following_own(_tagged_commits(app_id, later), later, since, dataflow)
    # Without a recorded commit every commit is later, and a log that does not begin at 0 was cleaned.
    incomplete = commits[0].version > (since or 0)
    return TableHead(
        commits[-1].recorded,
        commits_cleaned=cleaned,
        highest_tag=_highest(
            log, app_id, tagged, whole=not incomplete, before=recorded.number if recorded else 0
        ),
        tagged_commits=tagged,
        emptied_by=_undone(log, since, later, tagged, app_id),
        lacks_recorded_file=bool(
            incomplete and recorded and recorded.file and not _holds_file(log, recorded.file, versions)
        ),
        tags_expire=_expiry(log, commits, whole=incomplete),
    )


def tip_of(log: DeltaLog, app_id: str | None) -> TableHead:
    """Return the newest commit, and what the whole table says of tags; see :meth:`resources.tables.contract.table.Table.tip`."""
    table = log.table()
    if table is None:
        return TableHead(None)
    newest = log.read(table.version())
    tag = (table.transaction_version(app_id) if app_id else None) or 0
    return TableHead(
        replace(newest.recorded, number=tag),
        highest_tag=tag,
        tags_expire=_TAGS_EXPIRE if table.metadata().configuration.get(_TAGS_EXPIRE) else None,
    )


def _other_table(log: DeltaLog, since: int | None, app_id: str | None) -> TableHead:
    """The head of a table that does not have the recorded commit: whatever is in it came otherwise."""
    commits = log.commits(None)
    if not commits:
        return TableHead(None, has_recorded=False)
    tagged, whole = _tagged_commits(app_id, commits), commits[0].version == 0
    return TableHead(
        commits[-1].recorded,
        has_recorded=False,
        is_older=since is not None and commits[-1].version < since,
        highest_tag=_highest(log, app_id, tagged, whole=whole),
        tagged_commits=tagged,
        tags_expire=_expiry(log, commits, whole=not whole),
    )


def _is_kept(log: DeltaLog, recorded: TableCommit, first: Commit, app_id: str | None) -> bool:
    """Whether the recorded commit is the table's own: by its id, or by the table's tag if it was cleaned from the log."""
    if first.version == recorded.version:
        return recorded.id in (None, first.id)
    return not app_id or _tag(log, app_id) >= recorded.number


def _undone(
    log: DeltaLog,
    since: int | None,
    later: Sequence[Commit],
    tagged: Sequence[TaggedCommit],
    app_id: str | None,
) -> str | None:
    """The other writer's commit that removed all rows which were there; None if the table goes back to all of them again."""
    undoing = next((commit.shown for commit in reversed(later) if commit.undoes(app_id)), None)
    if undoing is None or since is None:
        return undoing
    history = takewhile(lambda commit: commit.version >= since, RowHistory(log, app_id))
    needed = {since, *(commit.version for commit in tagged)}
    return None if needed <= {commit.version for commit in history} else undoing


def _holds_file(log: DeltaLog, file: str, versions: Sequence[int]) -> bool:
    """Whether a data file is part of the table, or was until one of these versions removed it."""
    return file in log.files() or any(log.removes(version, file) for version in versions)


def _highest(
    log: DeltaLog, app_id: str | None, tagged: Sequence[TaggedCommit], *, whole: bool, before: int = 0
) -> int:
    """The highest number under an app id: of the commits that were read, or of the table if these are not the whole of its log."""
    if app_id and not whole:
        return _tag(log, app_id)
    return max((commit.number for commit in tagged), default=before)


def _tag(log: DeltaLog, app_id: str) -> int:
    table = log.table()
    return (table.transaction_version(app_id) if table else None) or 0


def _expiry(log: DeltaLog, commits: Sequence[Commit], *, whole: bool) -> str | None:
    """The property by which tags are forgotten, as the newest commit that sets properties has it."""
    newest_first = reversed(commits)
    properties = next(
        (commit.configuration for commit in newest_first if commit.configuration is not None), None
    )
    if properties is None and whole:
        table = log.table()
        properties = table.metadata().configuration if table else {}
    return _TAGS_EXPIRE if properties and properties.get(_TAGS_EXPIRE) else None


def _following_own(
    tagged: Sequence[TaggedCommit], later: Sequence[Commit], since: int | None, dataflow: str | None
) -> tuple[TaggedCommit, ...]:
    """The commits, each following the one before it that is not another dataflow's, and that changes rows or carries a tag."""
    if dataflow is None:
        return tuple(tagged)
    known = [
        commit.version for commit in later if not (commit.is_of_another(dataflow) or commit.changes_no_row)
    ]
    return tuple(
        replace(
            commit,
            follows=max((version for version in known if version < int(commit.version)), default=since),
        )
        for commit in tagged
    )


def _tagged_commits(app_id: str | None, commits: Sequence[Commit]) -> tuple[TaggedCommit, ...]:
    return tuple(commit.tagged(app_id) for commit in commits if app_id in commit.tags) if app_id else ()
