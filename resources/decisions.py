"""An operator's decisions about a state: each appends an entry with its reason, nothing is edited in place (spec 02)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.loop.loop import clock
from resources.platform import Platform
from resources.watermarks.entry import Entry, Why, new_id, utc_now


def reset(platform: Platform, dataflow: Dataflow, reason: str) -> Entry:
    """Append an empty watermark; it passes the guards as a decision, and the table is left as it is.

    Raises:
        Held: while a living run works on a slice. One that a run left unfinished is given up, or appended if it was written.
        Conflict: where another writer was faster.
    """
    last = _closed(platform, dataflow, reason)
    head = platform.target(dataflow).head(None)
    return _append(
        platform,
        dataflow,
        last,
        "reset",
        reason,
        watermark="{}",
        table_version=head.version,
        total_rows=0,
        total_files=0,
        modified=None,
        pinned=None,  # the next run reads a schema anew
    )


def accept(platform: Platform, dataflow: Dataflow, reason: str) -> Entry:
    """Append the unchanged watermark under the fingerprint of the definition as it is now.

    Raises:
        ConfigurationError: where there is no state to keep.
        Held: while an unfinished slice is open.
        Conflict: where another writer was faster.
    """
    last = _closed(platform, dataflow, reason)
    if last is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: there is no state yet, so nothing to accept: a run starts it"
        )
    return _append(platform, dataflow, last, "accept", reason)


def _closed(platform: Platform, dataflow: Dataflow, reason: str) -> Entry | None:
    """The newest entry, after what a run had left open was ended: its number would be the decision's."""
    platform.loop(dataflow, clock()).close(reason)
    return platform.log.newest(dataflow.name)


def _append(
    platform: Platform, dataflow: Dataflow, last: Entry | None, why: Why, reason: str, **changes: object
) -> Entry:
    number = last.number + 1 if last else 1
    base = last or Entry(
        id="", number=0, watermark="{}", why=why, time="", fingerprint="", kind=dataflow.kind, app_id=new_id()
    )  # fmt: skip
    fresh = {
        "id": new_id(),
        "number": number,
        "why": why,
        "reason": reason,
        "time": utc_now(),
        "fingerprint": dataflow.fingerprint,
        "rows": 0,
        "files": 0,
        "lower": None,
        "upper": None,
        "file_list": None,
        "run_id": None,
        "job_id": None,
    }
    return platform.log.append(dataflow.name, base.model_copy(update=fresh | changes), expected=number - 1)
