"""Decisions about single files: what is read once more, and what is set aside."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.quarantined_files import QuarantinedFile
from partitions.path.source import SourceFile
from resources.decisions.draft import Draft, DraftBuilder, draft_entry, require_current_definition
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import UNPROCESSED
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.quarantine_list import read_quarantine

CAME_LATE = "came late"
"""The reason of a late file in quarantine."""


def release(reason: str, paths: Sequence[str]) -> DraftBuilder:
    """Hand quarantined files to the next run, which loads them in a slice of their own.

    Raises:
        ConfigurationError: for a path that is not in quarantine.
        NeedsDecision: code ``definition_changed``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_current_definition(platform, dataflow, last)
        _some(dataflow, paths)
        left = read_quarantine(platform.log, last).release(paths, dataflow.name)
        return Draft(draft_entry(platform, dataflow, last, "release", reason), quarantine=left)

    return build_draft


def unprocess(reason: str, paths: Sequence[str]) -> DraftBuilder:
    """Mark ingested files for another read (tracking: set).

    Raises:
        ConfigurationError: for a dataflow that does not track a set, or a path that was not ingested.
        NeedsDecision: code ``definition_changed``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        if dataflow.path.tracking != "set":
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected tracking: set, found tracking: watermark: there no single file is read again;"
                " rewind instead",
                choices=(f"strandline state rewind {dataflow.name} --to NUMBER --reason TEXT",),
            )
        last = require_current_definition(platform, dataflow, last)
        _some(dataflow, paths)
        known = IngestedFiles(platform.log, dataflow.name, last).find_handled(paths)
        unknown = [path for path in paths if path not in known]
        if unknown:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected paths of ingested files, found {unknown[0]!r}, which was not ingested"
            )
        entry = draft_entry(platform, dataflow, last, "unprocess", reason)
        return Draft(entry, [[path, 0, "", 0, UNPROCESSED] for path in paths])

    return build_draft


def quarantine_late(reason: str, files: Sequence[SourceFile]) -> DraftBuilder:
    """Set late files aside (late_files: quarantine); nothing of them is loaded before they are released."""

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_current_definition(platform, dataflow, last)
        known = IngestedFiles(platform.log, dataflow.name, last).find_handled([file.path for file in files])
        aside = [QuarantinedFile(file, CAME_LATE) for file in files if file.path not in known]
        rows = [[*bad.file.row, CAME_LATE] for bad in aside]
        entry = draft_entry(platform, dataflow, last, "late", reason, quarantined=len(aside))
        return Draft(entry, rows, read_quarantine(platform.log, last).after((), aside))

    return build_draft


def _some(dataflow: Dataflow, paths: Sequence[str]) -> None:
    if not paths:
        raise ConfigurationError(f"dataflow {dataflow.name}: expected paths of files, found none")
