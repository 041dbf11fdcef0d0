"""Refuse to replace the rows of files that the table does not hold under the file's path.

What replaces the rows of a file finds them by their path. Rows that carry another path, or none, would stay
in the table beside the ones that are loaded again.
"""

from __future__ import annotations

from collections.abc import Callable

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.kinds.path.lost import find_lost_rows
from resources.kinds.path.other_names import find_other_names
from resources.kinds.path.row_counts import count_rows_of_files
from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_NAMED = 5


def check_rows_have_paths(
    log: WatermarkLog,
    dataflow: Dataflow,
    table: Table,
    entry: Entry | None,
    is_chosen: Callable[[str], bool],
) -> None:
    """Raise if rows of chosen files cannot be found by the file's path; keys find rows without it.

    Args:
        log: the log.
        dataflow: the dataflow.
        table: its table.
        entry: the newest entry.
        is_chosen: whether the rows of a path are to be replaced.

    Raises:
        ConfigurationError: code ``other_names``: an operator took a file as loaded under another name; code
            ``rows_without_file``: loaded rows carry no path.
    """
    if entry is None or not dataflow.target.only_adds or not table.exists():
        return
    records = find_other_names(log, dataflow.name, table, entry)
    paths = sorted(record.path for record in (*records.loaded, *records.unsure) if is_chosen(record.path))
    if paths:
        raise _refusal(
            dataflow,
            f"expected files whose rows carry their path, found {pluralize(len(paths), 'file')} that `state accept --below loaded` took "
            f"as loaded under other names: {first_few(paths, _NAMED)}",
            code="other_names",
        )
    if SOURCE_FILE not in table.contents.columns():
        return  # refused before, where rows have to be replaced
    rows_with_path = sum(count_rows_of_files(table).values())
    rows_without_path = table.contents.count_rows() - rows_with_path
    if not rows_without_path:
        return
    lost_rows = find_lost_rows(log, dataflow, table, entry, is_chosen)
    if lost_rows.rows if lost_rows.is_exact else rows_with_path < entry.total_rows:
        raise _refusal(
            dataflow,
            f"expected rows with a value in {SOURCE_FILE}, found {pluralize(rows_without_path, 'row')} without one in table "
            f"{dataflow.table}: they were loaded while origin_columns was false, or sql left the column out",
            code="rows_without_file",
        )


def _refusal(dataflow: Dataflow, why: str, *, code: str) -> ConfigurationError:
    return ConfigurationError(
        f"dataflow {dataflow.name}: {why}. Their rows cannot be found by path, so they would be in the table "
        "twice. Load everything again with `state reset --replace`, or choose other files",
        code=code,
        choices=(f"strandline state reset {dataflow.name} --replace --reason TEXT",),
    )
