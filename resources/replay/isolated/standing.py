"""What is known of a replay aside: one object beside the live log, and a log of its own (docs/reference/replay.md, Isolated).

The object is put before anything else and removed last but for marks, so whatever dies, the same command finds what is left.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from partitions.column.predicates import format_bound
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.replay.chunks import Chunk, chunks
from partitions.sentinels import deserialise
from resources.replay.options import ReplayOptions
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

REPLAYS = "replays"
"""The folder of the objects, beside the live log."""

MARKS = "marks"
"""The folder of what has become of a replay, beside its own log."""

Mark = Literal["complete", "promoting", "dropping"]

BESIDE = "_bad_records"
"""After the name of a table: that of records that do not parse."""

_MOST = 1000

_PARTS = {"path": "partitions", "window": "windows"}


class Aside(StoredRecord):
    """A replay into a table aside.

    Attributes:
        id: random; no two replays have the same, also of one table.
        dataflow: whose rows it reads.
        kind: of its watermark.
        table: ``<layer>/<name>``.
        request: what was asked for, as it was written: start, end, every, column.
        column: that bounds the range; None of files and windows, whose chunks are stored (``resources.replay.isolated.chunks``).
        interval: of chunks of a column, one unit and how many of it; None: one chunk.
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text: of the column's type, partition folders, or times.
        number: of the live flow's newest entry when it began; 0 without one.
        watermark: of that entry.
        definition: what decides which rows it has.
        time: when it began, ISO in UTC.
    """

    id: str
    dataflow: str
    kind: str
    table: str
    request: dict[str, str]
    column: str | None = None
    interval: dict[str, int] | None = None
    range: str
    number: int
    watermark: str
    definition: dict[str, Any]
    time: str

    @property
    def log(self) -> str:
        """The name that its own log has: of no dataflow, and of no other replay."""
        return f"{self.dataflow}~{self.id[:16]}"

    @property
    def options(self) -> ReplayOptions:
        """What was asked for."""
        request = self.request
        return ReplayOptions(
            request["start"], request["end"], self.table, request.get("every"), request.get("column")
        )

    @property
    def began(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.time)

    @property
    def rows(self) -> Chunk:
        """The range of a column that it reads, as one chunk."""
        assert self.column is not None
        bounds = deserialise(self.range)
        return Chunk(self.column, bounds["lower"], bounds["upper"])

    @property
    def words(self) -> str:
        """The range for people."""
        if self.column is not None:
            return self.rows.words
        bounds = deserialise(self.range)
        return f"{_PARTS[self.kind]} from {format_bound(bounds['lower'])} to {format_bound(bounds['upper'])}"

    @property
    def column_chunks(self) -> tuple[Chunk, ...]:
        """The chunks that the range of a column is cut into."""
        rows = self.rows
        return chunks(rows.column, rows.lower, rows.upper, self.interval)

    def intent_id(self, number: int) -> str:
        """Return the id of the intent by which a promote takes a number: it tells the promote's entry from any other's."""
        return f"{number:08x}{self.id[8:]}"

    def of(self, dataflow: Dataflow) -> Dataflow:
        """Return the dataflow that loads it: the live one's rows into the table aside, under a log and a hold of its own."""
        target = dataflow.target.model_copy(update={"table": self.table, "shared": False})
        return dataflow.model_copy(update={"name": self.log, "target": target})


def names_of(table: str) -> tuple[str, str]:
    """Return the tables that a replay into a table makes: that, and one of records that do not parse."""
    return table, f"{table}{BESIDE}"


def put_aside(log: WatermarkLog, aside: Aside) -> Aside:
    """Put a replay, unless one into the same table is there; return the one that is."""
    log.put_object(aside.dataflow, REPLAYS, _name(aside.table), aside.to_bytes())
    return stored_aside(log, aside) or aside


def stored_aside(log: WatermarkLog, aside: Aside) -> Aside | None:
    """Return the replay of the same dataflow into the same table that stands now; None if there is none."""
    data = log.get_object(aside.dataflow, REPLAYS, _name(aside.table))
    what = f"replay of {aside.dataflow} into {aside.table}"
    return None if data is None else read_record(Aside, data, what)


def find_aside(log: WatermarkLog, dataflow: str, table: str) -> Aside:
    """Return a replay into a table.

    Raises:
        ConfigurationError: there is none.
    """
    asides = {aside.table: aside for aside in stored_asides(log, dataflow)}
    if table not in asides:
        known = ", ".join(asides) or "there is none"
        raise ConfigurationError(
            f"dataflow {dataflow}: expected the table of a replay that stands aside ({known}), found {table}. One that was promoted or dropped is gone; the history"
            " shows promotes",
            choices=(f"strandline state history {dataflow}",),
        )
    return asides[table]


def stored_asides(log: WatermarkLog, dataflow: str) -> list[Aside]:
    """Return all replays of a dataflow that stand aside, by table."""
    names = log.names(dataflow, REPLAYS, _MOST)
    found = (log.get_object(dataflow, REPLAYS, name) for name in names)
    return [read_record(Aside, data, f"replay {name} of {dataflow}") for name, data in zip(names, found, strict=True) if data]  # fmt: skip


def mark(log: WatermarkLog, aside: Aside, word: Mark) -> None:
    """Note what has become of a replay; it stays."""
    log.put_object(aside.log, MARKS, word, b"")


def is_marked(log: WatermarkLog, aside: Aside, word: Mark) -> bool:
    """Return whether it was noted."""
    return log.get_object(aside.log, MARKS, word) is not None


def withdraw(log: WatermarkLog, aside: Aside) -> None:
    """Remove what tells of a replay, and its marks."""
    log.delete(aside.dataflow, REPLAYS, [_name(aside.table)])
    log.delete(aside.log, MARKS, log.names(aside.log, MARKS, _MOST))


def replay_command(aside: Aside) -> str:
    """Return the command that goes on with a replay, or begins it again once it was dropped."""
    return aside.options.command(aside.dataflow)


def drop_command(aside: Aside) -> str:
    """Return the command that drops a replay."""
    return f"strandline drop {aside.dataflow} {aside.table} --reason TEXT"


def _name(table: str) -> str:
    return f"{table.replace('/', '.')}.json"
