"""The commits that an Iceberg table's rows go back to, and the state that they tell (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resources.connections.places import Place
from resources.tables.contract.adopting import AdoptableState
from resources.tables.iceberg.commit import Commit, commits_of
from resources.tables.iceberg.head import undoes
from resources.tables.iceberg.metadata import Metadata, Snapshot, sequence_of
from resources.tables.iceberg.rows import highest_number
from resources.tables.user_metadata import stored_state


def adoptable_state(
    place: Place, metadata: Metadata | None, app_id: str | None, dataflow: str | None = None
) -> AdoptableState | None:
    """Return what Strandline's commits tell; see :class:`resources.tables.contract.adopting.CanAdopt`.

    Args:
        place: of the table.
        metadata: of the table.
        app_id: whose commits count.
        dataflow: whose commits count, in a table that several share.
    """
    commits = commits_of(metadata.lineage()) if metadata else []
    if metadata is None or not commits:
        return None
    first = commits[0].follows is None
    beyond = False
    for at in range(len(commits) - 1, -1, -1):
        commit = commits[at]
        if undoes(metadata, commit, app_id, dataflow):
            return AdoptableState(None, app_id, beyond=True)
        if not _tells(commit, app_id, dataflow):
            continue
        app_id = app_id or commit.app_id
        if _holds(metadata, commit.ours.get("after"), commits[:at], app_id, dataflow, first=first):
            return _told(place, commit, app_id, beyond=beyond)
        beyond = True
    kept = None if first else _kept_by_a_tag(metadata, app_id, dataflow)
    if kept is not None:
        return _told(place, kept, kept.app_id, beyond=beyond)
    return AdoptableState(None, app_id, beyond=True) if beyond else None


def _tells(commit: Commit, app_id: str | None, dataflow: str | None) -> bool:
    """Whether a commit says something of the rows that are there: a fence does not."""
    if commit.app_id is None or not commit.ours or commit.ours.get("gives_up"):
        return False
    if commit.is_of_another(dataflow):
        return False
    return app_id is None or commit.app_id == app_id


def _told(place: Place, commit: Commit, app_id: str | None, *, beyond: bool) -> AdoptableState:
    state = stored_state(place, commit.ours, commit.snapshot.version)
    rewound = bool(commit.ours.get("rewound"))
    return AdoptableState(state, app_id, commit.number, str(commit.ours.get("owner")), beyond, rewound)


def _holds(
    metadata: Metadata,
    after: Mapping[str, Any] | None,
    earlier: Sequence[Commit],
    app_id: str | None,
    dataflow: str | None,
    *,
    first: bool,
) -> bool:
    """Whether the rows that a commit was added to are still among those that the table's rows go back to."""
    if after is None:
        return True
    for commit in reversed(earlier):
        if commit.snapshot.version == after["version"]:
            return bool(commit.id == after["id"])
        if undoes(metadata, commit, app_id, dataflow):
            return False
    oldest = earlier[0].snapshot.sequence if earlier else None
    return not first and (oldest is None or sequence_of(str(after["version"])) < oldest)


def _kept_by_a_tag(metadata: Metadata, app_id: str | None, dataflow: str | None) -> Commit | None:
    """The newest commit of Strandline whose snapshot only a tag has kept, if the table still holds its rows and none that came later."""
    found: list[Snapshot] = sorted(
        (snapshot for snapshot in metadata.snapshots.values()), key=lambda snapshot: -snapshot.sequence
    )
    commits = [Commit(snapshot, before=snapshot) for snapshot in found]
    for commit in commits:
        if _tells(commit, app_id, dataflow) and commit.app_id is not None:
            highest = highest_number(metadata, commit.app_id)
            kept = highest_number(metadata, commit.app_id, commit.snapshot)
            return commit if highest == kept else None
    return None
