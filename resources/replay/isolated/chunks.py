"""The chunks of an isolated replay, and which are done.

A column's chunks follow from its bounds and its state; other chunks are stored beside the replay's log.
"""

from __future__ import annotations

import json
from typing import Any

from partitions.replay.chunks import chunks_above
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.standing import IsolatedReplay, is_marked
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

_FOLDER, _NAME = "chunks", "chunks.json"
_DONE = "chunks_done"
_MAX_CHUNKS = 10_000_000


class StoredChunks(StoredRecord):
    """The chunks of a replay as they are stored.

    Attributes:
        chunks: the chunks, in order.
        warnings: warnings about the range, such as files that are missing at the source.
    """

    chunks: tuple[ReplayChunk, ...] = ()
    warnings: tuple[str, ...] = ()


def put_chunks(log: WatermarkLog, isolated: IsolatedReplay, parts: StoredChunks) -> None:
    """Store the chunks of a new replay; chunks that are already stored stay."""
    log.put_object(isolated.log, _FOLDER, _NAME, parts.to_bytes())


def stored_chunks(log: WatermarkLog, isolated: IsolatedReplay) -> StoredChunks | None:
    """Return the stored chunks; None if none are stored yet."""
    data = log.get_object(isolated.log, _FOLDER, _NAME)
    what = f"chunks of the replay of {isolated.dataflow} into {isolated.table}"
    return None if data is None else read_record(StoredChunks, data, what)


def chunks_of(log: WatermarkLog, isolated: IsolatedReplay) -> tuple[ReplayChunk, ...]:
    """Return all chunks, in order; none while they are not known yet."""
    if isolated.column is None:
        return (stored_chunks(log, isolated) or StoredChunks()).chunks
    return tuple(ReplayChunk.of(chunk.lower, chunk.upper) for chunk in isolated.column_chunks)


def remaining_chunks(log: WatermarkLog, isolated: IsolatedReplay) -> tuple[ReplayChunk, ...]:
    """Return the chunks that are still to be read.

    For a column these are the chunks that end above the newest one with rows, since nothing records empty
    ones.
    """
    if is_marked(log, isolated, "complete"):
        return ()
    chunks = chunks_of(log, isolated)
    if isolated.column is None:
        done = set(log.names(isolated.log, _DONE, _MAX_CHUNKS))
        return tuple(chunk for number, chunk in enumerate(chunks) if _done(number) not in done)
    newest = log.newest(isolated.log)
    remaining_column_chunks = chunks_above(isolated.column_chunks, newest.state() if newest else None)
    return chunks[len(chunks) - len(remaining_column_chunks) :]


def note_done(log: WatermarkLog, isolated: IsolatedReplay, number: int) -> None:
    """Record that a chunk is done; for a column its state records it."""
    if isolated.column is None:
        log.put_object(isolated.log, _DONE, _done(number), b"")


def first_missing(log: WatermarkLog, isolated: IsolatedReplay) -> str:
    """Return the bounds of the first chunk that is not done, for people."""
    remaining_ = remaining_chunks(log, isolated) or chunks_of(log, isolated)[-1:]
    return remaining_[0].words if remaining_ else "1"


def isolated_json(log: WatermarkLog, isolated: IsolatedReplay) -> dict[str, Any]:
    """Return a replay in the public JSON form (docs/reference/cli.md)."""
    bounds = json.loads(isolated.range)
    chunks = chunks_of(log, isolated)
    return {
        "table": isolated.table,
        "lower": bounds["lower"],
        "upper": bounds["upper"],
        "chunks": len(chunks),
        "done": len(chunks) - len(remaining_chunks(log, isolated)),
        "complete": is_marked(log, isolated, "complete"),
    }


def _done(number: int) -> str:
    return f"{number:07d}"
