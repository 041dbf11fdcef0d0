"""Why a replay aside cannot be promoted as it is; each error has the ways on (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from partitions.errors import NeedsDecision
from resources.replay.isolated.standing import Aside, drop_command, replay_command
from resources.watermarks.entry import Entry


def never_loaded(aside: Aside) -> NeedsDecision:
    """The error if the next run loads all that the replay has read."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: expected rows of {aside.words} at or below the watermark, found none: the next run loads every row of {aside.table}, and would"
        " add it once more. Run it, and drop the replay",
        code="nothing_loaded",
        choices=(f"strandline run {aside.dataflow}", drop_command(aside)),
    )


def without_chunks(aside: Aside) -> NeedsDecision:
    """The error if nothing lay in the range when the replay began."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: expected chunks of {aside.words} in the replay into {aside.table}, found none: the source had nothing in this range when the replay"
        " began. Drop it, and replay a range that has some",
        code="nothing_to_promote",
        choices=(drop_command(aside),),
    )


def again_refused(aside: Aside, what: str) -> NeedsDecision:
    """The error if rows of the range may be newer in the live table."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: {what} has loaded or replaced rows of {aside.words} again since the replay into {aside.table} began, and a promote would put older"
        " ones in their place. Drop it, and replay again; or end the range below what runs read again",
        code="range_loaded_again",
        choices=(drop_command(aside), replay_command(aside)),
    )


def moved_refused(aside: Aside, entry: Entry) -> NeedsDecision:
    """The error if a decision has moved the watermark beyond rows that the replay has read and no run has."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: entry {entry.number} ({entry.why}) has moved the watermark since the replay into {aside.table} began, so nothing tells which"
        f" rows of {aside.words} runs have loaded since. Drop it, and replay again; or end the range where the watermark stood",
        code="range_loaded_again",
        choices=(drop_command(aside), replay_command(aside)),
    )


def stopped(aside: Aside) -> NeedsDecision:
    """The error of a replay that ends while it is read."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: the replay into {aside.table} was dropped or promoted while it was read. Replay again if its rows are needed",
        code="replay_dropping",
        choices=(replay_command(aside),),
    )


def changed_aside(aside: Aside, error: NeedsDecision) -> NeedsDecision:
    """The error if the table aside is no longer what the replay has made."""
    return NeedsDecision(
        f"dataflow {aside.dataflow}: expected table {aside.table} as the replay has left it, found another: {_own_name(aside, error)}. Drop it, and replay again",
        code="aside_changed",
        choices=(drop_command(aside), replay_command(aside)),
    )


def _own_name(aside: Aside, error: NeedsDecision) -> str:
    return (
        error.message.replace(aside.log, aside.dataflow)
        .removeprefix(f"dataflow {aside.dataflow}: ")
        .rstrip(" .")
    )
