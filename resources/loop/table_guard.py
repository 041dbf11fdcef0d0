"""Whether state and table belong together: the one guard that every path to a write passes (docs/reference/state.md).

Belongs here: the comparison. What each breach means for an operator is in :mod:`resources.loop.table_errors`.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.loop.entries import claimed, lost_files, recorded
from resources.loop.table_errors import TableErrors
from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit
from resources.tables.contract.table import Table
from resources.tables.registry import refuse_other_formats
from resources.watermarks.entry import Entry, Intent


def check_table(
    dataflow: Dataflow, entry: Entry | None, table: Table, intent: Intent | None = None
) -> TableHead:
    """Raise if state and table do not belong together; every path to a write, and every decision that builds on the state, passes here.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        table: that the definition names.
        intent: the open one of the next number, whose commit, or give-up, may be in the table.

    Returns:
        what the table's log says.

    Raises:
        NeedsDecision: ``state_lost``: a table with data, of which no entry knows; ``table_missing``, ``table_behind`` and
            ``table_replaced``: the table does not have the recorded commit, or no longer its rows, or is one that came since; ``foreign_tag``: another writer wrote
            under this dataflow's tag; ``tags_expire``: the table forgets tags; ``foreign_files``: files lie in its folder that no commit has added.
        ConfigurationError: ``other_format``: there is no table, but one of another format.
    """
    errors = TableErrors(dataflow, entry)
    if entry is None or entry.table is None:
        head = table.head(known_commit(entry, intent), intent.app_id if intent else None)
        if head.newest is not None and not _has_ended(head, intent) and table.contents.has_data():
            raise errors.lost(head)
        _check_foreign(dataflow, entry, head, table, errors)
    else:
        head = table.head(known_commit(entry, intent), entry.app_id)
        _check_foreign(dataflow, entry, head, table, errors)
        _check_recorded(entry, head, errors, intent)
        if _is_unseen(entry, head, intent) and table.contents.has_data():
            raise errors.unseen(head)
    if head.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    if head.tags_expire:
        raise errors.expiring(head)
    return head


def known_commit(entry: Entry | None, intent: Intent | None) -> TableCommit | None:
    """Return the commit that the table must go back to; if the entry knows of no table yet, the one that the open intent was made on."""
    knows_none = entry is None or entry.table is None or entry.table_version is None
    if knows_none and intent is not None and intent.table_version is not None:
        return TableCommit(intent.table_version)
    return None if entry is None or entry.table is None else recorded(entry)


def expiring(dataflow: Dataflow, head: TableHead) -> NeedsDecision:
    """The error for a table that forgets tags."""
    return TableErrors(dataflow, None).expiring(head)


def _check_foreign(
    dataflow: Dataflow, entry: Entry | None, head: TableHead, table: Table, errors: TableErrors
) -> None:
    """Raise if readers of the table's folder see rows of others, with a table or without one: no state fits them, whatever else is wrong."""
    if not head.foreign_files or (entry is not None and entry.replace_table):
        return
    if head.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    raise errors.files_foreign(head)


def _check_recorded(entry: Entry, head: TableHead, errors: TableErrors, intent: Intent | None) -> None:
    loaded = claimed(entry) is not None
    if head.newest is None:
        if loaded:
            raise errors.missing()
        return
    if loaded and not head.has_recorded:
        raise errors.replaced(head)
    if loaded and head.emptied_by:
        raise errors.undone(head)
    if loaded and head.lacks_recorded_file:
        raise errors.rewritten()
    if loaded and head.missing_files and lost_files(head.missing_files) != entry.lost_files:
        raise errors.files_missing(head)
    # Of commits that were cleaned from the table's log only the tag is left: it must be the one that was recorded.
    number = intent.number if intent else entry.table_number if head.commits_cleaned else entry.number
    strangers = [commit for commit in head.tagged_commits if not (intent and _finishes(commit, intent))]
    # A reset that saw another table did not decide about this one; but if it empties the table, it empties any.
    if (strangers and not (entry.replace_table and not head.has_recorded)) or head.highest_tag > number:
        raise errors.foreign(head)


def _is_unseen(entry: Entry, head: TableHead, intent: Intent | None) -> bool:
    """Whether there is a table that no decision was about: the entry counts no rows as loaded, and saw none, or another one."""
    if claimed(entry) is not None or head.newest is None or entry.replace_table:
        return False
    return not _has_ended(head, intent) and (entry.table_version is None or not head.has_recorded)


def _has_ended(head: TableHead, intent: Intent | None) -> bool:
    """Whether a commit of the table ends the open intent, right on what the intent was made on: nobody's table has come in between."""
    commit = head.find_tagged_commit(intent.number) if intent else None
    if intent is None or commit is None or not _finishes(commit, intent):
        return False
    return commit.follows == intent.table_version


def _finishes(commit: TaggedCommit | None, intent: Intent) -> bool:
    """Whether a commit ends an intent: its write, or a fence of its number."""
    if commit is None or commit.number != intent.number:
        return False
    return commit.owner == intent.id or commit.gives_up
