"""The check that state and table match, which every path to a write passes.

This module compares. The remedies for an operator are in :mod:`resources.loop.table_errors`.

See docs/reference/state.md.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from resources.loop.entries import hash_lost_files, recorded_commit, required_commit
from resources.loop.own_state import OwnState
from resources.loop.table_errors import TableErrors
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.commits import TableCommit, TableHead, TaggedCommit, Writer
from resources.tables.contract.table import Table
from resources.tables.registry import refuse_other_formats
from resources.watermarks.entry import Entry, Intent


def check_table(
    dataflow: Dataflow,
    entry: Entry | None,
    table: Table,
    intent: Intent | None = None,
    own_state: OwnState | None = None,
) -> TableHead:
    """Raise if state and table do not match; return what the table's log says.

    Every path to a write, and every decision that builds on the state, passes here.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        table: the table that the definition names.
        intent: the open intent of the next number, whose commit or fence may be in the table.
        own_state: the state's addresses, which the table's last commit must name; None: it may name any.

    Raises:
        NeedsDecision: ``state_lost``: no entry knows of a table with data; ``table_missing``,
            ``table_behind`` and ``table_replaced``: the table lacks the recorded commit or its rows, or
            was created since; ``foreign_tag``: another writer wrote under this dataflow's tag;
            ``tags_expire``: the table expires tags; ``foreign_files``: files lie in its folder that no
            commit has added; ``other_writer``: its last commit names another state; ``table_moved``;
            ``commit_column_missing``: its rows cannot tell their commit.
        ConfigurationError: ``other_format``: the table's place holds a table of another format.
    """
    errors = TableErrors(dataflow, entry)
    if entry is None or entry.table is None:
        head = table.head(known_commit(entry, intent), intent.app_id if intent else None)
        _check_writer(head, own_state, errors)
        if head.lacks_commit_column and entry is None:  # nothing can be adopted
            raise errors.commit_column_missing()
        if head.newest is not None and not _ends_intent(head, intent) and table.contents.has_data():
            raise errors.state_lost(head, find_other_writer(table, own_state))
        _check_foreign(dataflow, entry, head, table, errors)
    else:
        head = table.head(known_commit(entry, intent), entry.app_id)
        _check_foreign(dataflow, entry, head, table, errors)
        _check_writer(head, own_state, errors)
        _check_recorded(entry, head, errors, intent)
        if _is_unseen(entry, head, intent) and table.contents.has_data():
            raise errors.table_unseen(head)
    if head.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    if head.tags_expire:
        raise errors.tags_expire(head)
    if head.lacks_commit_column and not (entry is not None and entry.replace_table):
        raise errors.commit_column_missing()
    return head


def known_commit(entry: Entry | None, intent: Intent | None) -> TableCommit | None:
    """Return the commit that the table's history must have; None if neither entry nor intent knows one.

    If the entry knows no table yet, it is the commit that the open intent was planned on.
    """
    knows_none = entry is None or entry.table is None or entry.table_version is None
    if knows_none and intent is not None and intent.table_version is not None:
        return TableCommit(intent.table_version)
    return None if entry is None or entry.table is None else recorded_commit(entry)


def check_can_be_taken(dataflow: Dataflow, head: TableHead, *, needs_commit_column: bool) -> None:
    """Raise if the table of a decision cannot tell which commits it has.

    Args:
        dataflow: the definition.
        head: the table's head.
        needs_commit_column: whether the decision takes the rows as they are; a load that replaces all of them
            brings the column.

    Raises:
        NeedsDecision: ``tags_expire``; ``commit_column_missing``.
    """
    errors = TableErrors(dataflow, None)
    if head.tags_expire:
        raise errors.tags_expire(head)
    if head.lacks_commit_column and needs_commit_column:
        raise errors.commit_column_missing()


def _check_writer(head: TableHead, own_state: OwnState | None, errors: TableErrors) -> None:
    """Raise if the table's last commit under the dataflow's tag names another state."""
    if own_state is not None and not own_state.knows(head.writer):
        raise errors.other_writer(head, own_state.writer)


def find_other_writer(table: Table, own_state: OwnState | None) -> Writer | None:
    """Return the other state that the newest commit of any dataflow names; None if none is known."""
    if own_state is None:
        return None
    with suppress(StrandlineError):
        adopted = adopted_state(table)
        writer = table.head(None, adopted.app_id).writer if adopted and adopted.app_id else None
        return None if own_state.knows(writer) else writer
    return None


def _check_foreign(
    dataflow: Dataflow, entry: Entry | None, head: TableHead, table: Table, errors: TableErrors
) -> None:
    """Raise if the table's folder holds files of others, which its readers would see."""
    if not head.foreign_files or (entry is not None and entry.replace_table):
        return
    if head.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    raise errors.foreign_files(head)


def _check_recorded(entry: Entry, head: TableHead, errors: TableErrors, intent: Intent | None) -> None:
    has_rows = required_commit(entry) is not None
    if head.newest is None:
        if has_rows:
            raise errors.table_missing()
        return
    if has_rows and not head.has_recorded:
        raise errors.table_replaced(head)
    if has_rows and head.emptied_by:
        raise errors.rows_replaced(head)
    if has_rows and head.lacks_recorded_file:
        raise errors.commit_lost()
    if has_rows and head.missing_files and hash_lost_files(head.missing_files) != entry.lost_files:
        raise errors.files_missing(head)
    # Of commits that were cleaned from the table's log only the tag is left: it must be the one that was recorded.
    number = intent.number if intent else entry.table_number if head.commits_cleaned else entry.number
    foreign_commits = [commit for commit in head.tagged_commits if not (intent and _finishes(commit, intent))]
    # A reset that saw another table did not decide about this one; but if it empties the table, it empties any.
    if (foreign_commits and not (entry.replace_table and not head.has_recorded)) or head.highest_tag > number:
        raise errors.foreign_tag(head)


def _is_unseen(entry: Entry, head: TableHead, intent: Intent | None) -> bool:
    """Return whether a table exists that the newest entry does not know of.

    The entry then counts no rows as loaded, and knows no table, or another one.
    """
    if required_commit(entry) is not None or head.newest is None or entry.replace_table:
        return False
    return not _ends_intent(head, intent) and (entry.table_version is None or not head.has_recorded)


def _ends_intent(head: TableHead, intent: Intent | None) -> bool:
    """Return whether the open intent's commit directly follows the version it was planned on."""
    commit = head.find_tagged_commit(intent.number) if intent else None
    if intent is None or commit is None or not _finishes(commit, intent):
        return False
    return commit.follows == intent.table_version


def _finishes(commit: TaggedCommit | None, intent: Intent) -> bool:
    """Return whether a commit finishes an intent: as its write, or as a fence of its number."""
    if commit is None or commit.number != intent.number:
        return False
    return commit.owner == intent.id or commit.gives_up
