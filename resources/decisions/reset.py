"""Reset of a dataflow: an empty watermark, and the table emptied or kept (docs/reference/state.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision, StrandlineError
from partitions.path.gone import GoneFiles
from partitions.plan import pluralize
from resources.decisions.draft import (
    Draft,
    DraftBuilder,
    draft_entry,
)
from resources.decisions.gone_files import gone_note
from resources.kinds.contract.decisions import KnowsFiles, StateRules, TellsLostRows
from resources.kinds.contract.lost_rows import LostRows, lost_in_all, lost_since_created
from resources.loop.guards.definition import changed_parts
from resources.loop.guards.table import check_table
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry


def reset(reason: str, *, replace: bool = False) -> DraftBuilder:
    """Empty the watermark, whatever the table holds.

    Args:
        reason: the operator's reason.
        replace: whether the next run's first commit empties the table; else the table stays as it is.

    Raises:
        ConfigurationError: there is no reason; code ``other_format``.
        NeedsDecision: code ``tags_expire``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        entry = draft_entry(
            platform,
            dataflow,
            last,
            "reset",
            reason,
            watermark="{}",
            takes_table=True,
            total_rows=last.total_rows if replace and last else 0,
            total_files=0,
            lost_rows=last.lost_rows if replace and last else 0,
            modified=None,
            pinned=None,  # the next run reads a schema again
            since=None,
            replace_until=None,
            replace_table=replace,
            quarantine=None,
        )
        notes = _describe_rows(platform, dataflow, last, replace=replace)
        return Draft(entry.model_copy(update={"era": entry.number}), notes=notes)

    return build_draft


def describe_emptied_files(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Sequence[str]:
    """Return the files that the source no longer has, and whose rows a pending reset deletes, for people."""
    exists = platform.table(dataflow).exists()
    return _describe_gone_files(platform, dataflow, last, "delete") if exists else ()


def _describe_gone_files(
    platform: Opener, dataflow: Dataflow, last: Entry | None, answer: GoneFiles
) -> list[str]:
    """Return which loaded files are missing at the source, and what becomes of their rows, for people."""
    rules, lines = platform.rules(dataflow), list[str]()
    if isinstance(rules, KnowsFiles):
        with _unless_unknown(lines, "which loaded files are missing at the source"):
            new_source = dataflow.source.label if _may_have_moved(platform, dataflow, last) else None
            lines += gone_note(rules.gone_above(last, "{}"), answer, new_source=new_source)
    return lines


def _describe_rows(
    platform: Opener, dataflow: Dataflow, last: Entry | None, *, replace: bool
) -> tuple[str, ...]:
    """Return which rows stay, and which come back although others deleted them, for people."""
    table, rules = platform.table(dataflow), platform.rules(dataflow)
    if not table.exists():
        return ()
    rows = table.contents.count_rows()
    lines = [] if replace else _describe_gone_files(platform, dataflow, last, "keep")
    if rows and not replace and not dataflow.keeps_table_in_reset:
        lines.append(
            f"{pluralize(rows, 'row')} of table {dataflow.table} {'stays' if rows == 1 else 'stay'}, and the next loads add all rows of the source to"
            f" {'it' if rows == 1 else 'them'}: `state reset --replace` empties the table first"
        )
    with _unless_unknown(lines, "whether others deleted rows, which come back as far as the source has them"):
        lost_rows = _lost_rows(dataflow, table, rules, last, rows)
        lines += [] if lost_rows.are_none else [lost_rows.describe()]
    return tuple(lines)


@contextmanager
def _unless_unknown(lines: list[str], what: str) -> Iterator[None]:
    """Say what is unknown instead of an error: a reset leads on from a damaged state, table or source."""
    try:
        yield
    except StrandlineError as error:
        lines.append(f"it is unknown {what}: {error.message}")


def _may_have_moved(platform: Opener, dataflow: Dataflow, last: Entry | None) -> bool:
    """Return whether the files of the table's rows may lie elsewhere: another source, or nobody knows."""
    changed = changed_parts(dataflow, last, platform.log) if last else None
    return changed is None or any(change.part in ("source", "extensions") for change in changed)


def _lost_rows(
    dataflow: Dataflow, table: Table, rules: StateRules, last: Entry | None, rows: int
) -> LostRows:
    """Return the rows that the table lacks, and that come back as far as the source has them."""
    if last is None:
        adopted = adopted_state(table)
        return lost_since_created(table, adopted.app_id if adopted else None, rows)
    lost_rows = rules.lost_above(last, "{}") if isinstance(rules, TellsLostRows) else lost_in_all(table, last)
    return (
        lost_rows
        if lost_rows.are_none
        else dataclasses.replace(lost_rows, is_other_table=not _fits(dataflow, last, table))
    )


def _fits(dataflow: Dataflow, last: Entry, table: Table) -> bool:
    """Return whether a table is as the state knows it, apart from rows that others have changed."""
    try:
        check_table(dataflow, last, table)
    except NeedsDecision:
        return False
    return True
