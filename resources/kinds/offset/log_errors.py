"""The errors of a log that is not what a dataflow needs, with the commands that help.

See docs/reference/offsets.md, When the log is not what it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.offset.commits import Commit
from partitions.sources import TableSource
from partitions.sources.table import FromTime


def begins_with_snapshot(source: TableSource) -> bool:
    """Return whether a dataflow without a state begins with the rows that the table has now."""
    return source.from_ is None or source.from_ == "snapshot"


def log_error(
    dataflow: Dataflow, message: str, code: str, *, in_first_read: bool, is_begun: bool = True
) -> NeedsDecision:
    """Return the error for a log that does not continue where it was read up to.

    Nobody can pass over the rest of a first read: nothing tells its rows.

    Args:
        dataflow: the definition.
        message: what was expected and found.
        code: ``versions_gone`` or ``source_replaced``.
        in_first_read: whether the first read is not done.
        is_begun: whether there is a position; else a decision has nothing to go on from.
    """
    name = dataflow.name
    if not is_begun:
        return NeedsDecision(
            f"dataflow {name}: {message}. Nothing was read. Set source.from: snapshot, which begins with the rows that the table has now",
            code=code,
        )
    if in_first_read:
        return NeedsDecision(
            f"dataflow {name}: {message}. The first read is not done, and the rest of it is gone. Load the table as it is now with"
            " `state reset --replace`",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
    accepts = (
        "the rows of another table are read as new ones"
        if code == "source_replaced"
        else "the missing commits are never read"
    )
    anew = "load the table as it is now with `state reset --replace`"
    choices = [f"strandline state accept {name} --reason TEXT"]
    assert isinstance(dataflow.source, TableSource)
    if begins_with_snapshot(dataflow.source):
        choices.append(f"strandline state reset {name} --replace --reason TEXT")
    else:
        anew = f"set source.from: snapshot and {anew}"
    return NeedsDecision(
        f"dataflow {name}: {message}. Nothing was read. Go on with `state accept`: {accepts}; or {anew}",
        code=code,
        choices=tuple(choices),
    )


def several_rows_error(dataflow: Dataflow, words: str) -> NeedsDecision:
    """Return the error for a key that a slice changes and that has several rows in the table above.

    Args:
        dataflow: the definition.
        words: what the slice reads, for people.
    """
    name, keys = dataflow.name, ", ".join(dataflow.target.merge_keys)
    return NeedsDecision(
        f"dataflow {name}: expected one row of each {keys} (target.merge_keys) in table {dataflow.source.label}, since on_change: apply finds by it the row that"
        f" was updated or deleted; found several rows of a value that {words} changes. Nothing of it was loaded. Give target.merge_keys"
        " that tell the rows apart, or delete the surplus rows there, and load the table as it is now with `state reset --replace`; or set"
        " source.on_change: skip, and go on with `state accept`",
        code="source_keys_not_unique",
        choices=(
            f"strandline state reset {name} --replace --reason TEXT",
            f"strandline state accept {name} --reason TEXT",
        ),
    )


def start_gone(dataflow: Dataflow, source: TableSource, commits: Sequence[Commit]) -> NeedsDecision:
    """Return the error for a start that the log does not have."""
    start = source.from_
    text = (
        f"a commit at or before {start.time.isoformat()}"
        if isinstance(start, FromTime)
        else f"version {start}"
    )
    first = f"{commits[0].position.words} to {commits[-1].position.words}" if commits else "no commit"
    return NeedsDecision(
        f"dataflow {dataflow.name}: expected {text} (source.from) in the log of table {source.label}, found {first}. Set source.from to"
        " one of these, or to snapshot, earliest or latest",
        code="versions_gone",
    )
