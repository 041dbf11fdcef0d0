"""The check that only the replay has written to its isolated table (docs/reference/replay.md)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.loop.guards.table import check_table
from resources.platform.opener import Opener
from resources.replay.isolated.refusals import table_changed
from resources.replay.isolated.standing import IsolatedReplay
from resources.tables.contract.commit_log import TellsCommits
from resources.tables.contract.commits import TableHead, Version
from resources.tables.contract.table import Table


def check_unchanged(platform: Opener, dataflow: Dataflow, isolated: IsolatedReplay) -> Version | None:
    """Return the version of a replay's table, after checking that no other writer has changed its rows.

    None if no chunk had rows. Maintenance counts as no change.

    Raises:
        NeedsDecision: code ``aside_changed``: another writer has changed rows, or removed or restored the
            table.
    """
    loading, log = isolated.loading_dataflow(dataflow), platform.log
    entry, table = log.newest(isolated.log), platform.table(loading)
    try:
        head = check_table(loading, entry, table, log.open_intent(isolated.log, entry))
        if entry is not None and entry.table_version is not None:
            _check_rows(table, head, entry.table_version)
    except NeedsDecision as error:
        raise table_changed(isolated, error) from error
    return head.version


def _check_rows(table: Table, head: TableHead, since: Version) -> None:
    """Raise if another writer has added or changed rows since a version."""
    if not isinstance(table, TellsCommits) or head.version in (None, since):
        return  # a table whose log does not tell has no other writers: their files are in no version of it
    own_versions = {commit.version for commit in head.tagged_commits}
    for commit in table.commits.since(table.commits.position_of(since)).commits:
        if commit.kind == "nothing" or commit.deletes_for_good:
            continue
        if table.commits.version_of(commit.read_position) not in own_versions:
            raise NeedsDecision(f"another writer has changed it: {commit.description}")
