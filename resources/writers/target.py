"""What the loop asks of a target, whatever its format (spec 05, The commit protocol)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Tag:
    """What makes a commit idempotent and recognisable.

    Attributes:
        app_id: the dataflow's random id.
        number: the number of the slice.
        owner: the id of the intent, or of the give-up, that the commit belongs to.
        gives_up: whether the commit only fences the number, so that no writer that may still run can take it.
        after: the commit of the table that the state before was true of; None where that state says nothing of rows.
        rewound: whether rows above the state after it are in the table, and make room when they are loaded again.
    """

    app_id: str
    number: int
    owner: str
    gives_up: bool = False
    after: TableCommit | None = None
    rewound: bool = False


@dataclass(frozen=True)
class TableCommit:
    """A commit of a table as the watermark log records it: enough to tell whether the table still has it.

    Attributes:
        version: the table's version; None: there was no table.
        id: of the intent or give-up that made the commit; of a commit of somebody else a hash of its text. None: not known.
        number: the highest under the dataflow's tag up to that commit; 0 if there is none.
        file: name of a data file that it added, which tells that it was not undone once it is cleaned from the table's log; None if it
            added none.
    """

    version: int | None
    id: str | None = None
    number: int = 0
    file: str | None = None


@dataclass(frozen=True)
class Landed:
    """A commit that carries a number under a dataflow's tag.

    Attributes:
        owner: the intent or give-up that it belongs to; None if its text is gone or not Strandline's.
        gives_up: whether it is a give-up's.
        version: the table's version.
        rows: rows written by it, as the commit itself counted them; those that it only moved are not among them.
        removed: rows that it deleted; None if all of the table's.
        bytes: bytes written by it.
        number: the number.
        uncounted: whether only the table before and after the commit tells how many rows it deleted.
        file: name of a data file that it added; None if it added none.
    """

    owner: str | None
    version: int
    rows: int
    bytes: int
    gives_up: bool = False
    removed: int | None = 0
    number: int = 0
    uncounted: bool = False
    file: str | None = None

    @property
    def commit(self) -> TableCommit:
        """As the watermark log records it."""
        return TableCommit(self.version, self.owner, self.number, self.file)


@dataclass(frozen=True)
class Room:
    """Rows that are deleted in the commit that writes others.

    Attributes:
        where: Spark SQL over the table's columns, which the rows that are written must fit, too; None is all rows of the table.
    """

    where: str | None


@dataclass(frozen=True)
class TableHead:
    """What a table's log says, compared with what the watermark log has recorded of it.

    Attributes:
        newest: the newest commit; None if there is no table.
        kept: whether the recorded commit is still part of the table; where it was cleaned from the log, the tag tells.
        cleaned: whether commits after the recorded one were cleaned from the table's log.
        tag: the highest number under the dataflow's tag, as far as the commits that were read tell; of the whole table where the recorded
            commit was not kept, or was cleaned.
        landed: the commits under the dataflow's tag after the recorded one, oldest first.
        undone: a commit of somebody else after the recorded one that put all rows aside, for people; None if there is none, or if a RESTORE
            has brought back the rows of the recorded commit, and of those after it under the dataflow's tag.
        rewritten: whether the recorded commit was cleaned from the table's log and the file that it added is in the table no more.
        tags_expire: the table property by which tags are forgotten; None if it is not set.
    """

    newest: TableCommit | None
    kept: bool = True
    cleaned: bool = False
    tag: int = 0
    landed: tuple[Landed, ...] = ()
    undone: str | None = None
    rewritten: bool = False
    tags_expire: str | None = None

    @property
    def version(self) -> int | None:
        """The newest version; None if there is no table."""
        return self.newest.version if self.newest else None

    def find(self, number: int) -> Landed | None:
        """The commit that carries a number; None if none of those that were read does."""
        return next((one for one in reversed(self.landed) if one.number == number), None)


@dataclass(frozen=True)
class Adopted:
    """What a table tells of the state that it was written with.

    Attributes:
        state: sentinel JSON text of the watermark of the newest commit whose rows, and those of all commits before it, are in the table;
            None where there is no such commit any more.
        app_id: the dataflow's id in the table's tags; None where no commit tells.
        number: that the commit carries.
        owner: the intent that it belongs to.
        beyond: whether the table may hold rows of ours that the state knows nothing of.
        rewound: whether it holds rows above the state that make room when they are loaded again, as the intent's entry says, too.
    """

    state: str | None
    app_id: str | None
    number: int = 0
    owner: str | None = None
    beyond: bool = False
    rewound: bool = False


class Target(Protocol):
    """One table. Nothing but ``write``, ``no_rows`` and ``prepare_next`` starts Spark."""

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it.

        Args:
            recorded: the commit that the table must have; None if nothing was recorded yet.
            app_id: the dataflow's, whose tags are looked for.
        """
        ...

    def tip(self, app_id: str | None) -> TableHead:
        """What the table is now, whatever was recorded of it: the newest commit, and the highest number under the dataflow's tag."""
        ...

    def has_data(self) -> bool:
        """Whether the table holds rows, whoever wrote them, or remembers a tag."""
        ...

    def counted(self, landed: Landed, before: int) -> Landed:
        """The commit with all of its counts.

        Args:
            landed: the commit.
            before: rows of the table before it, as far as the watermark log knows.
        """
        ...

    def tag(self, app_id: str) -> int:
        """The highest number under an app id that the whole table knows; 0 if it knows none."""
        ...

    def write(
        self, df: DataFrame, tag: Tag, metadata: str, *, new: bool = True, room: Room | None = None
    ) -> None:
        """Append all rows in one commit that carries the tag; of several with one tag only one commits.

        Args:
            df: the rows.
            tag: of the commit.
            metadata: the state after it.
            new: whether the table may have to be made: its layout is taken then.
            room: which rows are deleted in the same commit; None deletes none. Where that is all rows, the table's columns and layout
                become those of ``df``.
        """
        ...

    def no_rows(self, spark: SparkSession) -> DataFrame:
        """No rows, of the columns that the table has."""
        ...

    def prepare_next(self, spark: SparkSession) -> None:
        """Have the engine do now what the next write would do first. Changes nothing; the caller waits for it or not."""
        ...
