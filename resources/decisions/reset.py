"""Reset of a dataflow: an empty watermark, and the table emptied or kept (docs/reference/state.md)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.decisions.draft import (
    Draft,
    DraftBuilder,
    draft_entry,
)
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry


def reset(reason: str, *, replace: bool = False) -> DraftBuilder:
    """Empty the watermark, whatever became of the table.

    Args:
        reason: the operator's reason.
        replace: whether the next run's first commit empties the table; else the table stays as it is.
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
        return Draft(entry.model_copy(update={"era": entry.number}))

    return build_draft
