"""Compare an Iceberg table's snapshots with the commit that the watermark log recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit, Version, Writer
from resources.tables.iceberg.commit import IcebergCommit, group_commits
from resources.tables.iceberg.commit_column import highest_number, holds_commit_of
from resources.tables.iceberg.metadata import Metadata, sequence_of


def compare_head(
    metadata: Metadata | None, recorded: TableCommit | None, app_id: str | None, dataflow: str | None = None
) -> TableHead:
    """Compare the metadata with the recorded commit; read rows only if snapshots do not decide.

    See :meth:`resources.tables.contract.table.Table.head`.

    Args:
        metadata: metadata of the table.
        recorded: commit that the table must have.
        app_id: app id of the dataflow.
        dataflow: name of the dataflow in a shared table; commits of other dataflows do not come between
            its own and undo nothing.
    """
    version = recorded.version if recorded else None
    if metadata is None:
        return TableHead(None, has_recorded=version is None)
    newest = _newest_commit(metadata)
    commits = group_commits(metadata.lineage())
    if recorded is None or version is None or str(version) == f"0-{metadata.raw.get('table-uuid')}":
        tagged_commits = _tagged_commits(commits, app_id, dataflow)
        return TableHead(
            newest,
            highest_tag=_highest_tag(metadata, commits, app_id),
            tagged_commits=tagged_commits,
            emptied_by=_find_emptying_commit(metadata, commits, app_id, dataflow)
            if version is not None
            else None,
        )
    index = next(
        (number for number, commit in enumerate(commits) if commit.snapshot.version == version), None
    )
    if index is not None and recorded.id in (None, commits[index].id):
        later_commits = commits[index + 1 :]
        tagged_commits = _tagged_commits(later_commits, app_id, dataflow, version)
        highest = max((commit.number for commit in tagged_commits), default=recorded.number)
        return TableHead(
            newest,
            highest_tag=highest,
            tagged_commits=tagged_commits,
            emptied_by=_find_emptying_commit(metadata, later_commits, app_id, dataflow),
        )
    if index is None and _is_expired(commits, str(version)):
        return _head_after_expiry(metadata, commits, recorded, app_id, dataflow)
    return TableHead(
        newest,
        has_recorded=False,
        is_older=sequence_of(metadata.version_id) < sequence_of(str(version)),
        highest_tag=_highest_tag(metadata, commits, app_id),
        tagged_commits=_tagged_commits(commits, app_id, dataflow),
    )


def find_writer(metadata: Metadata | None, app_id: str | None) -> Writer | None:
    """Return the state that the newest commit under a tag belongs to."""
    commits = reversed(group_commits(metadata.lineage())) if metadata and app_id else ()
    newest = next((commit for commit in commits if commit.app_id == app_id), None)
    return Writer.parse(newest.strandline_metadata.get("writer")) if newest else None


def read_tip(metadata: Metadata | None, app_id: str | None) -> TableHead:
    """Return the newest commit and the highest number under a tag.

    See :meth:`resources.tables.contract.table.Table.tip`.
    """
    if metadata is None:
        return TableHead(None)
    tag = _highest_tag(metadata, group_commits(metadata.lineage()), app_id)
    newest = _newest_commit(metadata)
    return TableHead(TableCommit(newest.version, newest.id, tag), highest_tag=tag)


def _newest_commit(metadata: Metadata) -> TableCommit:
    commits = group_commits(metadata.lineage())
    return commits[-1].as_table_commit if commits else TableCommit(metadata.version_id)


def _head_after_expiry(
    metadata: Metadata,
    commits: Sequence[IcebergCommit],
    recorded: TableCommit,
    app_id: str | None,
    dataflow: str | None,
) -> TableHead:
    """Return the head of a table whose recorded snapshot was expired.

    Its rows show whether they include those of the recorded commit.

    A tag may keep the snapshot without those between. What its rows show must then hold for the newest
    snapshot, too.
    """
    tagged_commits = _tagged_commits(commits, app_id, dataflow, recorded.version)
    recorded_snapshot = metadata.snapshot(str(recorded.version))
    first_parent = commits[0].follows
    has_recorded = recorded_snapshot is not None and first_parent == recorded_snapshot.id
    if not has_recorded and app_id:
        listed_numbers = {commit.number for commit in tagged_commits}
        earlier_number = highest_number(metadata, app_id, below=min(listed_numbers, default=None))
        expected_number = (
            highest_number(metadata, app_id, recorded_snapshot) if recorded_snapshot else recorded.number
        )
        has_recorded = earlier_number == expected_number
    return TableHead(
        _newest_commit(metadata),
        has_recorded=has_recorded,
        commits_cleaned=True,
        highest_tag=_highest_tag(metadata, commits, app_id),
        tagged_commits=tagged_commits,
        emptied_by=_find_emptying_commit(metadata, commits, app_id, dataflow),
    )


def _is_expired(commits: Sequence[IcebergCommit], version: str) -> bool:
    """Return whether a snapshot may have been one before the oldest that remains."""
    if not commits or commits[0].follows is None:
        return False
    return sequence_of(version) < commits[0].snapshot.sequence


def _highest_tag(metadata: Metadata, commits: Sequence[IcebergCommit], app_id: str | None) -> int:
    """Return the highest number under a tag, from snapshots, or from rows if those snapshots were expired."""
    if app_id is None:
        return 0
    numbers = [commit.number for commit in commits if commit.app_id == app_id]
    if not numbers and (not commits or commits[0].follows is not None):
        numbers.append(highest_number(metadata, app_id) or 0)
    return max(numbers, default=0)


def _find_emptying_commit(
    metadata: Metadata, later_commits: Sequence[IcebergCommit], app_id: str | None, dataflow: str | None
) -> str | None:
    """Describe another writer's commit that removed all rows; None if there is none."""
    emptying = (
        commit.description
        for commit in reversed(later_commits)
        if removes_all_rows(metadata, commit, app_id, dataflow)
    )
    return next(emptying, None)


def removes_all_rows(
    metadata: Metadata, commit: IcebergCommit, app_id: str | None, dataflow: str | None = None
) -> bool:
    """Return whether another writer's commit replaced all earlier rows.

    A DELETE does not count, because it removes rows on purpose. A rewrite keeps the commit column of its
    rows.

    Args:
        metadata: metadata of the table.
        commit: commit of the table.
        app_id: app id of the dataflow; None: every commit of Strandline counts as the dataflow's own.
        dataflow: name of the dataflow in a shared table, where no dataflow touches the rows of others.
    """
    if commit.is_of_other_dataflow(dataflow):
        return False
    if commit.strandline_metadata and (
        app_id is None or commit.snapshot.summary.get("strandline.app-id") == app_id
    ):
        return False
    snapshot = commit.snapshot
    if snapshot.operation != "overwrite" or not snapshot.count("deleted-data-files"):
        return False
    if snapshot.count("total-data-files") != snapshot.count("added-data-files"):
        return False
    return not holds_commit_of(metadata, snapshot, app_id)


def _tagged_commits(
    commits: Sequence[IcebergCommit],
    app_id: str | None,
    dataflow: str | None = None,
    version_before: Version | None = None,
) -> tuple[TaggedCommit, ...]:
    """Return the commits under a tag.

    In a shared table each follows the last commit before it that is not another dataflow's.
    """
    if dataflow is None:
        return tuple(commit.as_tagged for commit in commits if app_id and commit.app_id == app_id)
    tagged_commits: list[TaggedCommit] = []
    for commit in commits:
        if commit.is_of_other_dataflow(dataflow):
            continue
        if app_id and commit.app_id == app_id:
            tagged_commits.append(replace(commit.as_tagged, follows=version_before))
        version_before = commit.snapshot.version
    return tuple(tagged_commits)
