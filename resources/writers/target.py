"""What the loop asks of a target, whatever its format (spec 05, The commit protocol)."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """

    app_id: str
    number: int
    owner: str
    gives_up: bool = False


@dataclass(frozen=True)
class Landed:
    """The commit that holds a number.

    Attributes:
        owner: whose commit it is; None where the commit's text is gone or not ours.
        gives_up: whether it is a give-up's.
        version: the table's version.
        rows: rows written by it, as the commit itself counted them; those that it only moved are not among them.
        removed: rows that made room; None where the whole table did.
        bytes: bytes written by it.
    """

    owner: str | None
    version: int
    rows: int
    bytes: int
    gives_up: bool = False
    removed: int | None = 0


@dataclass(frozen=True)
class Room:
    """Rows that are deleted in the commit that writes others.

    Attributes:
        where: Spark SQL over the table's columns, which the rows that are written must fit, too; None is all rows of the table.
    """

    where: str | None


@dataclass(frozen=True)
class TableHead:
    """What is there before a write.

    Attributes:
        version: the newest version; None where there is no table.
        tags: numbers by app id in the commits that were looked at.
        rows: whether any of these commits wrote rows.
    """

    version: int | None
    tags: dict[str, int] = field(default_factory=dict)
    rows: bool = False


@dataclass(frozen=True)
class Adopted:
    """What a table tells of the state that it was written with.

    Attributes:
        state: sentinel JSON text of the watermark.
        app_id: the dataflow's id in the table's tags; None where the commit does not tell.
    """

    state: str
    app_id: str | None


class Target(Protocol):
    """One table. ``head``, ``version`` and ``landed`` start no Spark."""

    def head(self, since: int | None) -> TableHead:
        """The newest version, and the tags of the commits after version ``since``."""
        ...

    def version(self) -> int | None:
        """The newest version; None where there is no table."""
        ...

    def landed(self, app_id: str, number: int, since: int | None) -> Landed | None:
        """The commit after version ``since`` that holds the number, if any."""
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
