"""Rows of loaded files that others have deleted from the table, file by file where entries tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from partitions.dataflow import Dataflow
from partitions.path.order import pair_order
from resources.decisions.reasons import DELETED, IN_TABLE
from resources.kinds.contract.lost_rows import LostRows, lost_in_all
from resources.kinds.path.row_counts import count_rows_of_files
from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table
from resources.watermarks.entry import DELETES, LOADS, Entry
from resources.watermarks.file_ranges import IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_ALL = 1_000_000


def find_lost_rows(
    log: WatermarkLog, dataflow: Dataflow, table: Table, entry: Entry, is_chosen: Callable[[str], bool]
) -> LostRows:
    """Return the rows of chosen files that others have deleted.

    An entry counts the rows of its slice: what the table holds less of the slice's files is lost. Only all
    rows are counted if a load looks rows up by keys, if the log no longer has the entry of some file, or if
    a decision took a file as loaded and the table lacks rows.

    Args:
        log: the log.
        dataflow: the definition.
        table: the table.
        entry: the newest entry.
        is_chosen: whether a file of this path is read again.
    """
    if not table.exists():
        return LostRows()
    if not dataflow.target.only_adds or SOURCE_FILE not in table.contents.columns():
        return lost_in_all(table, entry)
    slices, taken_files = _files_by_entry(log, dataflow.name, entry, is_chosen)
    if not slices and not taken_files:
        return LostRows()
    lost_rows = lost_in_all(table, entry)
    entries = {past.number: past for past in log.history(dataflow.name, _ALL)}
    if any(past.why in DELETES for past in entries.values()):  # those rows do not come back
        return lost_rows
    counts = count_rows_of_files(table)
    by_slice = _lost_by_slice(entries, slices, counts)
    if by_slice is None or (taken_files and not lost_rows.are_none):
        return _lost_of_files(lost_rows, [*slices.values(), taken_files], counts, is_chosen)
    if any(file.reason == DELETED and file.path not in counts for file in taken_files):
        return _lost_of_files(LostRows(None), [taken_files], counts, is_chosen)
    return by_slice


def _lost_by_slice(
    entries: Mapping[int, Entry], slices: Mapping[int, Sequence[IngestedFile]], counts: Mapping[str, int]
) -> LostRows | None:
    """Return the rows that the table lacks of whole slices; None if the entry of one does not count them."""
    lost_rows, paths = 0, list[str]()
    for number, files in slices.items():
        past = entries.get(number)
        if past is None or past.why not in LOADS or past.files != len(files):
            return None
        missing = past.rows - sum(counts.get(file.path, 0) for file in files)
        if missing > 0:
            lost_rows += missing
            without_rows = [file.path for file in files if file.path not in counts]
            paths += without_rows or [file.path for file in files]
    return LostRows(lost_rows, tuple(sorted(paths, key=pair_order)), is_exact=True)


def _lost_of_files(
    lost_rows: LostRows,
    slices: Iterable[Sequence[IngestedFile]],
    counts: Mapping[str, int],
    is_chosen: Callable[[str], bool],
) -> LostRows:
    """Return rows that are counted as a whole, with the chosen files that have no row as examples."""
    paths = [file.path for files in slices for file in files]
    empty_paths = [path for path in paths if is_chosen(path) and path not in counts]
    return replace(lost_rows, files=tuple(sorted(empty_paths, key=pair_order)))


def _files_by_entry(
    log: WatermarkLog, dataflow: str, entry: Entry, is_chosen: Callable[[str], bool]
) -> tuple[Mapping[int, Sequence[IngestedFile]], Sequence[IngestedFile]]:
    """Return all files of each slice that has a chosen one, by its number; and chosen files of no slice.

    The latter are those that a decision took as loaded, whose rows nobody has counted by slice.
    """
    by_number = defaultdict[int, list[IngestedFile]](list)
    taken_files: list[IngestedFile] = []
    for file in IngestedFiles(log, dataflow, entry).all():
        if file.reason is None:
            by_number[file.number].append(file)
        elif file.reason in (IN_TABLE, DELETED) and is_chosen(file.path):
            taken_files.append(file)
    slices = {
        number: files for number, files in by_number.items() if any(is_chosen(file.path) for file in files)
    }
    return slices, taken_files
