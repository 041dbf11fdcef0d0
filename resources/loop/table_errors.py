"""The errors about a table that stop a run; each has a command that resolves it.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.target import COMMIT_COLUMN
from resources.tables.contract.commits import TableHead, Writer
from resources.watermarks.entry import Entry


class TableErrors:
    """Makes the errors about the table of one dataflow."""

    def __init__(self, dataflow: Dataflow, entry: Entry | None) -> None:
        """Bind to a dataflow and its newest entry."""
        self._name, self._table = dataflow.name, dataflow.table
        self._entry = entry
        name = dataflow.name
        self._adopt = f"strandline state adopt {name} --reason TEXT"
        self._accept = f"strandline state accept {name} --reason TEXT"
        self._reset = f"strandline state reset {name} --reason TEXT"
        self._replace = f"strandline state reset {name} --replace --reason TEXT"
        self._keep_table = (self._reset,) if dataflow.keeps_table_in_reset else ()
        self._import = f"strandline state import {name} FILE --reason TEXT"

    def state_lost(self, head: TableHead, writer: Writer | None = None) -> NeedsDecision:
        """Return the error for a table with data that no entry knows of.

        Args:
            head: the table's head.
            writer: another state that its newest commit names; None if it names none.
        """
        lack = "has no entry" if self._entry is None else "has no entry that knows the table"
        hint = _set_state_back(writer) if writer else ""
        return self._needs_decision(
            "state_lost",
            f"table {self._table} has data (version {head.version}), but the watermark log {lack}: the "
            "state was lost, or the table belongs to something else. Loading from the start would "
            f"duplicate its rows. {hint}Run `state adopt` to take the watermark from the table, `state import` "
            f"to load an export, {self._or_load_into('to empty the table')}; or use another target.table",
            (self._adopt, self._import, self._replace, *self._keep_table),
        )

    def table_missing(self) -> NeedsDecision:
        """Return the error for a table that no longer exists."""
        return self._needs_decision(
            "table_missing",
            f"{self._recorded_rows()}, but the table does not exist. Restore the table, or run `state "
            "reset` to load everything again",
            (self._reset,),
        )

    def table_replaced(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table that does not have the recorded commit."""
        if head.is_older:
            return self._behind(
                f"the table is only at version {head.version}, older than the state (restored from a backup?)"
            )
        return self._needs_decision(
            "table_replaced",
            f"{self._recorded_rows()}, but that version is a different commit now (the newest is "
            f"{head.version}): the table was recreated, copied or restored. Restore the old table; or run "
            "`state adopt` to take the watermark from this table, or `state reset --replace` to reload it",
            (self._adopt, self._replace, *self._keep_table),
        )

    def table_unseen(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table that was created after the newest entry."""
        last_entry = f"entry {self._entry.number} ({self._entry.why})" if self._entry else "the state"
        return self._needs_decision(
            "table_replaced",
            f"table {self._table} has data (version {head.version}), but it was created after {last_entry}. "
            "Loading everything into it could duplicate rows. Run `state adopt` to take the watermark "
            f"from the table, {self._or_load_into('to empty it')}",
            (self._adopt, self._replace, *self._keep_table),
        )

    def rows_replaced(self, head: TableHead) -> NeedsDecision:
        """Return the error for rows that another writer has replaced."""
        return self._behind(f"another writer has since replaced all rows of the table: {head.emptied_by}")

    def commit_lost(self) -> NeedsDecision:
        """Return the error for a recorded commit that has left no trace in the table."""
        return self._behind(
            "that commit was cleaned from the table's log, and the table no longer has the file that it "
            "added. Either the table was restored, or its files were rewritten, as OPTIMIZE does; "
            "nothing shows which",
            lacks="may lack",
        )

    def files_missing(self, head: TableHead) -> NeedsDecision:
        """Return the error for missing data files."""
        is_missing, them = ("is", "it") if len(head.missing_files) == 1 else ("are", "them")
        return self._needs_decision(
            "table_behind",
            f"{self._recorded_rows()}, but {_name_files(head.missing_files)} of the table {is_missing} missing, and no"
            f" commit removed {them}. The table lacks rows that count as loaded. Restore the missing files; or run"
            " `state adopt` to take the watermark from the table as it is, or `state reset --replace` to reload it",
            (self._adopt, self._replace),
        )

    def foreign_files(self, head: TableHead) -> NeedsDecision:
        """Return the error for files that others have put into the table's folder."""
        return self._needs_decision(
            "foreign_files",
            f"table {self._table}: expected only files that its commits name, found "
            f"{_name_files(head.foreign_files)} beside them. Other readers of the folder see the rows of "
            "such files; Strandline does not. Move the files away, and load them with a dataflow of "
            "their own; or run `state reset --replace`, which sets them aside and reloads the table",
            (self._replace,),
        )

    def _behind(self, how: str, lacks: str = "lacks") -> NeedsDecision:
        return self._needs_decision(
            "table_behind",
            f"{self._recorded_rows()}, but {how}. The table {lacks} rows that count as loaded. Restore "
            "the newer table; or run `state adopt` to take the watermark from this table, or `state "
            "reset --replace` to reload it",
            (self._adopt, self._replace),
        )

    def foreign_tag(self, head: TableHead) -> NeedsDecision:
        """Return the error for numbers under this dataflow's tag that the log does not know."""
        number = self._entry.number if self._entry else 0
        newest_number = max((commit.number for commit in head.tagged_commits), default=head.highest_tag)
        return self._needs_decision(
            "foreign_tag",
            f"table {self._table} holds number {newest_number} under this dataflow's tag in a commit that "
            f"the watermark log does not know; the newest entry is {number}. The state is older than the "
            "table (restored from a backup?), or another project writes with a copy of the state. If the "
            "table is right, run `state adopt`; if not, `state reset --replace` reloads it",
            (self._adopt, self._replace),
        )

    def other_writer(self, head: TableHead, own: Writer) -> NeedsDecision:
        """Return the error for a table whose last commit names another state than this one.

        If that commit is unknown here, the two states have parted, and only the table tells which rows it has.
        """
        writer = head.writer
        assert writer is not None
        known_number = self._entry.number if self._entry else 0
        has_parted = bool(head.tagged_commits) or head.highest_tag > known_number
        remedy = (
            "run `state adopt`, which takes the watermark from the table"
            if has_parted
            else "run `state accept`"
        )
        return self._needs_decision(
            "other_writer",
            f"table {self._table}: expected commits of this project's state {own.state} ({own.project}), "
            f"found a last commit by the state {writer.state} of project {writer.project}. "
            f"{_set_state_back(writer)}If this project is a copy, set `lake` in platform.yaml to an address of its own, and load "
            "everything with `state reset`. If that project or its state was moved here, and nothing "
            f"runs at the old address any more, {remedy}",
            (self._adopt, self._replace) if has_parted else (self._accept, self._adopt),
        )

    def tags_expire(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table with a property that makes tags expire."""
        return self._needs_decision(
            "tags_expire",
            f"table {self._table} has the property {head.tags_expire}, which makes it forget the tags "
            "that prevent double writes. Remove the property",
            (f"ALTER TABLE {self._table} UNSET TBLPROPERTIES ('{head.tags_expire}')",),
        )

    def commit_column_missing(self) -> NeedsDecision:
        """Return the error for a table whose rows cannot tell their commit."""
        return self._needs_decision(
            "commit_column_missing",
            f"table {self._table}: expected the column {COMMIT_COLUMN}, by which each row tells its commit, found none: "
            "another writer created the table, or dropped the column. Without it a run could load rows twice. "
            "Nothing was loaded. Run `state reset --replace`, which deletes all rows and loads the source with the "
            "column; or use another target.table",
            (self._replace,),
        )

    def _or_load_into(self, why: str) -> str:
        """Return the last remedies of a list: empty the table, or load everything into it if that is allowed."""
        if not self._keep_table:
            return f"or `state reset --replace` {why}"
        return f"`state reset --replace` {why}, or `state reset` to load everything into it"

    def _recorded_rows(self) -> str:
        entry = self._entry
        return (
            f"entry {entry.number if entry else 0} records version {entry.table_version if entry else None} of "
            f"table {self._table}"
        )

    def _needs_decision(self, code: str, message: str, choices: tuple[str, ...]) -> NeedsDecision:
        return NeedsDecision(f"dataflow {self._name}: {message}", code=code, choices=choices)


def _set_state_back(writer: Writer) -> str:
    """Return the first remedy for a state that is not the one which writes the table."""
    return f"If `state` in platform.yaml was changed by mistake, set it back to {writer.state}. "


def _name_files(files: Sequence[str]) -> str:
    """Return the first file's name, and the number of files if there are more."""
    return f"file {files[0]}" if len(files) == 1 else f"{len(files):,} files (the first: {files[0]})"
