"""The commits that a Delta table's rows come from, and the state that they record.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from partitions.errors import TargetError
from resources.tables.contract.adopting import AdoptableState
from resources.tables.delta.commit import DeltaCommit
from resources.tables.delta.log import DeltaLog
from resources.tables.user_metadata import stored_state


class RowHistory:
    """The commits that a table's rows come from, newest first.

    After a RESTORE these are the commits up to the restored version.

    Attributes:
        ends_at_removal: whether the last commit is another writer's that removed all rows.
        cleaned_version: newest version before these commits that rows may come from and that was cleaned
            from the log; -1 if there is none.
    """

    def __init__(self, log: DeltaLog, app_id: str | None, before: int | None = None) -> None:
        """Start at the newest version, or at the one before a version.

        :meth:`DeltaCommit.removes_all_rows` explains ``app_id``.
        """
        self._log, self._app_id = log, app_id
        self._versions = [version for version in log.versions(None) if before is None or version < before]
        self.ends_at_removal = False
        self.cleaned_version = -1 if before is None else before - 1

    def __iter__(self) -> Iterator[DeltaCommit]:
        """Yield the commits, newest first."""
        remaining_versions = list(self._versions)
        while remaining_versions:
            commit = self._log.read(remaining_versions.pop())
            self.cleaned_version = commit.version - 1
            yield commit
            if not commit.removes_all_rows(self._app_id):
                continue
            restored_version = (
                self._restored_version(commit, remaining_versions) if commit.operation == "RESTORE" else None
            )
            if restored_version is None:
                self.ends_at_removal, self.cleaned_version = True, -1
                return
            self.cleaned_version = restored_version
            remaining_versions = [version for version in remaining_versions if version <= restored_version]

    def _restored_version(self, commit: DeltaCommit, earlier_versions: Sequence[int]) -> int | None:
        """Return the version that a RESTORE brought back; None if unknown.

        A RESTORE to an instant goes by the modification times of log files, which a copy of the table
        lacks. So the version is recognized by the files that are part of the table.
        """
        version = commit.parameters.get("version")
        if version not in (None, "", "null"):
            return int(version)
        files = self._log.files(commit.version)
        with suppress(TargetError):  # a version whose log was cleaned
            return next(
                (number for number in reversed(earlier_versions) if self._log.files(number) == files), None
            )
        return None


def adoptable_state(log: DeltaLog, app_id: str | None, dataflow: str | None = None) -> AdoptableState | None:
    """Return the state that the table's commits record.

    See :class:`resources.tables.contract.adopting.CanAdopt`.

    Args:
        log: log of the table.
        app_id: app id whose commits count.
        dataflow: dataflow whose commits count, in a shared table.
    """
    beyond = False
    history = RowHistory(log, app_id)
    for commit in history:
        metadata = commit.strandline_metadata if app_id is None or app_id in commit.tags else {}
        if (
            not metadata or commit.is_of_other_dataflow(dataflow) or metadata.get("gives_up")
        ):  # a fence says nothing about rows
            continue
        number = int(metadata.get("number", 0))
        app_id = app_id or next((key for key, tag in commit.tags.items() if tag == number), None)
        if _still_follows(log, metadata.get("after"), commit.version, app_id):
            state, rewound = stored_state(log.place, metadata, commit.version), bool(metadata.get("rewound"))
            return AdoptableState(state, app_id, number, str(metadata.get("owner")), beyond, rewound)
        beyond = True
    return AdoptableState(None, app_id, beyond=True) if beyond or history.ends_at_removal else None


def _still_follows(
    log: DeltaLog, commit_before: Mapping[str, Any] | None, version: int, app_id: str | None
) -> bool:
    """Return whether the table's rows still come from the commit that a tagged commit was added to."""
    if commit_before is None:
        return True
    history = RowHistory(log, app_id, version)
    for commit in history:
        if commit.version <= commit_before["version"]:
            return bool(commit.version == commit_before["version"] and commit.id == commit_before["id"])
    return bool(commit_before["version"] <= history.cleaned_version)
