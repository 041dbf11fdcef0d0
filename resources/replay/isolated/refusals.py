"""The errors for isolated replays that cannot be promoted; each names the remedies.

See docs/reference/replay.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.errors import NeedsDecision, strip_dataflow
from partitions.spelling import first_few
from resources.replay.isolated.standing import IsolatedReplay, drop_command, replay_command
from resources.watermarks.entry import Entry

_NAMED = 3


def never_loaded(isolated: IsolatedReplay) -> NeedsDecision:
    """Return the error if the next run loads all rows of the replay."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: expected rows of {isolated.words} at or below the watermark, found none: the next run loads every row of {isolated.table}, and would"
        " add it once more. Run the dataflow, and drop the replay",
        code="nothing_loaded",
        choices=(f"strandline run {isolated.dataflow}", drop_command(isolated)),
    )


def only_copies(isolated: IsolatedReplay, copies: Sequence[str]) -> NeedsDecision:
    """Return the error if the live table has the content of all files of the replay."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: expected files of {isolated.words} whose content is not in the table, found only copies of loaded files: {first_few(copies, _NAMED)}. Drop the replay",
        code="nothing_to_promote",
        choices=(drop_command(isolated),),
    )


def without_chunks(isolated: IsolatedReplay) -> NeedsDecision:
    """Return the error if the range was empty when the replay began."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: expected chunks of {isolated.words} in the replay into {isolated.table}, found none: the source had no files or windows in this range when the"
        " replay began. Drop the replay, and choose another range",
        code="nothing_to_promote",
        choices=(drop_command(isolated),),
    )


def nothing_read(isolated: IsolatedReplay) -> NeedsDecision:
    """Return the error if the replay has read none of its windows."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: expected windows of {isolated.words} that the replay into {isolated.table} has read, found none: their units or windows were no longer"
        " declared when it came to them. Drop the replay",
        code="nothing_to_promote",
        choices=(drop_command(isolated),),
    )


def range_loaded_again(isolated: IsolatedReplay, what: str) -> NeedsDecision:
    """Return the error if the live table may hold newer rows of the range."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: {what} loaded rows of {isolated.words} again after the replay into {isolated.table} began, and a promote would replace them with older"
        " ones. Drop the replay, and replay again; or end the range below the rows that runs read again",
        code="range_loaded_again",
        choices=(drop_command(isolated), replay_command(isolated)),
    )


def watermark_moved(isolated: IsolatedReplay, entry: Entry) -> NeedsDecision:
    """Return the error if a decision has moved the watermark past rows that only the replay has read."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: entry {entry.number} ({entry.why}) moved the watermark after the replay into {isolated.table} began, so it is unknown which"
        f" rows of {isolated.words} runs have loaded since. Drop the replay, and replay again; or end the range at the earlier watermark",
        code="range_loaded_again",
        choices=(drop_command(isolated), replay_command(isolated)),
    )


def dropped_while_read(isolated: IsolatedReplay) -> NeedsDecision:
    """Return the error for a replay that was dropped or promoted while it was read."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: the replay into {isolated.table} was dropped or promoted while it ran. Replay again if you need its rows",
        code="replay_dropping",
        choices=(replay_command(isolated),),
    )


def table_changed(isolated: IsolatedReplay, error: NeedsDecision) -> NeedsDecision:
    """Return the error if another writer has changed the isolated table."""
    return NeedsDecision(
        f"dataflow {isolated.dataflow}: expected table {isolated.table} as the replay wrote it, found changes: {_own_name(isolated, error)}. Drop the replay, and replay again",
        code="aside_changed",
        choices=(drop_command(isolated), replay_command(isolated)),
    )


def _own_name(isolated: IsolatedReplay, error: NeedsDecision) -> str:
    message = error.message.replace(isolated.log, isolated.dataflow)
    return strip_dataflow(isolated.dataflow, message).rstrip(" .")
