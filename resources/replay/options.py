"""The options of a replay, and the checks that a dataflow supports them (docs/reference/replay.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, name_dataflow
from partitions.path.gone import GoneFiles
from partitions.replay.column_bounds import arrival_range
from partitions.replay.every import parse_interval
from partitions.request import WorkUnitSelection
from partitions.window.asked_windows import parse_bound
from resources.kinds.contract.lost_rows import DeletedRows

_NO_CHUNKS = "files have no chunks but those of checkpoint"


@dataclass(frozen=True)
class ReplayOptions:
    """The options as the user typed them.

    Attributes:
        start: the start of the range, inclusive.
        end: the end of the range, exclusive.
        table: the isolated table, ``<layer>/<name>``; None: in place.
        every: the interval of the chunks; None: one chunk.
        column: the column that bounds the range; None: the first watermark column.
        save_watermark: in place: whether the watermark is raised to the end of each chunk that has rows.
        replace: in place: whether the commit that loads a chunk deletes its earlier rows, whatever the
            load.
        by: of files: ``arrival`` chooses them by their time; None: by folder, or by ``column``.
        deleted: ``load`` if rows that others deleted from the table may come back.
        gone_files: files alone: what becomes of the rows of files that are gone at the source; None: not said.
    """

    start: str
    end: str
    table: str | None = None
    every: str | None = None
    column: str | None = None
    save_watermark: bool = False
    replace: bool = False
    by: str | None = None
    gone_files: GoneFiles | None = None
    deleted: DeletedRows | None = None

    @property
    def is_isolated(self) -> bool:
        """Whether the rows go into a table of their own."""
        return self.table is not None

    @property
    def request(self) -> dict[str, str]:
        """The range, as it is stored."""
        options = {
            "start": self.start,
            "end": self.end,
            "every": self.every,
            "column": self.column,
            "by": self.by,
            "gone": self.gone_files,
        }
        return {name: text for name, text in options.items() if text is not None}

    @property
    def words(self) -> str:
        """The options as a text, which identifies the entries of a replay in place."""
        options = [f"--{name} {quote(text)}" for name, text in self.request.items() if name != "gone"]
        flags = {
            "--save-watermark": self.save_watermark,
            "--replace": self.replace,
            f"--gone {self.gone_files}": self.gone_files,
            f"--deleted {self.deleted}": self.deleted,
        }
        return " ".join([*options, *(flag for flag, is_set in flags.items() if is_set)])

    def command(self, name: str) -> str:
        """Return the command that replays a dataflow with these options."""
        into = [] if self.table is None else [f"--into {quote(self.table)}"]
        return " ".join(["strandline replay", name, self.words, *into])

    @property
    def interval(self) -> dict[str, int] | None:
        """The interval of the chunks."""
        return parse_interval(self.every) if self.every is not None else None


@dataclass(frozen=True, kw_only=True)
class ChosenPartitions(ReplayOptions):
    """Partitions chosen in Dagster: from the first to the last key, but only the chosen ones.

    Attributes:
        part: their windows and units.
        launched: the backfill or run that requests them.
    """

    part: WorkUnitSelection
    launched: str

    @property
    def words(self) -> str:
        """The requester; the same partitions from another requester are another request."""
        return self.launched


@contextmanager
def name_dataflow_in_errors(dataflow: Dataflow) -> Iterator[None]:
    """Prefix a ConfigurationError of the block with the dataflow's name.

    Several dataflows may be requested at once.
    """
    try:
        yield
    except ConfigurationError as error:
        error.args = (name_dataflow(dataflow.name, error.message),)
        raise


def requested_arrival(dataflow: Dataflow, options: ReplayOptions) -> tuple[datetime, datetime]:
    """Return the requested times of arrival: the first, and the exclusive end.

    Raises:
        ConfigurationError: they are no times, or an option does not apply.
    """
    refuse_chunks(dataflow, options, _NO_CHUNKS)
    with name_dataflow_in_errors(dataflow):
        return arrival_range(options.start, options.end)


def requested_partitions(dataflow: Dataflow, options: ReplayOptions) -> tuple[str, str]:
    """Return the requested partition folders of a path watermark: the first, and the exclusive end.

    Raises:
        ConfigurationError: they are not in byte order, or an option does not apply to files.
    """
    refuse_chunks(dataflow, options, _NO_CHUNKS)
    start, end = options.start.strip("/"), options.end.strip("/")
    if start >= end:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end in byte order, found start {options.start} and end {options.end}"
        )
    return start, end


def requested_windows(dataflow: Dataflow, options: ReplayOptions, now: datetime) -> tuple[int, int]:
    """Return the requested times of a window watermark, in epoch milliseconds.

    A text without a zone is in the definition's zone.

    Raises:
        ConfigurationError: they are no times, the start is not below the end, an option does not apply to
            windows, or the windows have no time.
    """
    refuse_chunks(dataflow, options, "windows are read as they are", "column", "by")
    refuse_gone(dataflow, options)
    if dataflow.window.time_entry is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected windows of time, found none: each run reads all of the source"
        )
    zone = dataflow.window.zone
    lower, upper = (parse_bound(text, zone, now) for text in (options.start, options.end))
    if lower >= upper:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a start below the end, found start {options.start} and end {options.end}"
        )
    return lower, upper


def refuse_gone(dataflow: Dataflow, options: ReplayOptions) -> None:
    """Raise ConfigurationError if ``--gone`` is set; for dataflows whose watermark is not of files."""
    if options.gone_files is not None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected no --gone with a watermark of type {dataflow.kind}: rows of the range that the source lacks are"
            " deleted anyway"
        )


def refuse_chunks(dataflow: Dataflow, options: ReplayOptions, why: str, *others: str) -> None:
    """Raise ConfigurationError if ``--every``, ``--save-watermark`` or one of the others is set."""
    values = {"--every": options.every, "--save-watermark": options.save_watermark}
    values |= {f"--{name}": getattr(options, name) for name in others}
    for option, value in values.items():
        if value:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected no {option} with a watermark of type {dataflow.kind}: {why}"
            )
