"""What a user asks a replay for, and whether the dataflow can be asked for it (docs/replay.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import Instant
from partitions.replay.every import interval_of
from partitions.request import Part


@dataclass(frozen=True)
class Asked:
    """What a user asks for, as it is written.

    Attributes:
        start: inclusive.
        end: exclusive.
        table: ``<layer>/<name>`` aside; None: in place.
        every: the interval of the chunks; None: one chunk.
        column: that is cut; None: the first watermark column.
        save_watermark: in place: whether the watermark is raised to the end of each chunk that has rows.
        replace: in place: whether rows of a chunk that are in the table go in the commit that loads it, whatever the load.
    """

    start: str
    end: str
    table: str | None = None
    every: str | None = None
    column: str | None = None
    save_watermark: bool = False
    replace: bool = False

    @property
    def is_isolated(self) -> bool:
        """Whether the rows go into a table of their own."""
        return self.table is not None

    @property
    def request(self) -> dict[str, str]:
        """The range, as it is kept."""
        given = {"start": self.start, "end": self.end, "every": self.every, "column": self.column}
        return {name: text for name, text in given.items() if text is not None}

    @property
    def words(self) -> str:
        """All of it as options of the command: of a replay in place it tells its entries from those of others."""
        options = [f"--{name} {quote(text)}" for name, text in self.request.items()]
        flags = [("--save-watermark", self.save_watermark), ("--replace", self.replace)]
        return " ".join([*options, *(flag for flag, given in flags if given)])

    def command(self, name: str) -> str:
        """Return the command that asks a dataflow for it."""
        into = [] if self.table is None else [f"--into {quote(self.table)}"]
        return " ".join(["strandline replay", name, self.words, *into])

    @property
    def interval(self) -> dict[str, int] | None:
        """Of the chunks."""
        return interval_of(self.every) if self.every is not None else None


@dataclass(frozen=True, kw_only=True)
class AskedPartitions(Asked):
    """Partitions that were chosen in Dagster: from the first to the last key, but only these.

    Attributes:
        part: their windows and units.
        launched: which backfill, or which run, asks for them.
    """

    part: Part
    launched: str

    @property
    def words(self) -> str:
        """Who asks: another one for the same partitions is another request."""
        return self.launched


@contextmanager
def naming(dataflow: Dataflow) -> Iterator[None]:
    """Have an error of the chunks say which dataflow they are of: several may be asked for at once."""
    try:
        yield
    except ConfigurationError as error:
        error.args = (f"dataflow {dataflow.name}: {error.message}",)
        raise


def asked_partitions(dataflow: Dataflow, asked: Asked) -> tuple[str, str]:
    """Return the partition folders of a path watermark that are asked for: the first, and the one that ends them.

    Raises:
        ConfigurationError: they are not in byte order, or something else is asked for that files do not have.
    """
    _refuse_chunks(dataflow, asked, "files have no chunks but those of checkpoint")
    start, end = asked.start.strip("/"), asked.end.strip("/")
    if start >= end:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end in byte order, found start {asked.start} and end {asked.end}"
        )
    return start, end


def asked_windows(dataflow: Dataflow, asked: Asked, now: datetime) -> tuple[int, int]:
    """Return the instants of a window watermark that are asked for, epoch milliseconds; a text without a zone is in that of the definition.

    Raises:
        ConfigurationError: they are no instants, the first is not below the other, or something else is asked for that windows do not have.
    """
    _refuse_chunks(dataflow, asked, "windows are read as they are")
    if dataflow.window.time_entry is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected windows of time, found none: each run reads all of the source"
        )
    zone = dataflow.window.zone
    lower, upper = (Instant.parse(text, zone).at(now) for text in (asked.start, asked.end))
    if lower >= upper:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end, found start {asked.start} and end {asked.end}"
        )
    return lower, upper


def _refuse_chunks(dataflow: Dataflow, asked: Asked, why: str) -> None:
    given = {
        "--every": asked.every,
        "--column": asked.column,
        "--save-watermark": asked.save_watermark,
    }
    for option, value in given.items():
        if value:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected no {option} beside a watermark of type {dataflow.kind}, found it: {why}"
            )
