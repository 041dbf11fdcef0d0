"""The commits that a Delta table's rows go back to, through RESTOREs, and the state that they tell (docs/state.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from partitions.errors import TargetError
from resources.tables.contract.adopting import AdoptableState
from resources.tables.delta.commit import Commit
from resources.tables.delta.log import DeltaLog
from resources.tables.user_metadata import stored_state


class RowHistory:
    """The commits that a table's rows go back to, newest first: of a RESTORE those up to the version that it has brought back.

    Attributes:
        ended: whether it ends at a commit by which another writer has removed all rows, which is the last one then.
        cleaned: the newest version before these that the rows may go back to, too, and that was cleaned from the log; -1 if there is none.
    """

    def __init__(self, log: DeltaLog, app_id: str | None, before: int | None = None) -> None:
        """Begin at the newest version, or at the one before a version; ``app_id`` is the dataflow's, as :meth:`Commit.undoes` takes it."""
        self._log, self._app_id = log, app_id
        self._versions = [version for version in log.versions(None) if before is None or version < before]
        self.ended = False
        self.cleaned = -1 if before is None else before - 1

    def __iter__(self) -> Iterator[Commit]:
        """Read the commits."""
        left = list(self._versions)
        while left:
            commit = self._log.read(left.pop())
            self.cleaned = commit.version - 1
            yield commit
            if not commit.undoes(self._app_id):
                continue
            restored = self._restored(commit, left) if commit.operation == "RESTORE" else None
            if restored is None:
                self.ended, self.cleaned = True, -1
                return
            self.cleaned = restored
            left = [version for version in left if version <= restored]

    def _restored(self, commit: Commit, before: Sequence[int]) -> int | None:
        """The version that a RESTORE has brought back; None if it is unknown.

        One that names an instant goes by the times of the log's files, which a copy of the table does not have: the files that are part
        of the table tell.
        """
        version = commit.parameters.get("version")
        if version not in (None, "", "null"):
            return int(version)
        files = self._log.files(commit.version)
        with suppress(TargetError):  # a version whose log was cleaned
            return next((number for number in reversed(before) if self._log.files(number) == files), None)
        return None


def adoptable_state(log: DeltaLog, app_id: str | None, dataflow: str | None = None) -> AdoptableState | None:
    """Return what Strandline's commits tell; see :class:`resources.tables.contract.adopting.CanAdopt`.

    Args:
        log: of the table.
        app_id: whose commits count.
        dataflow: whose commits count, in a table that several share.
    """
    beyond = False
    history = RowHistory(log, app_id)
    for commit in history:
        ours = commit.ours if app_id is None or app_id in commit.tags else {}
        if (
            not ours or commit.is_of_another(dataflow) or ours.get("gives_up")
        ):  # which says nothing of the rows that are there
            continue
        number = int(ours.get("number", 0))
        app_id = app_id or next((key for key, tag in commit.tags.items() if tag == number), None)
        if _holds(log, ours.get("after"), commit.version, app_id):
            state, rewound = stored_state(log.place, ours, commit.version), bool(ours.get("rewound"))
            return AdoptableState(state, app_id, number, str(ours.get("owner")), beyond, rewound)
        beyond = True
    return AdoptableState(None, app_id, beyond=True) if beyond or history.ended else None


def _holds(log: DeltaLog, after: Mapping[str, Any] | None, version: int, app_id: str | None) -> bool:
    """Whether the rows that a commit was added to are still among those that the table's rows go back to."""
    if after is None:
        return True
    history = RowHistory(log, app_id, version)
    for commit in history:
        if commit.version <= after["version"]:
            return bool(commit.version == after["version"] and commit.id == after["id"])
    return bool(after["version"] <= history.cleaned)
