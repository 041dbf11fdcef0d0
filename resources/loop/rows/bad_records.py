"""Bad records, written into a table of their own before the slice's rows.

See docs/reference/schemas.md, Bad records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.loads import Append, Load, Replace
from partitions.plan import pluralize
from partitions.predicate import Among
from partitions.table_names import bad_records_table
from resources.kinds.contract.bad_parts import SetsRecordsAside
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.side_tables import check_number_is_ours
from resources.outcome import Step
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.table import Table
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from resources.sources.files.checked import BadRecord

FILE = "file"
"""The column with the path of a record's file."""

_COLUMNS = f"{FILE} string, position long, text string, reason string, number long, run_id string, set_aside_at timestamp"


def set_records_aside(run: RunContext[SliceT], intent: Intent, slice_: SliceT) -> None:
    """Write the bad records of a slice into their table, in one commit under the slice's number.

    A second call writes nothing. Files that a rewind or release loads again replace their records.

    Raises:
        BadPart: there are more than ``max_bad_records``.
        NeedsDecision: code ``foreign_tag``: their table is ahead of the state.
        Conflict: another run has given the number up.
    """
    table, bad_parts = run.bad_records, run.kind.bad_parts
    if table is None or not isinstance(bad_parts, SetsRecordsAside):
        return
    records = bad_parts.bad_records(run.spark, slice_, run.log.get_schema(intent.pinned))
    run.set_aside.note(records, bad_records_table(run.dataflow))
    tip, parts = table.tip(intent.app_id), bad_parts.parts(slice_)
    if tip.highest_tag >= intent.number:
        check_number_is_ours(run, table, str(bad_records_table(run.dataflow)), intent)
        return
    base = tip.version
    if not records and (base is None or not table.contents.holds_any(base, Among(FILE, tuple(parts)))):
        return
    load = Append() if base is None else Replace(Among(FILE, tuple(parts)))
    _write(run, table, intent, records, load, base)
    run.notify(Step.SET_ASIDE, f"slice {intent.number}: {pluralize(len(records), 'bad record')} set aside")


def _write(
    run: RunContext[SliceT],
    table: Table,
    intent: Intent,
    records: Sequence[tuple[str, BadRecord]],
    load: Load,
    base: Version | None,
) -> None:
    from pyspark.sql import functions as F

    values = [
        (path, record.line, record.text, record.why, intent.number, intent.run_id) for path, record in records
    ]
    columns = _COLUMNS.rpartition(",")[0]
    rows = run.spark.createDataFrame(values, columns).withColumn(
        "set_aside_at", F.lit(intent.time).cast("timestamp")
    )
    tag = Tag(intent.app_id, intent.number, intent.id)
    table.write(rows, load, tag, "{}", base=base)
