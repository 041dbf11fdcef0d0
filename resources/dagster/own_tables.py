"""The table of a user's own asset: whose it is, and the one commit that a run makes.

A commit replaces the whole table, or exactly the rows of the run's partitions. So a run that died is
repeated without harm. Commits are numbered under the asset's app id, and a table skips a number that it
has in silence. So a writer looks up who owns its number after each write, and takes the next one if
another run of the asset was first. See docs/explanation/adr/0045.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from partitions.errors import (
    ConfigurationError,
    RowsRefused,
    StrandlineError,
    TargetError,
    WriteConflict,
)
from partitions.evolution import SchemaMode
from partitions.loads import Load, Replace, ReplaceAll
from partitions.predicate import Predicate
from partitions.schema_types import Schema
from partitions.sentinels import serialise
from partitions.spelling import first_few
from resources.connections.places import Place
from resources.dagster.asset_rows import AssetRows
from resources.dagster.own_asset import FORMAT, TABLE, OwnAsset
from resources.platform.platform import Platform
from resources.spark.process import error_line
from resources.spark.settings import WRITTEN_TIMES, temporary_settings
from resources.tables.contract.commits import TableHead, Tag, TaggedCommit
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.contract.contents import TableContents, TellsNextColumns
from resources.tables.contract.table import FollowsUp, Table
from resources.tables.registry import find_format, open_table
from resources.watermarks.entry import new_id

_NO_STATE = serialise({})


@dataclass(frozen=True)
class OwnTable:
    """The table of one asset; it need not exist.

    Attributes:
        platform: the resources.
        asset: the asset.
    """

    platform: Platform
    asset: OwnAsset

    @property
    def place(self) -> Place:
        """The place of the table."""
        return self.platform.lake.child(self.asset.table)

    @property
    def contents(self) -> TableContents:
        """The contents of the table."""
        return self._open().contents

    @cached_property
    def table_format(self) -> str:
        """The format of the table: that of the existing table, else the asset's, else the project's.

        Raises:
            ConfigurationError: the asset's metadata names another format than the table has.
        """
        existing, named = find_format(self.place), self.asset.table_format
        if existing is not None and named not in (None, existing):
            raise ConfigurationError(
                f"{self.asset.what}: expected a table of format {named} or none, found {self.asset.table} of "
                f'format {existing}. Set "{FORMAT}": "{existing}"; or name another table: "{TABLE}": '
                '"LAYER/NAME"'
            )
        return existing or named or self.platform.table_format

    def columns(self) -> Schema | None:
        """Return the columns of the table as Spark's JSON; None if there is no table."""
        contents = self.contents
        if isinstance(contents, TellsNextColumns):
            text = contents.next_columns()
        else:
            described = contents.schema()
            text = described[1] if described else None
        columns: Schema | None = json.loads(text) if text is not None else None
        return columns

    def check(self) -> None:
        """Raise unless the table is this asset's, or does not exist.

        Raises:
            ConfigurationError: a dataflow makes the table, another writer has written it, or it has
                another format.
        """
        self.asset.check_maker(self.platform.lineage)
        table = self._open()
        self._check_writer(table, table.tip(self.asset.app_id))

    def replace(self, rows: AssetRows) -> TaggedCommit:
        """Replace the whole table, or the rows of the partitions, in one commit; return the commit.

        Raises:
            ConfigurationError: as :meth:`check`.
            WriteConflict: other writers were first in every attempt; nothing was stored.
            RowsRefused, TargetError: the table cannot take the rows; nothing was stored.
        """
        where = rows.partitions.where if rows.partitions is not None else None
        commit = retry_conflicts(lambda: self._attempt(rows, where))
        table = self._open()
        if isinstance(table, FollowsUp):
            table.after_append(commit.commit, self.asset.table.replace("/", "_"))
        return commit

    def _open(self, mode: SchemaMode = "strict") -> Table:
        return open_table(self.table_format, self.place, (), mode)

    def _attempt(self, rows: AssetRows, where: Predicate | None) -> TaggedCommit:
        """Write once, and return the commit.

        Raises:
            WriteConflict: another run of the asset has the number, or changed what this write builds on.
        """
        table = self._open("strict" if where is None else "merge")
        tip = table.tip(self.asset.app_id)
        self._check_writer(table, tip)
        tag = Tag(
            self.asset.app_id,
            tip.highest_tag + 1,
            new_id(),
            writer=self.platform.writer_of(self.asset.table),
        )
        load: Load = ReplaceAll() if where is None else Replace(where)
        try:
            frame = rows.frame()
            # The session may be one of the user's own, which writes times as Spark does by default.
            with temporary_settings(frame.sparkSession, WRITTEN_TIMES):
                table.write(frame, load, tag, _NO_STATE, base=tip.version)
        except WriteConflict:
            raise
        except Exception as error:
            # The commit may have landed although its answer did not.
            if (commit := self._commit_of(tag, tip)) is not None:
                return commit
            newest = self._open().tip(self.asset.app_id)
            if newest.highest_tag >= tag.number or (tip.version is None and newest.version is not None):
                raise self._conflict() from error
            raise self._failure(error) from error
        commit = self._commit_of(tag, tip)
        if commit is None:
            raise self._conflict()
        return commit

    def _commit_of(self, tag: Tag, tip: TableHead) -> TaggedCommit | None:
        """Return the commit of a number if this writer owns it; None if it is another run's, or missing."""
        table = self._open()
        commit = table.head(tip.newest, tag.app_id).find_tagged_commit(tag.number)
        if commit is None or commit.owner != tag.owner:
            return None
        return table.complete_counts(commit, 0)

    def _conflict(self) -> WriteConflict:
        return WriteConflict(
            f"{self.asset.what}: another writer of table {self.asset.table} was first. The rows of this run are "
            "not stored. Run again"
        )

    def _failure(self, error: Exception) -> StrandlineError:
        if isinstance(error, RowsRefused):
            return RowsRefused(f"{self.asset.what}: {error.message}. Nothing was stored", code=error.code)
        if isinstance(error, StrandlineError):
            return error
        return TargetError(
            f"{self.asset.what}: table {self.asset.table} cannot be written: {error_line(error).rstrip('.')}. "
            "Nothing was stored. Run again, or change the rows that the asset returns"
        )

    def _check_writer(self, table: Table, tip: TableHead) -> None:
        foreign = table.head(None, None).foreign_files if tip.version is None else ()
        if tip.highest_tag or (tip.version is None and not foreign):
            return
        existing = f"the files {first_few(foreign, 3)}" if foreign else "a table of another writer"
        raise ConfigurationError(
            f"{self.asset.what}: expected no table at {table.place}, or one that this asset has written, found "
            f'{existing}. Name another table in the asset\'s metadata: "{TABLE}": "LAYER/NAME"; or move it away'
        )
