"""Files that are gone at the source while the table still holds their rows.

A replacing rewind or replay has nothing to load in their place, so an operator says whether their rows stay
(docs/reference/state.md, rewind).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from partitions.path.order import pair_order
from resources.decisions.reasons import WITH_ROWS
from resources.kinds.path.row_counts import count_rows_of_files
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog


def find_gone_files(
    log: WatermarkLog,
    dataflow: str,
    table: Table,
    entry: Entry | None,
    is_chosen: Callable[[str], bool],
    existing: Collection[str],
) -> Mapping[str, int]:
    """Return how many rows the table holds of each loaded file that is gone at the source, in pair order.

    Rows of other writers do not count. Without an entry, and after a reset, the log does not know what was
    loaded before, so every file with rows counts.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        table: the table, whose rows tell their file.
        entry: the newest entry, if there is one.
        is_chosen: whether a path counts.
        existing: the paths that the source has.
    """
    rows = {path: count for path, count in count_rows_of_files(table).items() if is_chosen(path)}
    missing = sorted((path for path in rows if path not in existing), key=pair_order)
    if entry is not None and not entry.era and missing:
        records = IngestedFiles(log, dataflow, entry).find_records(missing)
        missing = [path for path in missing if path in records and records[path].reason in WITH_ROWS]
    return {path: rows[path] for path in missing}
