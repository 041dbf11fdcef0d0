"""Say what a missing folder or bucket means for a dataflow that has loaded from it.

An empty folder in its place would hide the loaded files, so nobody is advised to create one
(docs/how-to/moving-and-restoring.md, A source that stays behind).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from partitions.dataflow import Dataflow
from partitions.errors import ProviderError, SourceMissing
from partitions.fingerprint import fingerprint
from partitions.instants import time_text
from partitions.plan import pluralize
from resources.sources.files.source import FileSource
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

_SEARCHED_ENTRIES = 1_000
_EMPTIED = "holds no file, although the dataflow has loaded"


@contextmanager
def explain_missing_source(log: WatermarkLog, dataflow: Dataflow) -> Iterator[None]:
    """Turn the error of a missing source into one that says what was loaded from it.

    Raises:
        SourceMissing: the source is missing; also if nothing was loaded yet.
    """
    try:
        yield
    except SourceMissing as error:
        remedy = None
        with suppress(ProviderError):  # a store that fails does not hide that the source is missing
            remedy = remedy_of_loaded_source(log, dataflow)
        if remedy is None:
            raise
        raise SourceMissing(error.summary, remedy) from error


def remedy_of_loaded_source(log: WatermarkLog, dataflow: Dataflow) -> str | None:
    """Return what to do about a missing source, for people; None if nothing was loaded yet."""
    entries = log.history(dataflow.name, _SEARCHED_ENTRIES)
    entry = next((past for past in entries if past.why in LOADS and (past.files or past.rows)), None)
    if entry is None:
        return None
    what, folder = _amount(entry), "bucket" if "://" in dataflow.source.label else "folder"
    if entry.fingerprint == fingerprint(dataflow):
        earlier = f"It was there when the last load read {what} ({time_text(entry.time)}), and may have moved"
    else:
        earlier = f"The last load read {what} from another definition of the source ({time_text(entry.time)})"
    return f"{earlier}. Correct source.path in the dataflow's file, or restore the {folder} with its files"


def warn_of_emptied_source(entry: Entry | None, source: FileSource, hint: str = "") -> list[str]:
    """Return a warning if a listing without files means that the source was emptied after loads.

    Args:
        entry: the newest entry; None if there is none.
        source: the source.
        hint: what names the loaded files, for the end of the sentence.

    Raises:
        SourceError: the listing failed.
    """
    if entry is None or not entry.total_files or source.holds_files():
        return []
    loaded = pluralize(entry.total_files, "file")
    return [f"{source.root} {_EMPTIED} {loaded} from it. If it has moved, correct source.path{hint}"]


def tells_of_emptied_source(warning: str) -> bool:
    """Return whether a plan's warning is that of a source that was emptied after loads."""
    return f" {_EMPTIED} " in warning


def _amount(entry: Entry) -> str:
    return pluralize(entry.files, "file") if entry.files else pluralize(entry.rows, "row")
