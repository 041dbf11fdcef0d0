"""Whether the table aside is what the replay has made of it: nobody else has a reason to write there (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.loop.table_guard import check_table
from resources.platform.opener import Opener
from resources.replay.isolated.refusals import changed_aside
from resources.replay.isolated.standing import Aside
from resources.tables.contract.appends import TellsAppends
from resources.tables.contract.commits import TableHead, Version
from resources.tables.contract.table import Table


def check_unchanged(platform: Opener, dataflow: Dataflow, aside: Aside) -> Version | None:
    """Return the version of a replay's table; None if no chunk has had a row. Care of its files changes none.

    Raises:
        NeedsDecision: code ``aside_changed``: another writer has changed rows, or has removed or restored the table.
    """
    standing, log = aside.of(dataflow), platform.log
    entry, table = log.newest(aside.log), platform.table(standing)
    try:
        head = check_table(standing, entry, table, log.open_intent(aside.log, entry))
        if entry is not None and entry.table_version is not None:
            _check_rows(table, head, entry.table_version)
    except NeedsDecision as error:
        raise changed_aside(aside, error) from error
    return head.version


def _check_rows(table: Table, head: TableHead, since: Version) -> None:
    """Raise if a version since one has added or changed rows, but for the replay's own."""
    if not isinstance(table, TellsAppends) or head.version in (None, since):
        return  # a table whose log does not tell has no other writers: their files are in no version of it
    own = {commit.version for commit in head.tagged_commits}
    for appended in table.appends.since(table.appends.position_of(since)).versions:
        if (appended.files or appended.changes) and table.appends.version_of(
            appended.read_position
        ) not in own:
            what = appended.changes or f"version {appended.version} adds rows"
            raise NeedsDecision(f"another writer has changed it: {what}")
