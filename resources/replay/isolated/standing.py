"""The record of an isolated replay: one object beside the live log, and a log of its own.

The object is stored first, and removed last but for the marks. So after a crash the same command finds the
rest (docs/reference/replay.md, Isolated).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, cast

from partitions.column.predicates import format_bound
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.gone import GoneFiles
from partitions.replay.chunks import Chunk, chunks
from partitions.sentinels import deserialise
from resources.replay.options import ReplayOptions
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

REPLAYS = "replays"
"""The folder of the objects, beside the live log."""

MARKS = "marks"
"""The folder of what has become of a replay, beside its own log."""

Milestone = Literal["complete", "promoting", "dropping"]

BAD_RECORDS_SUFFIX, REJECTED_SUFFIX = "_bad_records", "_rejected"
SUFFIXES = (BAD_RECORDS_SUFFIX, REJECTED_SUFFIX)
"""After the name of a table: those of records that do not parse, and of rows that failed a rule."""

_MAX_OBJECTS = 1000

_PARTS = {"path": "partitions", "window": "windows", "offset": "commits"}


class IsolatedReplay(StoredRecord):
    """A replay into an isolated table.

    Attributes:
        id: random, unique among all replays, also of one table.
        dataflow: the dataflow that it reads.
        kind: the kind of its watermark.
        table: ``<layer>/<name>``.
        request: the options as typed: start, end, every, column, by, gone.
        column: the column that bounds the range; None for files and windows, whose chunks are stored
            (``resources.replay.isolated.chunks``).
        interval: the length of a column's chunks: one time unit and its count; None for one chunk.
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text: of the column's type,
            partition folders, or times.
        number: the number of the live dataflow's newest entry when it began; 0 without one.
        watermark: that entry's watermark.
        definition: the parts of the definition that decide which rows it has.
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
        """The name of the replay's own log, which no dataflow and no other replay has."""
        return f"{self.dataflow}~{self.id[:16]}"

    @property
    def options(self) -> ReplayOptions:
        """The options that the replay was begun with."""
        request = self.request
        return ReplayOptions(
            request["start"],
            request["end"],
            self.table,
            request.get("every"),
            request.get("column"),
            by=request.get("by"),
            gone_files=cast("GoneFiles | None", request.get("gone")),
        )

    @property
    def began(self) -> datetime:
        """The time at which the replay began."""
        return datetime.fromisoformat(self.time)

    @property
    def rows(self) -> Chunk:
        """A column's range, as one chunk."""
        assert self.column is not None
        bounds = deserialise(self.range)
        return Chunk(self.column, bounds["lower"], bounds["upper"])

    @property
    def words(self) -> str:
        """The range for people."""
        if self.column is not None:
            return self.rows.words
        bounds = deserialise(self.range)
        parts = _PARTS[self.kind]
        if column := self.request.get("column"):
            parts = f"files with {column}"
        elif self.request.get("by"):
            parts = "files that arrived"
        return f"{parts} from {format_bound(bounds['lower'])} to {format_bound(bounds['upper'])}"

    @property
    def column_chunks(self) -> tuple[Chunk, ...]:
        """The chunks of a column's range."""
        rows = self.rows
        return chunks(rows.column, rows.lower, rows.upper, self.interval)

    def intent_id(self, number: int) -> str:
        """Return the id of the intent, and of the entry, that promotes the replay under a number."""
        return f"{number:08x}{self.id[8:]}"

    def loading_dataflow(self, dataflow: Dataflow) -> Dataflow:
        """Return the dataflow that loads the replay: the live one, with the replay's table, log and hold."""
        changed = {"table": self.table, "shared": False, "keep_tombstones": None}
        target = dataflow.target.model_copy(update=changed)
        return dataflow.model_copy(update={"name": self.log, "target": target})


def names_of(table: str) -> tuple[str, ...]:
    """Return the tables of a replay: the table itself, and those for its bad records and rejected rows."""
    return table, *(f"{table}{suffix}" for suffix in SUFFIXES)


def put_replay(log: WatermarkLog, isolated: IsolatedReplay) -> IsolatedReplay:
    """Store a replay, unless its table has one already; return the stored one."""
    log.put_object(isolated.dataflow, REPLAYS, _name(isolated.table), isolated.to_bytes())
    return stored_replay(log, isolated) or isolated


def stored_replay(log: WatermarkLog, isolated: IsolatedReplay) -> IsolatedReplay | None:
    """Return the stored replay of the same dataflow into the same table; None if there is none."""
    data = log.get_object(isolated.dataflow, REPLAYS, _name(isolated.table))
    what = f"replay of {isolated.dataflow} into {isolated.table}"
    return None if data is None else read_record(IsolatedReplay, data, what)


def find_replay(log: WatermarkLog, dataflow: str, table: str) -> IsolatedReplay:
    """Return the replay into a table.

    Raises:
        ConfigurationError: there is none.
    """
    replays = {isolated.table: isolated for isolated in stored_replays(log, dataflow)}
    if table not in replays:
        tables = ", ".join(replays) or "there is none"
        raise ConfigurationError(
            f"dataflow {dataflow}: expected the table of an isolated replay ({tables}), found {table}. A promoted or dropped replay has no table; the history"
            " shows promotes",
            choices=(f"strandline state history {dataflow}",),
        )
    return replays[table]


def stored_replays(log: WatermarkLog, dataflow: str) -> list[IsolatedReplay]:
    """Return all isolated replays of a dataflow, by table."""
    names = log.names(dataflow, REPLAYS, _MAX_OBJECTS)
    objects = (log.get_object(dataflow, REPLAYS, name) for name in names)
    return [read_record(IsolatedReplay, data, f"replay {name} of {dataflow}") for name, data in zip(names, objects, strict=True) if data]  # fmt: skip


def mark(log: WatermarkLog, isolated: IsolatedReplay, word: Milestone) -> None:
    """Record a milestone of a replay, until the replay is removed."""
    log.put_object(isolated.log, MARKS, word, b"")


def is_marked(log: WatermarkLog, isolated: IsolatedReplay, word: Milestone) -> bool:
    """Return whether a milestone is recorded."""
    return log.get_object(isolated.log, MARKS, word) is not None


def withdraw(log: WatermarkLog, isolated: IsolatedReplay) -> None:
    """Remove a replay's object, and its marks."""
    log.delete(isolated.dataflow, REPLAYS, [_name(isolated.table)])
    log.delete(isolated.log, MARKS, log.names(isolated.log, MARKS, _MAX_OBJECTS))


def replay_command(isolated: IsolatedReplay) -> str:
    """Return the command that continues a replay, or starts it again after a drop."""
    return isolated.options.command(isolated.dataflow)


def drop_command(isolated: IsolatedReplay) -> str:
    """Return the command that drops a replay."""
    return f"strandline drop {isolated.dataflow} {isolated.table} --reason TEXT"


def _name(table: str) -> str:
    return f"{table.replace('/', '.')}.json"
