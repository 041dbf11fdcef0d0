"""What a user asks a replay for, and whether the dataflow can be asked for it (docs/replay.md)."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.replay.chunks import Chunk, chunk_column, chunks
from partitions.replay.every import interval_of


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

    @property
    def interval(self) -> dict[str, int] | None:
        """Of the chunks."""
        return interval_of(self.every) if self.every is not None else None


def asked_chunks(dataflow: Dataflow, asked: Asked) -> tuple[Chunk, ...]:
    """Return the chunks that are asked for, with bounds typed by their text.

    Raises:
        ConfigurationError: the dataflow has no column watermark, or no such column; or as of :func:`partitions.replay.chunks.chunks`.
    """
    if dataflow.kind != "column":
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a watermark of type column, found {dataflow.kind}: others cannot be replayed"
            f" {'in place' if asked.table is None else 'aside'} yet"
        )
    column = chunk_column(asked.column, dataflow.column.columns)
    return chunks(column, asked.start, asked.end, asked.interval)
