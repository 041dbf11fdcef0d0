"""A table as a source: the data files that each version appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VERSION = "_strandline_version"
"""Column with the version that appended a row."""


class AppendedFile(NamedTuple):
    """A data file that a version appends.

    Attributes:
        path: path as the table's log has it.
        bytes: size.
        values: texts of the partition columns' values; None is NULL.
    """

    path: str
    bytes: int
    values: Mapping[str, str | None]


class ReadPosition(NamedTuple):
    """The last version of a table that was read.

    Attributes:
        version: version number.
        id: identity of that version, which another version of the same number lacks; None if it was not
            recorded.
    """

    version: int
    id: str | None = None


class VersionAppends(NamedTuple):
    """The files that one version appends.

    Attributes:
        version: version number.
        files: number of appended files; 0 if the version changes no row.
        bytes: size of the appended files.
        id: identity of the version, which another version of the same number lacks.
        changes: how the version changes existing rows, for people; None if it does not.
        holds_all_files: whether the files are the table's whole content, because the log no longer lists
            older versions.
        listed_files: the files, if the log lists them.
    """

    version: int
    files: int
    bytes: int
    id: str
    changes: str | None = None
    holds_all_files: bool = False
    listed_files: tuple[AppendedFile, ...] = ()

    @property
    def read_position(self) -> ReadPosition:
        """Position after this version, from which the next read goes on."""
        return ReadPosition(self.version, self.id)


class AppendedVersions(NamedTuple):
    """The appends of consecutive versions.

    Attributes:
        table: id of the table, which another table at the same place lacks.
        newest: newest version of the table.
        versions: appends of each version, ascending.
    """

    table: str
    newest: int
    versions: tuple[VersionAppends, ...]


class TableAppends(Protocol):
    """The appends of one table."""

    def since(self, position: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return the appends of each version in a range. Starts no Spark.

        Args:
            position: position before the range; None: from the first version.
            until: last version, inclusive; None: the newest.

        Raises:
            NeedsDecision: code ``versions_gone``: the log no longer lists all of them; code
                ``source_replaced``: a rollback or RESTORE removed the version that was read last.
            SourceError: there is no table, or its log cannot be read.
        """
        ...

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version that :meth:`TableContents.read` reads up to a position."""
        ...

    def position_of(self, version: Version) -> ReadPosition:
        """Return the read position after a version.

        The inverse of :meth:`version_of`, as far as versions record it.
        """
        ...

    def rows(self, spark: SparkSession, appended: Sequence[VersionAppends]) -> DataFrame:
        """Return the rows that versions append, with the version of each row in the column ``VERSION``."""
        ...


@runtime_checkable
class TellsAppends(Protocol):
    """A format whose log records the rows that each version appends."""

    @property
    def appends(self) -> TableAppends:
        """Appends of the table's versions."""
        ...
