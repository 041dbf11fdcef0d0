"""Decisions about the watermark that build on the log: accept, rewind, set.

See docs/reference/state.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from partitions.column.words import describe_stored_watermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.fingerprint import fingerprint
from partitions.path.gone import GoneFiles
from partitions.plan import pluralize
from partitions.sentinels import deserialise
from partitions.watermark import is_empty
from resources.decisions.adopt import only_operator_knows
from resources.decisions.draft import (
    Draft,
    DraftBuilder,
    draft_entry,
    require_current_definition,
    require_entry,
)
from resources.decisions.files_in_table import held_rows
from resources.decisions.gone_files import GoneRows, gone_above, gone_at_new_source
from resources.decisions.other_names import (
    other_names,
    refuse_other_names,
    with_other_names,
    without_other_names,
)
from resources.decisions.other_root import Below, check_told_apart, files_of_root
from resources.decisions.reasons import OTHER_ROOT
from resources.decisions.returning_rows import returning_rows
from resources.decisions.taken_over import draft_of_set
from resources.kinds.contract.decisions import (
    AcceptsSource,
    ContinuesSet,
    KnowsFiles,
    NeverGoesBack,
    OtherNames,
    TellsLostRows,
)
from resources.kinds.contract.lost_rows import (
    DeletedRows,
    LostRows,
    check_lost_rows,
    fields_of_counts,
    lost_in_all,
)
from resources.loop.entries import keyed_by, names_other_table
from resources.loop.guards.definition import check_definition, check_watermark_form, definition_of
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.watermarks.entry import Entry


def accept(reason: str, below: Below | None = None, gone_files: GoneFiles | None = None) -> DraftBuilder:
    """Keep the watermark under the definition as it is now.

    Args:
        reason: the operator's reason.
        below: whether files of a new root at or below the watermark that no entry knows are late or count
            as loaded; None: late, if the log knows other files of the root.
        gone_files: while loads replace rows after a rewind, what becomes of the rows of files that the
            source lacks as it is defined now.

    Raises:
        ConfigurationError: there is no state to keep, or no reason, or the watermark does not fit the
            definition, or ``gone_files`` does not apply; code ``other_format``.
        NeedsDecision: code ``other_files``: the log knows no file of a new root, and ``below`` does not say
            how to treat them; ``gone_files``: the next loads replace rows, and the source lacks files of
            such rows; ``definition_changed``: the definition cannot use the state; ``tags_expire``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_entry(dataflow, last)
        check_watermark_form(dataflow, last, platform.log, platform.folder)
        rules = platform.rules(dataflow)
        if not is_empty(last.state()):
            if isinstance(
                rules, NeverGoesBack
            ):  # no watermark of Spark's engine can be set, and this one stays
                rules.migrate_watermark(last.watermark, datetime.now(UTC), last)
            else:
                rules.parse_watermark(last.watermark)
        changes: dict[str, Any] = {}
        notes: tuple[str, ...] = ()
        if isinstance(rules, AcceptsSource):
            watermark, of_source = rules.accept_source(last)
            changes, notes = {"watermark": watermark}, tuple(of_source)
        if names_other_table(dataflow, last):
            # What was decided about the old table says nothing of this one.
            table = platform.table(dataflow)
            row_count = table.contents.count_rows()
            lost_rows = lost_in_all(table, last) if row_count else LostRows()
            changes |= {"takes_table": True, "replace_table": False, **fields_of_counts(table, lost_rows)}
            if row_count and is_empty(last.state()):
                notes += (
                    f"nothing counts as loaded, and table {dataflow.table} has {pluralize(row_count, 'row')}: every row of the source is added to them",
                )
        accepted = keyed_by(definition_of(dataflow))
        if _accepts_keys(dataflow, last, accepted, reason):
            changes["keyed_by"] = accepted
            keys = ", ".join(dataflow.target.merge_keys)
            notes += (f"rows of the table that share a key ({keys}) stay as they are",)
        files = files_of_root(platform, dataflow, last)
        entry = draft_entry(platform, dataflow, last, "accept", reason, **changes)
        check_told_apart(dataflow, files, below)
        rows = [(*file.row, OTHER_ROOT) for file in files.loaded(below)]
        options = " --below late" if below == "late" else " --below loaded" if below == "loaded" else ""
        gone_rows = gone_at_new_source(platform, dataflow, last, gone_files, options)
        notes = (*files.notes(below), *notes)
        return gone_rows.added_to(Draft(entry, rows, notes=notes))

    return build_draft


def _accepts_keys(dataflow: Dataflow, last: Entry, keys: str, reason: str) -> bool:
    """Return whether only the new keys remain to be accepted.

    If the same decision abandons a slice, nobody has seen the check of its keys yet.
    """
    target = dataflow.target
    if not target.merges or target.load == "scd2" or last.keyed_by == keys:
        return False
    gave_up = last.why == "abandon" and last.reason == reason
    return last.fingerprint == fingerprint(dataflow) and not names_other_table(dataflow, last) and not gave_up


def rewind(
    reason: str,
    to: int,
    *,
    replace: bool = False,
    gone_files: GoneFiles | None = None,
    deleted: DeletedRows | None = None,
) -> DraftBuilder:
    """Go back to the watermark of an older entry, so that everything above it is read again.

    Late and released files below it stay ingested.

    Args:
        reason: the operator's reason.
        to: the number of that entry; 0 is the beginning.
        replace: whether the rows of a file are deleted when it is loaded again; else an append doubles
            them.
        gone_files: with ``replace``, what becomes of the rows of files that are gone at the source.
        deleted: ``load`` if rows that others deleted may come back.

    Raises:
        ConfigurationError: the log lacks that entry, rows do not tell their file, ``tracking`` is ``set``,
            ``gone_files`` does not apply, or Spark streams the dataflow.
        NeedsDecision: code ``definition_changed``; ``no_rewind``: a stream cannot go back; ``would_rise``:
            it lies above the watermark, and the table does not show that it holds the rows between the two;
            ``gone_files``: files are gone, and ``gone_files`` does not say what becomes of their rows;
            ``deleted_rows``: rows that others deleted would come back, and ``deleted`` does not say that
            they may.
    """
    options = {"--replace": replace, f"--gone {gone_files}": gone_files, f"--deleted {deleted}": deleted}
    command = " ".join([f"--to {to}", *(option for option, is_set in options.items() if is_set)])

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_current_definition(platform, dataflow, last)
        rules = platform.rules(dataflow)
        rules.check_rewind()
        until = rules.loaded_upper_bound(last) if replace else None
        watermark = _watermark_of(platform, dataflow, to)
        if replace and isinstance(rules, KnowsFiles):
            rules.check_replaceable(last, watermark)
        takes_back = 0 < to <= last.era and not is_empty(deserialise(watermark))
        names = other_names(rules, last, watermark)
        if takes_back and names.unsure:
            refuse_other_names(dataflow, names, "this rewind")
        changes: dict[str, Any] = {"watermark": watermark, "replace_until": until}
        words = f"strandline state rewind {dataflow.name} {command}"
        gone_rows = GoneRows()
        if takes_back or not _is_emptied(dataflow, last, gone_files):
            gone_rows = gone_above(
                platform, dataflow, last, watermark, gone_files, replace=replace, command=words
            )
        if takes_back:
            draft = _taken_back(platform, dataflow, last, to, reason, changes, names, deleted, words)
            return gone_rows.added_to(draft)
        answers = [f"{words} --deleted load --reason TEXT"]
        lost_rows = _lost_above(platform, dataflow, last, watermark)
        if deleted == "load" and is_empty(
            deserialise(watermark)
        ):  # all rows are read again: none is lost then
            row_count = platform.table(dataflow).contents.count_rows()
            changes |= {"total_rows": min(last.total_rows, row_count), "lost_rows": 0}
        gone_rows = gone_rows.with_notes(check_lost_rows(dataflow.name, lost_rows, deleted, answers))
        entry = draft_entry(platform, dataflow, last, "rewind", reason, **changes)
        _check_rows_exist(platform, dataflow, last, entry)
        return gone_rows.added_to(Draft(entry))

    return build_draft


def _taken_back(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry,
    to: int,
    reason: str,
    changes: Mapping[str, Any],
    names: OtherNames,
    deleted: DeletedRows | None,
    command: str,
) -> Draft:
    """Return the draft of a rewind to before a reset, adopt or import, which it takes back.

    The rows below the entry's watermark stay, and their files were ingested.
    """
    rules, watermark = platform.rules(dataflow), str(changes["watermark"])
    rows = without_other_names(held_rows(rules, last, None, watermark), names)
    returning = returning_rows(platform, dataflow, last, watermark, rows, deleted, to=to)
    notes = check_lost_rows(
        dataflow.name, returning.lost_rows, deleted, [f"{command} --deleted load --reason TEXT"]
    )
    counts = fields_of_counts(platform.table(dataflow), returning.lost_afterwards)
    fields = {**changes, **counts, "replace_table": False}
    entry = draft_entry(platform, dataflow, last, "rewind", reason, **fields)
    if not isinstance(rules, KnowsFiles) or not rules.replaces_reloaded_rows():  # rows tell no file
        _check_rows_exist(platform, dataflow, last, entry)
    draft = with_other_names(rows.draft(entry), names)
    return dataclasses.replace(draft, notes=(*draft.notes, *notes))


def _is_emptied(dataflow: Dataflow, last: Entry, answer: GoneFiles | None) -> bool:
    """Return whether a pending reset deletes all rows, so that nobody has to say what becomes of some.

    Raises:
        ConfigurationError: the answer is to keep them.
    """
    if last.replace_table and answer == "keep":
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected no --gone keep, found it while a `reset --replace` is pending: the first commit of the next run deletes"
            " all rows. Keep them first (`state adopt`), and rewind then",
            choices=(f"strandline state adopt {dataflow.name} --reason TEXT",),
        )
    return last.replace_table


def _lost_above(platform: Opener, dataflow: Dataflow, last: Entry, watermark: str) -> LostRows:
    """Return the rows that others deleted, and that a rewind to a watermark reads again."""
    rules = platform.rules(dataflow)
    if last.replace_table or not platform.kind(dataflow).planning.covers(last.watermark, watermark):
        return LostRows()  # the table is emptied anyway; or nothing is read again
    if isinstance(rules, TellsLostRows):
        return rules.lost_above(last, watermark)
    return lost_in_all(platform.table(dataflow), last)


def _check_rows_exist(platform: Opener, dataflow: Dataflow, last: Entry, entry: Entry) -> None:
    """Raise if a decision raises the watermark above rows that the table does not prove to hold.

    A rewind to before another rewind or reset does that.

    Raises:
        NeedsDecision: code ``would_rise``.
    """
    planning = platform.kind(dataflow).planning
    if planning.covers(last.watermark, entry.watermark):
        return
    adopted = None
    with suppress(NeedsDecision):
        adopted = adopted_state(platform.table(dataflow), last.app_id)
    if adopted and adopted.state and not adopted.beyond and planning.covers(adopted.state, entry.watermark):
        return
    raise NeedsDecision(
        f"dataflow {dataflow.name}: expected an entry at or below the watermark {describe_stored_watermark(last.watermark)}, or a table that proves that it has the rows up"
        f" to the entry's; found {describe_stored_watermark(entry.watermark)}, and a table that proves"
        f" {describe_stored_watermark(adopted.state) if adopted and adopted.state else 'nothing'}: rows between the two"
        " may be missing. Run, which loads the rows above the watermark; or set the watermark",
        code="would_rise",
        choices=(
            f"strandline run {dataflow.name}",
            f"strandline state set {dataflow.name} JSON --reason TEXT",
        ),
    )


def set_watermark(reason: str, text: str) -> DraftBuilder:
    """Set the watermark that an operator typed. Files that it skips count as handled, not as late.

    Raises:
        ConfigurationError: the text is no watermark of this dataflow.
        NeedsDecision: code ``would_fall``: it lies below the watermark, which only a rewind may lower;
            ``no_rewind``: the same for a stream, which has no rewind; ``would_rise``: it would leave out the
            rest of a first read; ``definition_changed``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        rules = platform.rules(dataflow)
        watermark = rules.parse_watermark(text)
        check_definition(dataflow, last, platform.log)
        if isinstance(rules, ContinuesSet) and last is not None:
            watermark = rules.continued_set(watermark, last)
        rewinds = not isinstance(rules, NeverGoesBack)  # else taken_over says what leads on
        if (
            rewinds
            and last is not None
            and not platform.kind(dataflow).planning.covers(watermark, last.watermark)
        ):
            raise NeedsDecision(
                f"dataflow {dataflow.name}: expected a watermark at or above {describe_stored_watermark(last.watermark)}, found {describe_stored_watermark(watermark)}: set never lowers a"
                " value. To read files again, rewind to an older entry",
                code="would_fall",
                choices=(f"strandline state rewind {dataflow.name} --to NUMBER --reason TEXT",),
            )
        takes_table = only_operator_knows(platform, dataflow, last)
        draft = draft_of_set(platform, dataflow, last, reason, watermark, takes_table=takes_table)
        return replace(draft, takes_table=takes_table)

    return build_draft


def _watermark_of(platform: Opener, dataflow: Dataflow, number: int) -> str:
    if number == 0:
        return "{}"
    entry = platform.log.find(dataflow.name, number)
    if entry is None:
        floor = platform.log.floor(dataflow.name)
        compacted = f"; entries up to {floor} were compacted away" if 0 < number <= floor else ""
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected the number of an entry, found {number}{compacted}",
            choices=(f"strandline state history {dataflow.name}",),
        )
    return entry.watermark
