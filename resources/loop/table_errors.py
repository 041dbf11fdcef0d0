"""The errors that stop a run over a table, each with commands of which one resolves it whatever became of the table (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.tables.contract.commits import TableHead
from resources.watermarks.entry import Entry


class TableErrors:
    """Makes the errors of one dataflow."""

    def __init__(self, dataflow: Dataflow, entry: Entry | None) -> None:
        """Use a dataflow and its newest entry."""
        self._name, self._table = dataflow.name, dataflow.table
        self._entry = entry
        name = dataflow.name
        self._adopt = f"strandline state adopt {name} --reason TEXT"
        self._reset = f"strandline state reset {name} --reason TEXT"
        self._empty = f"strandline state reset {name} --replace --reason TEXT"
        self._keeps = (self._reset,) if dataflow.keeps_table_in_reset else ()
        self._import = f"strandline state import {name} FILE --reason TEXT"

    def lost(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table with data that no entry knows."""
        said = "has no entry" if self._entry is None else "has no entry that knows the table"
        return self._stop(
            "state_lost",
            f"table {self._table} has data (version {head.version}), but the watermark log {said}: the state was lost,"
            " or the table belongs to something else. Loading from the start would double its rows. Run `state adopt` to take the"
            f" state that the table tells, `state import` to take an export, {self._or_load_into('to empty the table')}; or use another target.table",
            (self._adopt, self._import, self._empty, *self._keeps),
        )

    def missing(self) -> NeedsDecision:
        """Return the error for a table that is gone."""
        return self._stop(
            "table_missing",
            f"{self._says()}, and there is no such table. Restore the table, or run `state reset` to load everything again",
            (self._reset,),
        )

    def replaced(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table that does not have the recorded commit."""
        if head.is_older:
            return self._behind(
                f"the table is at version {head.version}: it is older than the state (restored from a backup?)"
            )
        return self._stop(
            "table_replaced",
            f"{self._says()}, and that version is another commit now (the newest is {head.version}): the table was made again, copied or restored."
            " Put the table back; or run `state adopt` to take the state that this one tells, or `state reset --replace` to reload it",
            (self._adopt, self._empty, *self._keeps),
        )

    def unseen(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table that came after the newest entry."""
        made = f"entry {self._entry.number} ({self._entry.why})" if self._entry else "the state"
        return self._stop(
            "table_replaced",
            f"table {self._table} has data (version {head.version}), and is not what {made} was made with: it came since. Loading everything into"
            f" it could double rows. Run `state adopt` to take the state that it tells, {self._or_load_into('to empty it')}",
            (self._adopt, self._empty, *self._keeps),
        )

    def undone(self, head: TableHead) -> NeedsDecision:
        """Return the error for rows that another writer has removed."""
        return self._behind(f"somebody else has replaced all rows of the table since: {head.emptied_by}")

    def rewritten(self) -> NeedsDecision:
        """Return the error for a recorded commit of which nothing is left."""
        return self._behind(
            "that commit was cleaned from the table's log, and the file that it added is in the table no more: the table was restored, or its"
            " files were rewritten, as OPTIMIZE does, and nothing is left that tells which",
            lacks="may lack",
        )

    def files_missing(self, head: TableHead) -> NeedsDecision:
        """Return the error for data files that are gone."""
        return self._stop(
            "table_behind",
            f"{self._says()}, but {_counted(head.missing_files)} of it is gone, and no commit has removed it. It lacks rows that"
            " count as loaded. Put the files back; or run `state adopt` to take the state that the others tell, or `state reset --replace` to"
            " reload the table",
            (self._adopt, self._empty),
        )

    def files_foreign(self, head: TableHead) -> NeedsDecision:
        """Return the error for files that others have put into the table's folder."""
        return self._stop(
            "foreign_files",
            f"table {self._table}: expected files that its commits name, found {_counted(head.foreign_files)} beside them. Readers of the folder see"
            " their rows, and Strandline does not. Move the files away, and load them by a dataflow of their own; or run `state reset --replace`, which"
            " sets them aside and reloads the table",
            (self._empty,),
        )

    def _behind(self, how: str, lacks: str = "lacks") -> NeedsDecision:
        return self._stop(
            "table_behind",
            f"{self._says()}, but {how}. It {lacks} rows that count as loaded. Put the newer table back; or run"
            " `state adopt` to take the state that this one tells, or `state reset --replace` to reload it",
            (self._adopt, self._empty),
        )

    def foreign(self, head: TableHead) -> NeedsDecision:
        """Return the error for numbers under this dataflow's tag that the log does not know."""
        number = self._entry.number if self._entry else 0
        holds = max((commit.number for commit in head.tagged_commits), default=head.highest_tag)
        return self._stop(
            "foreign_tag",
            f"table {self._table} holds number {holds} under this dataflow's tag in a commit that the watermark log does not know; the newest entry"
            f" is {number}. The state is older than the table (restored from a backup?), or another project writes with a copy of it. If the"
            " table is right, run `state adopt`",
            (self._adopt, self._empty),
        )

    def expiring(self, head: TableHead) -> NeedsDecision:
        """Return the error for a table that forgets tags."""
        return self._stop(
            "tags_expire",
            f"table {self._table} has the property {head.tags_expire}, by which it forgets the tags that keep a slice from being written twice."
            " Remove the property",
            (f"ALTER TABLE {self._table} UNSET TBLPROPERTIES ('{head.tags_expire}')",),
        )

    def _or_load_into(self, why: str) -> str:
        """The end of a list of ways on: to empty the table, or to load everything into it if that is one."""
        if not self._keeps:
            return f"or `state reset --replace` {why}"
        return f"`state reset --replace` {why}, or `state reset` to load everything into it"

    def _says(self) -> str:
        entry = self._entry
        return f"entry {entry.number if entry else 0} says that the rows are in version {entry.table_version if entry else None} of table {self._table}"

    def _stop(self, code: str, said: str, choices: tuple[str, ...]) -> NeedsDecision:
        return NeedsDecision(f"dataflow {self._name}: {said}", code=code, choices=choices)


def _counted(files: Sequence[str]) -> str:
    """Name files: the first, and how many there are."""
    return (
        f"the file {files[0]}" if len(files) == 1 else f"{len(files):,} files, the first of them {files[0]},"
    )
