"""A table as a source: the files that each of its versions has added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VERSION = "_strandline_version"
"""The column that says which version appended a row."""


class AppendedFile(NamedTuple):
    """A data file that a version appends.

    Attributes:
        path: as the table's log has it.
        bytes: of it.
        values: of the columns of partitions, as text; None is NULL.
    """

    path: str
    bytes: int
    values: Mapping[str, str | None]


class Mark(NamedTuple):
    """Up to where the versions of a table were read.

    Attributes:
        version: the last one.
        id: what that version had, and no other version of its number; None if it was not noted.
    """

    version: int
    id: str | None = None


class Appended(NamedTuple):
    """What one version appends.

    Attributes:
        version: its number.
        files: how many it appends; 0 if it changes no row.
        bytes: of these.
        id: what no other version of its number has.
        changes: how it changes rows that were there; None if it does not.
        whole: whether the files are all that were there by then, since older versions are not told any more.
        listed: the files, where the log lists them.
    """

    version: int
    files: int
    bytes: int
    id: str
    changes: str | None = None
    whole: bool = False
    listed: tuple[AppendedFile, ...] = ()

    @property
    def mark(self) -> Mark:
        """Where a read of it ends."""
        return Mark(self.version, self.id)


class Appends(NamedTuple):
    """What versions append.

    Attributes:
        table: id of the table, which another one at the same place does not have.
        newest: version of it.
        versions: ascending.
    """

    table: str
    newest: int
    versions: tuple[Appended, ...]


class TableAppends(Protocol):
    """The appends of one table."""

    def since(self, mark: Mark | None, until: int | None = None) -> Appends:
        """Return what each version appends. Starts no Spark.

        Args:
            mark: the version before the first; None: from the beginning.
            until: the last version; None: the newest.

        Raises:
            NeedsDecision: code ``versions_gone``: the log does not tell all of them any more; code ``source_replaced``: they do not follow the
                version that was read last, since the table was rolled back or restored.
            SourceError: there is no table, or its log cannot be read.
        """
        ...

    def version_of(self, mark: Mark) -> Version:
        """Return the version that :meth:`TableContents.read` reads up to there."""
        ...

    def mark_of(self, version: Version) -> Mark:
        """Return where a read up to a version ends: of what :meth:`version_of` returns the same mark, as far as the version tells it."""
        ...

    def rows(self, spark: SparkSession, appended: Sequence[Appended]) -> DataFrame:
        """Return the rows of these versions, with the version of each in the column ``VERSION``."""
        ...


@runtime_checkable
class TellsAppends(Protocol):
    """A format whose log tells which rows each version appends."""

    @property
    def appends(self) -> TableAppends:
        """Return what its versions append."""
        ...
