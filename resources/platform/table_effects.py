"""Describe what a definition or a decision means for tables, beside the rows that a run loads.

A plan and the preview of a decision say it: columns of partitions that are ignored, rows that stay in
another table, tables downstream that keep what they have loaded (docs/reference/state.md, accept).
"""

from __future__ import annotations

from collections.abc import Iterator

from partitions.dataflow import Dataflow
from partitions.fingerprint import short_hash
from partitions.plan import pluralize
from resources.loop.entries import names_other_table
from resources.loop.guards.definition import definition_of
from resources.platform.stores import Stores
from resources.tables.registry import find_table
from resources.watermarks.entry import Entry


def describe_table_effects(
    stores: Stores, dataflow: Dataflow, entry: Entry | None, before: Entry | None
) -> Iterator[str]:
    """Yield sentences about the tables that a dataflow leaves as they are.

    Args:
        stores: the resources.
        dataflow: the definition.
        entry: the entry that the next run builds on.
        before: the entry before a decision; ``entry`` itself if there was none.
    """
    if entry is None:
        return
    yield from _emptied_table(stores, dataflow, entry)
    # A plan opens the table after a change only: each look at a table in a bucket costs requests.
    if before is not entry or entry.definition != short_hash(definition_of(dataflow)):
        yield from _ignored_partitions(stores, dataflow, entry)
    yield from _rows_left_behind(stores, dataflow, before)
    if before is not None and before.total_rows and _replaces_rows(entry):
        yield from _stale_tables(stores, dataflow.table, "its rows are replaced")


def _ignored_partitions(stores: Stores, dataflow: Dataflow, entry: Entry) -> Iterator[str]:
    """Yield a sentence if a table keeps other partition columns than the definition has."""
    table = stores.table(dataflow)
    if entry.replace_table or not table.exists():
        return
    columns = table.contents.partition_columns()
    if columns is None or _folded(columns) == _folded(dataflow.target.partition_by):
        return
    yield (
        f"partition_by: {', '.join(dataflow.target.partition_by) or 'none'} is ignored: table {dataflow.table} keeps the partitions that it was"
        f" created with ({', '.join(columns) or 'none'}). `state reset --replace` creates them anew"
    )


def _emptied_table(stores: Stores, dataflow: Dataflow, entry: Entry) -> Iterator[str]:
    """Yield a sentence if a pending reset empties the table."""
    table = stores.table(dataflow)
    if entry.replace_table and table.exists():
        rows = pluralize(table.contents.count_rows(), "row")
        yield f"the first commit deletes all {rows} of table {dataflow.table}"


def _rows_left_behind(stores: Stores, dataflow: Dataflow, before: Entry | None) -> Iterator[str]:
    """Yield sentences if the dataflow loaded another table before: its rows, and who reads them."""
    if before is None or before.table is None or not names_other_table(dataflow, before):
        return
    contents = find_table(stores.lake.child(before.table)).contents
    if row_count := contents.count_rows():
        yield (
            f"{pluralize(row_count, 'row')} stay in {before.table}, which no run loads any more: {dataflow.table} gets only what is loaded from now on"
        )
    yield from _stale_tables(stores, before.table, "it gets no more rows")


def _stale_tables(stores: Stores, table: str, why: str) -> Iterator[str]:
    """Yield a sentence that names the dataflows which read a table and keep what they loaded of it."""
    if readers := stores.lineage.readers_of(table):
        yield f"{', '.join(readers)} read {table}, and keep what they have loaded of it although {why}"


def _replaces_rows(entry: Entry) -> bool:
    return entry.replace_table or entry.replace_until is not None


def _folded(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in columns)
