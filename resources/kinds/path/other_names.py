"""Find files that were taken as loaded under other names, and whether the table has their rows.

`state accept --below loaded` records such files. Their rows carry the paths of other files, so the table
does not tell whether it holds them: it does if it has the loads before that decision
(docs/reference/state.md, set, accept and import).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from partitions.errors import CorruptWatermark, NeedsDecision
from partitions.watermark import is_empty
from resources.decisions.reasons import OTHER_ROOT
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.table import Table
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.file_ranges import IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_HISTORY = 1_000_000


@dataclass(frozen=True)
class RecordsOfOtherNames:
    """The records of files that count as loaded under other names.

    Attributes:
        loaded: those whose rows are in the table.
        unsure: those whose rows the table may lack.
    """

    loaded: tuple[IngestedFile, ...] = ()
    unsure: tuple[IngestedFile, ...] = ()


def find_other_names(
    log: WatermarkLog, dataflow: str, table: Table, last: Entry | None
) -> RecordsOfOtherNames:
    """Return the records up to an entry, also those of files that a reset has made the log forget.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        table: its table, whose newest commit tells which loads it has.
        last: the newest entry.
    """
    if last is None:
        return RecordsOfOtherNames()
    history = [past for past in log.history(dataflow, _HISTORY) if past.number <= last.number]
    records: dict[str, IngestedFile] = {}
    newer: list[IngestedFiles] = []
    with suppress(CorruptWatermark):  # lists of an earlier era may be deleted by now
        for entry in _ends_of_eras(last, history):
            ingested = IngestedFiles(log, dataflow, entry)
            of_era = {record.path: record for record in ingested.with_reason(OTHER_ROOT)}
            for era in newer:  # whose records count
                of_era = {path: of_era[path] for path in of_era.keys() - era.find_records([*of_era]).keys()}
            records |= of_era
            newer.append(ingested)
    if not records:
        return RecordsOfOtherNames()
    number = _number_of_commit(log, dataflow, table, last)
    fates = {path: _has_rows(record.number, number, history) for path, record in records.items()}
    return RecordsOfOtherNames(
        tuple(records[path] for path, has_rows in fates.items() if has_rows),
        tuple(records[path] for path, has_rows in fates.items() if has_rows is None),
    )


def _ends_of_eras(last: Entry, history: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the newest entry, and the one before each reset that no later decision has taken back.

    Args:
        last: the newest entry.
        history: all entries up to it, newest first.
    """
    end: Entry | None = last
    while end is not None:
        yield end
        number = end.era
        of_era = [past for past in history if number < past.number <= end.number]
        if not any(past.number == number == past.era for past in history) or _is_complete(of_era):
            return  # no reset begins the era; or its first entry lists all files that the table holds
        end = next((past for past in history if past.number < number), None)


def _is_complete(of_era: Sequence[Entry]) -> bool:
    """Return whether the first entry of an era lists the files that a table holds, as an adopt does."""
    if not of_era or of_era[-1].era != of_era[-1].number - 1:
        return False
    why = of_era[-1].why
    return why in ("adopt", "import") or (why == "rewind" and not is_empty(of_era[-1].state()))


def _number_of_commit(log: WatermarkLog, dataflow: str, table: Table, last: Entry) -> int | None:
    """Return the number of the newest commit whose rows the table has; None if nothing tells it."""
    with suppress(NeedsDecision):
        adopted = adopted_state(table, last.app_id)
        if adopted is None or adopted.beyond or not adopted.number:
            return None
        entry = log.find(dataflow, adopted.number)
        return adopted.number if entry is not None and entry.id == adopted.owner else None
    return None


def _has_rows(number: int, commit: int | None, history: Sequence[Entry]) -> bool | None:
    """Return whether a table has the rows of a file that a decision took as loaded; None if unknown.

    Args:
        number: the number of that decision.
        commit: the number of the newest commit that the table has; None if it is unknown.
        history: all entries, newest first.
    """
    loads = (past.number for past in history if past.number < number and past.why in LOADS)
    if commit is None or commit < next(loads, 0):
        return None
    later = [past for past in history if number < past.number <= commit]
    emptied = any(
        before.replace_table and not past.replace_table and past.why in LOADS
        for past, before in pairwise(later)
    )
    if emptied:
        return False
    # A reset that keeps the table may have come with a table of its own.
    return None if any(past.era == past.number for past in later) else True
