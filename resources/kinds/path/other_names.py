"""Files whose rows have another file's path, since an operator took them as loaded under other names.

``state accept --below loaded`` does that (docs/reference/state.md, accept). What replaces the rows of a file
finds them by their path, so it would leave these rows in the table beside the ones it loads.
"""

from __future__ import annotations

from collections.abc import Callable

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.reasons import OTHER_ROOT
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_NAMED = 5


def check_rows_have_paths(
    log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, is_chosen: Callable[[str], bool]
) -> None:
    """Raise if a chosen file was taken as loaded under another name, unless keys find its rows.

    Args:
        log: the log.
        dataflow: the dataflow.
        entry: the newest entry.
        is_chosen: whether the rows of a path are to be replaced.

    Raises:
        ConfigurationError: code ``other_names``.
    """
    if entry is None or not dataflow.target.only_adds:
        return
    records = IngestedFiles(log, dataflow.name, entry).with_reason(OTHER_ROOT)
    paths = sorted(record.path for record in records if is_chosen(record.path))
    if not paths:
        return
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected files whose rows carry their path, found {pluralize(len(paths), 'file')} that "
        f"`state accept --below loaded` took as loaded under other names: {first_few(paths, _NAMED)}. Their rows cannot be found by "
        "path, so they would be in the table twice. Load everything again with `state reset --replace`, or choose other files",
        code="other_names",
        choices=(f"strandline state reset {dataflow.name} --replace --reason TEXT",),
    )
