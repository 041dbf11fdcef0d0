"""What an Iceberg table's snapshots say, compared with what the watermark log has recorded of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit, Version
from resources.tables.iceberg.commit import Commit, commits_of
from resources.tables.iceberg.metadata import Metadata, sequence_of
from resources.tables.iceberg.rows import highest_number, holds_commit_of


def compared(
    metadata: Metadata | None, recorded: TableCommit | None, app_id: str | None, dataflow: str | None = None
) -> TableHead:
    """Compare: the metadata alone tells, unless snapshots were expired; see :meth:`resources.tables.contract.table.Table.head`.

    Args:
        metadata: of the table.
        recorded: the commit that it must have.
        app_id: the dataflow's.
        dataflow: its name, in a table that several share: commits of the others do not come between its own, and undo nothing.
    """
    version = recorded.version if recorded else None
    if metadata is None:
        return TableHead(None, has_recorded=version is None)
    newest = _newest(metadata)
    commits = commits_of(metadata.lineage())
    if recorded is None or version is None or str(version) == f"0-{metadata.raw.get('table-uuid')}":
        tagged = _tagged(commits, app_id, dataflow)
        return TableHead(
            newest,
            highest_tag=_tag(metadata, commits, app_id),
            tagged_commits=tagged,
            emptied_by=_undone(metadata, commits, app_id, dataflow) if version is not None else None,
        )
    at = next((number for number, commit in enumerate(commits) if commit.snapshot.version == version), None)
    if at is not None and recorded.id in (None, commits[at].id):
        later = commits[at + 1 :]
        tagged = _tagged(later, app_id, dataflow, version)
        highest = max((commit.number for commit in tagged), default=recorded.number)
        return TableHead(
            newest,
            highest_tag=highest,
            tagged_commits=tagged,
            emptied_by=_undone(metadata, later, app_id, dataflow),
        )
    if at is None and _is_expired(commits, str(version)):
        return _after_expiry(metadata, commits, recorded, app_id, dataflow)
    return TableHead(
        newest,
        has_recorded=False,
        is_older=sequence_of(metadata.version_id) < sequence_of(str(version)),
        highest_tag=_tag(metadata, commits, app_id),
        tagged_commits=_tagged(commits, app_id, dataflow),
    )


def tip_of(metadata: Metadata | None, app_id: str | None) -> TableHead:
    """Return the newest commit, and the highest number under a tag; see :meth:`resources.tables.contract.table.Table.tip`."""
    if metadata is None:
        return TableHead(None)
    tag = _tag(metadata, commits_of(metadata.lineage()), app_id)
    newest = _newest(metadata)
    return TableHead(TableCommit(newest.version, newest.id, tag), highest_tag=tag)


def _newest(metadata: Metadata) -> TableCommit:
    commits = commits_of(metadata.lineage())
    return commits[-1].recorded if commits else TableCommit(metadata.version_id)


def _after_expiry(
    metadata: Metadata,
    commits: Sequence[Commit],
    recorded: TableCommit,
    app_id: str | None,
    dataflow: str | None,
) -> TableHead:
    """The head of a table of which the recorded snapshot was expired: its rows tell whether they are still the ones.

    The snapshot itself may be kept by its tag, without those between. What it says of rows must hold of the newest one, too.
    """
    tagged = _tagged(commits, app_id, dataflow, recorded.version)
    known = metadata.snapshot(str(recorded.version))
    before = commits[0].follows
    linked = known is not None and before == known.id
    if not linked and app_id:
        seen = {commit.number for commit in tagged}
        mine = highest_number(metadata, app_id, below=min(seen, default=None))
        expected = highest_number(metadata, app_id, known) if known else recorded.number
        linked = mine == expected
    return TableHead(
        _newest(metadata),
        has_recorded=linked,
        commits_cleaned=True,
        highest_tag=_tag(metadata, commits, app_id),
        tagged_commits=tagged,
        emptied_by=_undone(metadata, commits, app_id, dataflow),
    )


def _is_expired(commits: Sequence[Commit], version: str) -> bool:
    """Whether a snapshot may have been one of those before the oldest that is there."""
    if not commits or commits[0].follows is None:
        return False
    return sequence_of(version) < commits[0].snapshot.sequence


def _tag(metadata: Metadata, commits: Sequence[Commit], app_id: str | None) -> int:
    """The highest number under a tag: of the snapshots, in which numbers rise; if those that had some were expired, the rows tell."""
    if app_id is None:
        return 0
    numbers = [commit.number for commit in commits if commit.app_id == app_id]
    if not numbers and (not commits or commits[0].follows is not None):
        numbers.append(highest_number(metadata, app_id) or 0)
    return max(numbers, default=0)


def _undone(
    metadata: Metadata, later: Sequence[Commit], app_id: str | None, dataflow: str | None
) -> str | None:
    """Another writer's commit that removed all rows that were there; None if there is none."""
    undoing = (commit.shown for commit in reversed(later) if undoes(metadata, commit, app_id, dataflow))
    return next(undoing, None)


def undoes(metadata: Metadata, commit: Commit, app_id: str | None, dataflow: str | None = None) -> bool:
    """Return whether another writer's commit removed all rows that were there, and put others in their place.

    One that deletes rows is not meant: whoever deletes wants them gone. One that rewrites rows leaves in them whose they are.

    Args:
        metadata: of the table.
        commit: of it.
        app_id: the dataflow's; None: Strandline's own commits all count as the dataflow's.
        dataflow: its name, in a table that several share, each of which leaves the rows of the others.
    """
    if commit.is_of_another(dataflow):
        return False
    if commit.ours and (app_id is None or commit.snapshot.summary.get("strandline.app-id") == app_id):
        return False
    snapshot = commit.snapshot
    if snapshot.operation != "overwrite" or not snapshot.count("deleted-data-files"):
        return False
    if snapshot.count("total-data-files") != snapshot.count("added-data-files"):
        return False
    return not holds_commit_of(metadata, snapshot, app_id)


def _tagged(
    commits: Sequence[Commit],
    app_id: str | None,
    dataflow: str | None = None,
    since: Version | None = None,
) -> tuple[TaggedCommit, ...]:
    """The commits under a tag; in a table that several dataflows share each follows the one before it that is not another's."""
    if dataflow is None:
        return tuple(commit.tagged for commit in commits if app_id and commit.app_id == app_id)
    tagged, before = [], since
    for commit in commits:
        if commit.is_of_another(dataflow):
            continue
        if app_id and commit.app_id == app_id:
            tagged.append(replace(commit.tagged, follows=before))
        before = commit.snapshot.version
    return tuple(tagged)
