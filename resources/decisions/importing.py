"""The decision that takes the state of an export (docs/reference/state.md, import).

If the log is gone, all of its objects come back first. Else the log goes on from the exported state: the
entry names the files that were ingested then, as an adopt does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision
from partitions.plan import pluralize
from partitions.spelling import first_few
from partitions.watermark import is_empty
from resources.decisions.draft import Draft, DraftBuilder, draft_entry
from resources.decisions.files_in_table import HeldRows, held_rows
from resources.decisions.newer_records import with_newer_records
from resources.decisions.other_names import (
    describe_doubtful_names,
    other_names,
    refuse_other_names,
    with_other_names,
    without_other_names,
)
from resources.decisions.pending_reset import take_back_reset
from resources.decisions.reasons import IN_TABLE, WITH_ROWS
from resources.decisions.returning_rows import ReturningRows, check_returning_rows, returning_rows
from resources.decisions.taken_over import check_not_behind
from resources.kinds.contract.decisions import NeverGoesBack
from resources.kinds.contract.lost_rows import (
    DeletedRows,
    LostRows,
    fields_of_counts,
    lost_in_all,
    lost_since_created,
)
from resources.loop.guards.definition import check_watermark_form
from resources.loop.rows.deletes_of_table import forgotten_conditions
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.entry import Entry
from resources.watermarks.expiry import carry_exported, find_expiry
from resources.watermarks.exporting import ExportedLog
from resources.watermarks.log import WatermarkLog

_NAMED = 5

_OF_STATE = ("since", "modified", "total_files", "replace_until")
"""Fields of an entry, beside its watermark and its lists, that decide how the next slice is planned."""


def import_entries(reason: str, lines: Sequence[str], deleted: DeletedRows | None = None) -> DraftBuilder:
    """Take the state of an export with its files and quarantine; also its history if the log is lost.

    Args:
        reason: the operator's reason.
        lines: the lines of the export.
        deleted: if the export is older than the table, what becomes of rows that others deleted and that
            are read again: ``skip`` counts files at or below the watermark without a row as loaded.

    Raises:
        ConfigurationError: the text is no export of a dataflow of this kind, or there is no reason; code
            ``other_format``.
        NeedsDecision: code ``no_rewind``: it is older than the loaded state, and the kind cannot go back;
            ``definition_changed``: its watermark does not fit the definition; ``deleted_rows``: rows that
            others deleted would come back, and ``deleted`` does not say what becomes of them;
            ``tags_expire``.
    """
    return _ImportedLog(reason, tuple(lines), deleted)


@dataclass(frozen=True)
class _ImportedLog:
    """The decision that takes the state of an export, and restores the log from it if that is lost.

    Attributes:
        reason: the operator's reason.
        lines: the lines of the export.
        deleted: what becomes of rows that others deleted since the export; None: nobody has said.
    """

    reason: str
    lines: tuple[str, ...]
    deleted: DeletedRows | None = None

    def restore(self, log: WatermarkLog, dataflow: Dataflow) -> None:
        """Store the exported objects that a log lacks, if it is gone or the beginning of the exported log."""
        export = self._export(dataflow)
        if export.continues(log.newest(dataflow.name)):
            export.restore(log.blobs)

    def __call__(self, platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        """Return the draft on top of the newest entry."""
        export = self._export(dataflow)
        is_restored = last is not None and export.is_whole_in(last)
        base = last if last is not None and is_restored else export.newest
        stores = platform if is_restored else platform.with_log(export.log)
        rules = stores.rules(dataflow)
        check_watermark_form(dataflow, base, stores.log, platform.folder)
        watermark = base.watermark if is_empty(base.state()) else rules.parse_watermark(base.watermark)
        rows = held_rows(rules, base, base, watermark, beyond=True)
        newer = None if is_restored else last
        rows, freed = with_newer_records(platform, dataflow, newer, base, rows)
        names = other_names(platform.rules(dataflow), last, watermark)
        if not is_restored:
            refuse_other_names(dataflow, names, "this import")
            rows = without_other_names(rows, names)
        check_not_behind(platform, dataflow, rules, last, watermark)
        returning = _returning_rows(platform, stores, dataflow, newer, base, watermark, rows, self.deleted)
        deleted_notes = _check_deleted(dataflow, returning)
        rows = rows.without(returning.skipped_files)
        kept_rows = take_back_reset(platform, dataflow, base, watermark, rows.files)
        kept_until = rows.files.replace_until or kept_rows.fields.get("replace_until")
        until = kept_until or _rows_above(stores, dataflow, base)
        entry = draft_entry(
            platform,
            dataflow,
            last,
            "import",
            self.reason,
            watermark=watermark,
            takes_table=True,
            **fields_of_counts(platform.table(dataflow), returning.lost_afterwards),
            pinned=_pinned(platform, dataflow, base, export.log),
            **_fields_of_state(base, last, until),
        )
        if not is_restored:
            exported = find_expiry(base, stores.log.history(dataflow.name))
            entry = entry.model_copy(update={"expiry": carry_exported(entry, exported)})
        draft = _with_new_files(rows, entry) if is_restored else with_other_names(rows.draft(entry), names)
        deletes = None if is_restored else deletes_in_force(export.log, base)
        notes = (
            _describe(export, base),
            *draft.notes,
            *(kept_rows.notes or _again(until, rows)),
            *_without_rows(rows),
            *freed,
            *deleted_notes,
            *(describe_doubtful_names(names) if is_restored else ()),
        )
        return replace(draft, files=[*draft.files, *returning.skipped], deletes=deletes, notes=notes)

    def _export(self, dataflow: Dataflow) -> ExportedLog:
        """Return the parsed export of a dataflow of this kind.

        Raises:
            ConfigurationError: the lines are no export, or one of another kind.
        """
        export = ExportedLog.parse(self.lines, dataflow.name)
        if export.newest.kind != dataflow.kind:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected entries of kind {dataflow.kind}, found {export.newest.kind}"
            )
        return export


def _with_new_files(rows: HeldRows, entry: Entry) -> Draft:
    """Return the draft on top of a restored log: its lists stay, and files that the table knows join them."""
    draft = rows.draft(entry)
    if not rows.knows_files:
        return draft
    in_table = [row for row in draft.files if row[-1] == IN_TABLE]
    quarantine = draft.quarantine if rows.files.released else None
    name = None if rows.files.released else entry.quarantine
    return replace(
        draft,
        entry=draft.entry.model_copy(update={"era": entry.era, "quarantine": name}),
        files=in_table,
        quarantine=quarantine,
    )


def _fields_of_state(base: Entry, last: Entry | None, until: str | None) -> dict[str, Any]:
    """Return the fields of the exported state.

    Rows stay: a reset that is pending in the export, or here, empties the table no more.
    """
    fields: dict[str, Any] = {name: getattr(base, name) for name in _OF_STATE}
    fields |= {"replace_table": False} | ({"replace_until": until} if until else {})
    return fields | ({"app_id": base.app_id} if last is None else {})


def _check_deleted(dataflow: Dataflow, returning: ReturningRows) -> tuple[str, ...]:
    """Return notes on rows that come back; raise if the answer does not say their fate."""
    return check_returning_rows(dataflow.name, returning, f"strandline state import {dataflow.name} FILE")


def _returning_rows(
    platform: Opener,
    exported: Opener,
    dataflow: Dataflow,
    newer: Entry | None,
    base: Entry,
    watermark: str,
    rows: HeldRows,
    deleted: DeletedRows | None,
) -> ReturningRows:
    """Return the rows that others deleted and that come back by an import.

    ``newer`` is the newest entry of a log that has gone on; None if the log was lost.
    """
    if newer is None:
        return _loaded_since_export(exported, dataflow, base, watermark, rows, deleted)
    newer = _newest_in_table(platform, dataflow, newer)
    past = platform.log.find(dataflow.name, base.number)
    to = base.number if past and past.id == base.id else 0
    return returning_rows(platform, dataflow, newer, watermark, rows, deleted, to=to)


def _newest_in_table(platform: Opener, dataflow: Dataflow, newest: Entry) -> Entry:
    """Return the entry of the table's newest commit if an older table was put back; else the newest entry.

    Nobody has deleted the rows of the commits that an older table lacks.
    """
    with suppress(NeedsDecision, ConfigurationError):  # the table tells no state
        adopted = adopted_state(platform.table(dataflow), newest.app_id)
        if adopted is not None and 0 < adopted.number < newest.table_number:
            return platform.log.find(dataflow.name, adopted.number) or newest
    return newest


def _loaded_since_export(
    platform: Opener,
    dataflow: Dataflow,
    base: Entry,
    watermark: str,
    rows: HeldRows,
    deleted: DeletedRows | None,
) -> ReturningRows:
    """Return the rows that others deleted and that come back by an import into a lost log.

    Nothing comes back unless the table has commits after the export: the log does not know what they loaded.
    """
    table, planning = platform.table(dataflow), platform.kind(dataflow).planning
    adopted = None
    with suppress(NeedsDecision, ConfigurationError):  # the table tells no state
        adopted = adopted_state(table, base.app_id)
    if adopted is None or adopted.number <= base.number:
        return ReturningRows(LostRows(), in_all=lost_in_all(table, base))
    in_all = lost_since_created(table, base.app_id, table.contents.count_rows())
    reads_again = adopted.state is None or not planning.covers(watermark, adopted.state)
    missing = rows.files.missing
    lost_rows = LostRows()
    if missing or reads_again or (rows.knows_files and in_all.rows):  # or of files that are missing now
        forgotten = forgotten_conditions(table, base.app_id) if missing else ()
        lost_rows = replace(in_all, files=tuple(file.path for file in missing), forgotten=forgotten)
    return ReturningRows(lost_rows, missing, in_all, deleted, can_skip=bool(missing) and not reads_again)


def _rows_above(platform: Opener, dataflow: Dataflow, base: Entry) -> str | None:
    """Return the state up to which the next loads delete what they reload; None if they delete nothing.

    The next loads then delete what they read again; a load that finds rows by keys needs no such bound.
    """
    rules, planning = platform.rules(dataflow), platform.kind(dataflow).planning
    if isinstance(rules, NeverGoesBack) or not dataflow.target.only_adds:
        return None
    with suppress(NeedsDecision, ConfigurationError):  # the table tells no state, or its rows no place
        adopted = adopted_state(platform.table(dataflow), base.app_id)
        if adopted and adopted.state and not planning.covers(base.watermark, adopted.state):
            return adopted.state if rules.loaded_upper_bound(base) else None
    return None


def _pinned(platform: Opener, dataflow: Dataflow, base: Entry, exported: WatermarkLog) -> str | None:
    """Store the export's pinned schema in the log and return its name; None if the export has none."""
    if base.pinned is None:
        return None
    with suppress(CorruptWatermark):
        return platform.log.put_schema(dataflow.name, exported.get_schema(base.pinned))
    return None


def _describe(export: ExportedLog, base: Entry) -> str:
    """Return how many entries an export holds and up to which number, for people."""
    entries = len(export.log.numbers(export.dataflow))
    return f"the export holds {pluralize(entries, 'entry', 'entries')} up to number {base.number}"


def _again(until: str | None, rows: HeldRows) -> Iterable[str]:
    """Yield a note that rows above the watermark are replaced, unless a note about files says so."""
    if until and not rows.files.replace_until:
        yield "rows above the watermark are in the table: each commit deletes what it reads of them, and inserts it again"


def _without_rows(rows: HeldRows) -> Iterable[str]:
    """Yield a note naming files that the export counts as loaded although the table has no row of them."""
    if rows.counts is None:
        return
    loaded = [str(path) for path, *_, reason in rows.files.listed if reason in WITH_ROWS]
    if missing := [path for path in loaded if path not in rows.counts]:
        count = pluralize(len(missing), "file")
        yield f"count as loaded, although the table holds no row of them: {count} ({first_few(missing, _NAMED)})"
