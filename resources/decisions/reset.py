"""Reset of a dataflow: an empty watermark, and the table emptied or kept (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from resources.decisions.draft import (
    Draft,
    DraftBuilder,
    draft_entry,
)
from resources.decisions.gone_files import gone_note
from resources.kinds.contract.decisions import KnowsFiles, StateRules, TellsLostRows
from resources.kinds.contract.lost_rows import LostRows, lost_in_all, lost_since_created
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
            modified=None,
            pinned=None,  # the next run reads a schema again
            since=None,
            replace_until=None,
            replace_table=replace,
            quarantine=None,
        )
        notes = _describe_table(platform, dataflow, last, replace=replace)
        return Draft(entry.model_copy(update={"era": entry.number}), notes=notes)

    return build_draft


def _describe_table(
    platform: Opener, dataflow: Dataflow, last: Entry | None, *, replace: bool
) -> tuple[str, ...]:
    """Return which rows go, and which come back although others deleted them, for people."""
    table, rules = platform.table(dataflow), platform.rules(dataflow)
    if not table.exists():
        return ()
    rows, lines = table.contents.count_rows(), []
    if replace:
        lines.append(f"the first commit deletes all {pluralize(rows, 'row')} of table {dataflow.table}")
    if isinstance(rules, KnowsFiles):
        with _unless_unknown(lines, "which loaded files are missing at the source"):
            lines += gone_note(rules.gone_above(last, "{}"), "delete" if replace else "keep")
    with _unless_unknown(lines, "whether others deleted rows, which come back as far as the source has them"):
        lost_rows = _lost_rows(table, rules, last, rows)
        lines += [] if lost_rows.are_none else [lost_rows.describe()]
    return tuple(lines)


@contextmanager
def _unless_unknown(lines: list[str], what: str) -> Iterator[None]:
    """Say what is unknown instead of an error: a reset leads on from a damaged state, table or source."""
    try:
        yield
    except StrandlineError as error:
        lines.append(f"it is unknown {what}: {error.message}")


def _lost_rows(table: Table, rules: StateRules, last: Entry | None, rows: int) -> LostRows:
    """Return the rows that others deleted, and that come back as far as the source has them."""
    if last is None:
        adopted = adopted_state(table)
        return lost_since_created(table, adopted.app_id if adopted else None, rows)
    return rules.lost_above(last, "{}") if isinstance(rules, TellsLostRows) else lost_in_all(table, last)
