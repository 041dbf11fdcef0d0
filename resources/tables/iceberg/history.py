"""The commits that an Iceberg table's rows come from, and the state that they record.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resources.connections.places import Place
from resources.tables.contract.adopting import AdoptableState
from resources.tables.iceberg.commit import IcebergCommit, group_commits
from resources.tables.iceberg.commit_column import highest_number
from resources.tables.iceberg.head import removes_all_rows
from resources.tables.iceberg.metadata import Metadata, Snapshot, sequence_of
from resources.tables.user_metadata import stored_state


def adoptable_state(
    place: Place, metadata: Metadata | None, app_id: str | None, dataflow: str | None = None
) -> AdoptableState | None:
    """Return the state that the table's commits record.

    See :class:`resources.tables.contract.adopting.CanAdopt`.

    Args:
        place: place of the table.
        metadata: metadata of the table.
        app_id: app id whose commits count.
        dataflow: dataflow whose commits count, in a shared table.
    """
    commits = group_commits(metadata.lineage()) if metadata else []
    if metadata is None or not commits:
        return None
    is_complete = commits[0].follows is None
    beyond = False
    for index in range(len(commits) - 1, -1, -1):
        commit = commits[index]
        if removes_all_rows(metadata, commit, app_id, dataflow):
            return AdoptableState(None, app_id, beyond=True)
        if not _records_state(commit, app_id, dataflow):
            continue
        app_id = app_id or commit.app_id
        if _still_follows(
            metadata,
            commit.strandline_metadata.get("after"),
            commits[:index],
            app_id,
            dataflow,
            is_complete=is_complete,
        ):
            return _adoptable(place, commit, app_id, beyond=beyond)
        beyond = True
    tag_commit = None if is_complete else _find_commit_kept_by_tag(metadata, app_id, dataflow)
    if tag_commit is not None:
        return _adoptable(place, tag_commit, tag_commit.app_id, beyond=beyond)
    return AdoptableState(None, app_id, beyond=True) if beyond else None


def _records_state(commit: IcebergCommit, app_id: str | None, dataflow: str | None) -> bool:
    """Return whether a commit of the dataflow records a state of the rows; a fence does not."""
    if commit.app_id is None or not commit.strandline_metadata or commit.strandline_metadata.get("gives_up"):
        return False
    if commit.is_of_other_dataflow(dataflow):
        return False
    return app_id is None or commit.app_id == app_id


def _adoptable(place: Place, commit: IcebergCommit, app_id: str | None, *, beyond: bool) -> AdoptableState:
    state = stored_state(place, commit.strandline_metadata, commit.snapshot.version)
    rewound = bool(commit.strandline_metadata.get("rewound"))
    return AdoptableState(
        state, app_id, commit.number, str(commit.strandline_metadata.get("owner")), beyond, rewound
    )


def _still_follows(
    metadata: Metadata,
    commit_before: Mapping[str, Any] | None,
    earlier_commits: Sequence[IcebergCommit],
    app_id: str | None,
    dataflow: str | None,
    *,
    is_complete: bool,
) -> bool:
    """Return whether the table's rows still come from the commit that a tagged commit was added to."""
    if commit_before is None:
        return True
    for commit in reversed(earlier_commits):
        if commit.snapshot.version == commit_before["version"]:
            return bool(commit.id == commit_before["id"])
        if removes_all_rows(metadata, commit, app_id, dataflow):
            return False
    oldest = earlier_commits[0].snapshot.sequence if earlier_commits else None
    return not is_complete and (oldest is None or sequence_of(str(commit_before["version"])) < oldest)


def _find_commit_kept_by_tag(
    metadata: Metadata, app_id: str | None, dataflow: str | None
) -> IcebergCommit | None:
    """Return Strandline's newest commit whose snapshot only a tag keeps.

    None unless the table still holds its rows and no later ones.
    """
    snapshots: list[Snapshot] = sorted(
        (snapshot for snapshot in metadata.snapshots.values()), key=lambda snapshot: -snapshot.sequence
    )
    commits = [IcebergCommit(snapshot, before=snapshot) for snapshot in snapshots]
    for commit in commits:
        if _records_state(commit, app_id, dataflow) and commit.app_id is not None:
            highest = highest_number(metadata, commit.app_id)
            snapshot_highest = highest_number(metadata, commit.app_id, commit.snapshot)
            return commit if highest == snapshot_highest else None
    return None
