"""The chunks of a replay aside, and which of them are done: of a column its bounds and its state tell, else they are stored beside its log."""

from __future__ import annotations

import json
from typing import Any

from partitions.replay.chunks import chunks_above
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.standing import Aside, is_marked
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

_FOLDER, _NAME = "chunks", "chunks.json"
_DONE = "chunks_done"
_MOST = 10_000_000


class Parts(StoredRecord):
    """The chunks of a replay as they are stored.

    Attributes:
        chunks: in order.
        warnings: what there is to say of them, such as which files are gone at the source.
    """

    chunks: tuple[ReplayChunk, ...] = ()
    warnings: tuple[str, ...] = ()


def put_parts(log: WatermarkLog, aside: Aside, parts: Parts) -> None:
    """Store the chunks of a replay that has just begun; those that are stored stay."""
    log.put_object(aside.log, _FOLDER, _NAME, parts.to_bytes())


def stored_parts(log: WatermarkLog, aside: Aside) -> Parts | None:
    """Return what is stored; None as long as nothing is."""
    data = log.get_object(aside.log, _FOLDER, _NAME)
    what = f"chunks of the replay of {aside.dataflow} into {aside.table}"
    return None if data is None else read_record(Parts, data, what)


def chunks_of(log: WatermarkLog, aside: Aside) -> tuple[ReplayChunk, ...]:
    """Return all chunks, in order; none as long as it is not known which there are."""
    if aside.column is None:
        return (stored_parts(log, aside) or Parts()).chunks
    return tuple(ReplayChunk.of(chunk.lower, chunk.upper) for chunk in aside.column_chunks)


def remaining_chunks(log: WatermarkLog, aside: Aside) -> tuple[ReplayChunk, ...]:
    """Return the chunks that are still to be read: of a column those that end above the newest one with rows, since nothing tells of empty ones."""
    if is_marked(log, aside, "complete"):
        return ()
    known = chunks_of(log, aside)
    if aside.column is None:
        done = set(log.names(aside.log, _DONE, _MOST))
        return tuple(chunk for number, chunk in enumerate(known) if _done(number) not in done)
    newest = log.newest(aside.log)
    left = chunks_above(aside.column_chunks, newest.state() if newest else None)
    return known[len(known) - len(left) :]


def note_done(log: WatermarkLog, aside: Aside, number: int) -> None:
    """Note that a chunk is done; of columns the state says it."""
    if aside.column is None:
        log.put_object(aside.log, _DONE, _done(number), b"")


def first_missing(log: WatermarkLog, aside: Aside) -> str:
    """Return the first chunk that is not done, for people."""
    left = remaining_chunks(log, aside) or chunks_of(log, aside)[-1:]
    return left[0].words if left else "1"


def aside_json(log: WatermarkLog, aside: Aside) -> dict[str, Any]:
    """Return a replay in the public JSON form (docs/reference/cli.md)."""
    bounds = json.loads(aside.range)
    known = chunks_of(log, aside)
    return {
        "table": aside.table,
        "lower": bounds["lower"],
        "upper": bounds["upper"],
        "chunks": len(known),
        "done": len(known) - len(remaining_chunks(log, aside)),
        "complete": is_marked(log, aside, "complete"),
    }


def _done(number: int) -> str:
    return f"{number:07d}"
