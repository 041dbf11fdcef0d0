"""Keep the rows that a pending ``reset --replace`` would delete if a later decision takes it back.

See docs/reference/state.md, reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from resources.kinds.contract.decisions import HeldFiles, KnowsFiles, NeverGoesBack, StateRules
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry


def files_before_reset(rules: StateRules, last: Entry | None, watermark: str) -> HeldFiles:
    """Return the files whose rows the table holds, if a reset has made the log forget them; else none.

    A file that the source lacks would be late when it comes back.
    """
    if last is None or not last.era or not isinstance(rules, KnowsFiles):
        return HeldFiles()
    return rules.held_files(last, None, watermark)


@dataclass(frozen=True)
class KeptRows:
    """The rows that stay although a pending reset would have deleted them.

    Attributes:
        fields: fields of the decision's entry.
        notes: what becomes of the rows, for people.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def take_back_reset(
    platform: Opener, dataflow: Dataflow, last: Entry | None, watermark: str, held_files: HeldFiles
) -> KeptRows:
    """Return what a decision that keeps rows says of a pending reset; nothing if none is pending.

    The next loads delete what they read again, if rows tell where they were read from.
    """
    if last is None or not last.replace_table:
        return KeptRows()
    until, fate = _loaded_above(platform, dataflow, last, watermark, held_files)
    fields = {"replace_table": False, "replace_until": until}
    rows = pluralize(platform.table(dataflow).contents.count_rows(), "row")
    return KeptRows(
        fields, (f"the reset before deletes nothing any more: {rows} of table {dataflow.table} stay{fate}",)
    )


def _loaded_above(
    platform: Opener, dataflow: Dataflow, last: Entry, watermark: str, held_files: HeldFiles
) -> tuple[str | None, str]:
    """Return the state up to which the next loads delete what they read again, and words about it.

    None if they delete nothing: no row lies above the watermark, a load finds rows by keys, or nothing
    tells where rows were read from.
    """
    rules = platform.rules(dataflow)
    if not dataflow.target.only_adds or isinstance(rules, NeverGoesBack):
        return None, ""
    unknown = (None, "; those above the watermark will be there twice once they are read again")
    if isinstance(rules, KnowsFiles):
        if held_files.counts is None:
            return unknown
        until = held_files.replace_until
    else:
        try:
            until = rules.loaded_upper_bound(last)
        except ConfigurationError:
            return unknown
    if until is None or platform.kind(dataflow).planning.covers(watermark, until):
        return None, ""
    return until, "; each commit deletes what it reads of them above the watermark, and inserts it again"
