"""Checksums of the files that a decision records again (docs/reference/files.md, Duplicates)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import CorruptWatermark
from partitions.path.copies import content_of
from partitions.path.source import is_unseen
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.draft import Draft
from resources.decisions.reasons import DELETED, OTHER_ROOT, WITH_ROWS
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_NAMED = 5


def logged_checksums(
    log: WatermarkLog, dataflow: str, entry: Entry | None, files: Sequence[Sequence[Any]]
) -> Mapping[str, str]:
    """Return the checksums that the log has of files, by path; also those from before a reset.

    A file whose size or version differs from the record has another content, so none is returned.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        entry: the newest entry.
        files: rows of a list of files.
    """
    sought = {path: (size, version) for path, size, version, *_ in files if size}
    checksums: dict[str, str] = {}
    while entry is not None and sought:
        with suppress(CorruptWatermark):  # an object that is lost tells no checksum
            for path, record in IngestedFiles(log, dataflow, entry).find_records(list(sought)).items():
                if record.checksum and sought[path] == (record.size, record.version):
                    checksums[path] = record.checksum
                    del sought[path]
        before = min(entry.era, entry.number - 1)
        entry = log.find(dataflow, before) if before > 0 else None
    return checksums


def checksums_of_draft(log: WatermarkLog, dataflow: str, draft: Draft) -> Mapping[str, str]:
    """Return the checksums of a draft's files by path, as far as the draft or the log tells."""
    return {**logged_checksums(log, dataflow, log.newest(dataflow), draft.files), **draft.checksums}


def unknown_contents_note(
    dataflow: Dataflow, files: Sequence[Sequence[Any]], checksums: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a note naming loaded files whose copies no run can recognise; empty if there are none.

    Args:
        dataflow: the definition.
        files: rows of the decision's list of files.
        checksums: checksums by path.
    """
    if not files or dataflow.path.duplicates == "load":
        return ()
    paths = [
        path
        for path, size, version, modified, reason in files
        if (size or is_unseen(version, modified))
        and reason in (*WITH_ROWS, DELETED, OTHER_ROOT)
        and content_of(path, size, version, checksums.get(path)) is None
    ]
    if not paths:
        return ()
    named = f"{pluralize(len(paths), 'file')} ({first_few(paths, _NAMED)})"
    return (f"the log has no checksum of {named}: a copy of such a file is loaded like any other",)
