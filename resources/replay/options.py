"""What a user asks a replay for, and whether the dataflow can be asked for it (docs/reference/replay.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import Instant
from partitions.replay.every import parse_interval
from partitions.request import WorkUnitSelection


@dataclass(frozen=True)
class ReplayOptions:
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
        options = {"start": self.start, "end": self.end, "every": self.every, "column": self.column}
        return {name: text for name, text in options.items() if text is not None}

    @property
    def words(self) -> str:
        """All of it as options of the command: of a replay in place it tells its entries from those of others."""
        options = [f"--{name} {quote(text)}" for name, text in self.request.items()]
        flags = [("--save-watermark", self.save_watermark), ("--replace", self.replace)]
        return " ".join([*options, *(flag for flag, is_set in flags if is_set)])

    def command(self, name: str) -> str:
        """Return the command that asks a dataflow for it."""
        into = [] if self.table is None else [f"--into {quote(self.table)}"]
        return " ".join(["strandline replay", name, self.words, *into])

    @property
    def interval(self) -> dict[str, int] | None:
        """Of the chunks."""
        return parse_interval(self.every) if self.every is not None else None


@dataclass(frozen=True, kw_only=True)
class ChosenPartitions(ReplayOptions):
    """Partitions that were chosen in Dagster: from the first to the last key, but only these.

    Attributes:
        part: their windows and units.
        launched: which backfill, or which run, asks for them.
    """

    part: WorkUnitSelection
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


def requested_partitions(dataflow: Dataflow, options: ReplayOptions) -> tuple[str, str]:
    """Return the partition folders of a path watermark that are asked for: the first, and the one that ends them.

    Raises:
        ConfigurationError: they are not in byte order, or something else is asked for that files do not have.
    """
    _refuse_chunks(dataflow, options, "files have no chunks but those of checkpoint")
    start, end = options.start.strip("/"), options.end.strip("/")
    if start >= end:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end in byte order, found start {options.start} and end {options.end}"
        )
    return start, end


def requested_windows(dataflow: Dataflow, options: ReplayOptions, now: datetime) -> tuple[int, int]:
    """Return the instants of a window watermark that are asked for, epoch milliseconds; a text without a zone is in that of the definition.

    Raises:
        ConfigurationError: they are no instants, the first is not below the other, or something else is asked for that windows do not have.
    """
    _refuse_chunks(dataflow, options, "windows are read as they are")
    if dataflow.window.time_entry is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected windows of time, found none: each run reads all of the source"
        )
    zone = dataflow.window.zone
    lower, upper = (Instant.parse(text, zone).at(now) for text in (options.start, options.end))
    if lower >= upper:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end, found start {options.start} and end {options.end}"
        )
    return lower, upper


def _refuse_chunks(dataflow: Dataflow, options: ReplayOptions, why: str) -> None:
    values = {
        "--every": options.every,
        "--column": options.column,
        "--save-watermark": options.save_watermark,
    }
    for option, value in values.items():
        if value:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected no {option} beside a watermark of type {dataflow.kind}, found it: {why}"
            )
