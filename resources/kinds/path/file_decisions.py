"""Decisions about single files: release, unprocess, and quarantine of late files."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, SourceError
from partitions.path.quarantined_files import QuarantinedFile
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.draft import Draft, DraftBuilder, draft_entry, require_current_definition
from resources.decisions.reasons import OTHER_ROOT, WITH_ROWS
from resources.kinds.path.rows_by_path import check_rows_have_paths
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import (
    LOADED_AGAIN,
    UNPROCESSED,
    UNPROCESSED_WITHOUT_ROWS,
    IngestedFile,
)
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.quarantine_list import read_quarantine

_NAMED = 5

CAME_LATE = "came late"
"""The reason of a late file in quarantine."""


def release(reason: str, paths: Sequence[str]) -> DraftBuilder:
    """Release quarantined files: the next run loads them in a slice of their own.

    Raises:
        ConfigurationError: a path is not in quarantine.
        NeedsDecision: code ``definition_changed``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_current_definition(platform, dataflow, last)
        _require_paths(dataflow, paths)
        remaining = read_quarantine(platform.log, last).release(paths, dataflow.name)
        entry = draft_entry(platform, dataflow, last, "release", reason)
        return Draft(entry, quarantine=remaining, notes=_missing_note(platform, dataflow, paths))

    return build_draft


def unprocess(reason: str, paths: Sequence[str]) -> DraftBuilder:
    """Mark ingested files to be read again (``tracking: set``).

    Raises:
        ConfigurationError: the dataflow tracks no set, or a path was not ingested.
        NeedsDecision: code ``definition_changed``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        if dataflow.path.tracking != "set":
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected tracking: set, found tracking: watermark, which "
                "cannot read single files again. Rewind instead",
                choices=(f"strandline state rewind {dataflow.name} --to NUMBER --reason TEXT",),
            )
        last = require_current_definition(platform, dataflow, last)
        _require_paths(dataflow, paths)
        records = IngestedFiles(platform.log, dataflow.name, last).find_records(paths)
        unknown = [path for path in paths if path not in records or records[path].reason in LOADED_AGAIN]
        if unknown:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected paths of ingested files, found {unknown[0]!r}, which was not ingested"
            )
        check_rows_have_paths(platform.log, dataflow, platform.table(dataflow), last, set(paths).__contains__)
        entry = draft_entry(platform, dataflow, last, "unprocess", reason)
        rows = [_unprocessed_row(records[path]) for path in paths]
        return Draft(entry, rows)

    return build_draft


def _unprocessed_row(record: IngestedFile) -> Sequence[object]:
    """Return the record of a file to read again, which tells whether its rows are in the table."""
    has_rows = record.reason in WITH_ROWS or record.reason == OTHER_ROOT
    return [*record[:4], UNPROCESSED if has_rows else UNPROCESSED_WITHOUT_ROWS]


def quarantine_late(reason: str, files: Sequence[SourceFile]) -> DraftBuilder:
    """Quarantine late files (``late_files: quarantine``); they are loaded only after a release."""

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_current_definition(platform, dataflow, last)
        ingested = IngestedFiles(platform.log, dataflow.name, last).find_handled(
            [file.path for file in files]
        )
        late_files = [QuarantinedFile(file, CAME_LATE) for file in files if file.path not in ingested]
        rows = [[*bad.file.row, CAME_LATE] for bad in late_files]
        entry = draft_entry(platform, dataflow, last, "late", reason, quarantined=len(late_files))
        return Draft(entry, rows, read_quarantine(platform.log, last).after((), late_files))

    return build_draft


def _require_paths(dataflow: Dataflow, paths: Sequence[str]) -> None:
    if not paths:
        raise ConfigurationError(f"dataflow {dataflow.name}: expected paths of files, found none")


def _missing_note(platform: Opener, dataflow: Dataflow, paths: Sequence[str]) -> tuple[str, ...]:
    """Name the released files that no run can load, since the source lacks them."""
    try:
        existing = platform.files(dataflow).find_files(paths)
    except SourceError as error:
        return (f"the source cannot be listed, so it is unknown which of the files exist: {error.message}",)
    missing = [path for path in paths if path not in existing]
    named = f"{pluralize(len(missing), 'file')} ({first_few(missing, _NAMED)})"
    return (
        (f"missing at the source, so no run loads them until they are there again: {named}",)
        if missing
        else ()
    )
