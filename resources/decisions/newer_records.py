"""The records of files that a later load has handled after an export was made.

An import takes the watermark of an export. Which content of a file the table holds, and of which file a
skipped one is still a copy, only the log of the table's newest commit tells (docs/reference/state.md, import).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from partitions.dataflow import Dataflow
from partitions.errors import CorruptWatermark, NeedsDecision
from partitions.path.copies import original_of
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources import listing
from resources.decisions.files_in_table import HeldRows
from resources.decisions.reasons import DELETED, WITH_ROWS
from resources.platform.opener import Opener
from resources.tables.contract.adopting import AdoptableState, adopted_state
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import UNPROCESSED_WITHOUT_ROWS, WENT, IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_NAMED = 5


def with_newer_records(
    platform: Opener, dataflow: Dataflow, last: Entry | None, base: Entry, rows: HeldRows
) -> tuple[HeldRows, Sequence[str]]:
    """Return the held rows with the records of the table's newest commit, and notes on what they change.

    If that commit is not later than the export, the export's records stay. They also stay if no log knows the
    commit; then a note names the copies that may be copies no longer.

    Args:
        platform: the resources, with the log as it is.
        dataflow: the dataflow whose state changes.
        last: the log's newest entry; None if the log has nothing that the export lacks.
        base: the newest entry of the export.
        rows: the rows that the table holds, with the files as the export records them.
    """
    newest = _newest_commit(platform, dataflow, last or base) if rows.knows_files else None
    if newest is None or newest.number <= base.number:
        return rows, ()
    commit = platform.log.find(dataflow.name, newest.number) if last is not None else None
    if last is None or commit is None or commit.id != newest.owner:
        return rows, _describe_uncertain(platform, dataflow, rows)
    records = _records_at(platform.log, dataflow.name, commit, last, [row[0] for row in rows.files.listed])
    newer = {path: record for path, record in records.items() if _describes_table(record, base, rows)}
    listed = [
        (*record[:4], record.reason) if (record := newer.get(row[0])) is not None else row
        for row in rows.files.listed
    ]
    checksums = {path: text for path, text in rows.files.checksums.items() if path not in newer}
    checksums |= {path: record.checksum for path, record in newer.items() if record.checksum}
    newer_rows = replace(rows, files=replace(rows.files, listed=listed, checksums=checksums))
    return newer_rows, _describe_freed(rows, newer_rows)


def _describe_freed(before: HeldRows, after: HeldRows) -> list[str]:
    """Return a line about copies of the export that are copies no longer; none if there are none."""
    copies = {row[0] for row in before.files.listed if original_of(row[-1]) is not None}
    freed = [row[0] for row in after.files.listed if row[0] in copies and row[-1] == UNPROCESSED_WITHOUT_ROWS]
    if not freed:
        return []
    named = f"{pluralize(len(freed), 'file')} ({first_few(freed, _NAMED)})"
    are = "is" if len(freed) == 1 else "are"
    line = f"the table no longer holds what they were skipped as copies of: {named}, which {are} late"
    return [line]


def _describe_uncertain(platform: Opener, dataflow: Dataflow, rows: HeldRows) -> list[str]:
    """Return a line about copies whose originals have changed, if nothing tells what was loaded of them."""
    recorded = {row[0]: row for row in rows.files.listed}
    originals = {path: str(original) for path, row in recorded.items() if (original := original_of(row[-1]))}
    if not originals:
        return []
    existing = listing.stat_files(platform.root_of(dataflow), sorted({*originals.values()}))
    changed = {
        path
        for path in originals.values()
        if path in recorded and (path not in existing or existing[path].row[:3] != tuple(recorded[path][:3]))
    }
    copies = [path for path, original in originals.items() if original in changed]
    if not copies:
        return []
    count, them = pluralize(len(copies), "file"), "it" if len(copies) == 1 else "them"
    line = (
        f"the table has loads that the export does not know, and originals of {count} ({first_few(copies, _NAMED)}) have changed since: if"
        f" they were loaded again, the table no longer holds the content of the skipped copies. To load {them}, set duplicates: load and"
        " replay"
    )
    return [line]


def _newest_commit(platform: Opener, dataflow: Dataflow, entry: Entry) -> AdoptableState | None:
    """Return the newest commit that the table's rows include; None if the table does not tell."""
    with suppress(NeedsDecision):  # the watermark beside the table is lost
        return adopted_state(platform.table(dataflow), entry.app_id)
    return None


def _records_at(
    log: WatermarkLog, dataflow: str, commit: Entry, last: Entry, paths: list[str]
) -> dict[str, IngestedFile]:
    """Return the records of files as of a commit; if they were merged with later ones, the newest."""
    entries = (commit, last) if last.era < commit.number else (commit,)
    for entry in entries:
        with suppress(CorruptWatermark):
            return IngestedFiles(log, dataflow, entry).find_records(paths)
    return {}


def _describes_table(record: IngestedFile, base: Entry, rows: HeldRows) -> bool:
    """Return whether a record is newer than the export, and tells what the table holds of its file."""
    if record.number <= base.number:
        return False
    if record.reason in WITH_ROWS:
        return rows.counts is None or record.path in rows.counts
    return (
        record.reason in (UNPROCESSED_WITHOUT_ROWS, WENT, DELETED) or original_of(record.reason) is not None
    )
