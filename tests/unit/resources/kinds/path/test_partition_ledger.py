"""The ledger of partitions counts what a naive look at each file counts, however the record is merged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resources.kinds.path.source_comparison as comparison
import resources.watermarks.ingested as record_module
from partitions.ledger_bounds import LedgerBounds
from partitions.path.copies import SAME_CONTENT
from partitions.path.listing_positions import FromBeginning
from resources.connections.places import Place
from resources.decisions.reasons import IN_TABLE, SET
from resources.kinds.path.partition_ledger import newest_partitions, partition_ledger
from resources.listing import Budget, list_above
from resources.watermarks.file_ranges import UNPROCESSED, FileRange
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import INGESTED_FILES, StoredList
from tests.support.arrivals import NOW, Arrivals

PATHS = [
    f"{folder}{name}.ndjson"
    for folder in ("", "date=2026-01-01/", "date=2026-01-02/", "é/b/")
    for name in "abc"
]

handled = st.lists(
    st.tuples(
        st.sampled_from(PATHS),
        st.sampled_from(["as it is", "as it is", "other version", "other size"]),
        st.sampled_from([None, None, None, IN_TABLE, SET, UNPROCESSED, f"{SAME_CONTENT}x", "bad"]),
    ),
    max_size=6,
    unique_by=lambda row: row[0],
)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "_RANGE", 3)
    monkeypatch.setattr(comparison, "_FOLDER_STEP", Budget(pages=1))
    monkeypatch.setattr(comparison, "_TABLES", 2)


@given(
    st.sets(st.sampled_from(PATHS)),
    st.lists(st.tuples(handled, st.booleans()), max_size=4),
    st.sets(st.sampled_from(PATHS)),
)
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_each_file(
    tmp_path_factory: pytest.TempPathFactory,
    first_files: set[str],
    batches: list[tuple[list[tuple[str, str, str | None]], bool]],
    removed: set[str],
) -> None:
    arrivals = Arrivals(tmp_path_factory.mktemp("files"))
    arrivals.put(*sorted(first_files))
    place, log = Place(str(arrivals.landing)), arrivals.platform.log
    listed = {file.path: file for file in list_above(place, FromBeginning(), (".ndjson",)).listed.files}
    last: dict[str, tuple[int, str, int, str | None]] = {}
    for number, (rows, merges) in enumerate(batches, 1):
        stored: list[list[Any]] = []
        for path, how, reason in rows:
            file = listed.get(path)
            size, version, modified = (file.size, file.version, file.modified) if file else (1, "v", 0)
            size, version = size + (how == "other size"), version + "!" * (how == "other version")
            stored.append([path, size, version, modified, reason])
            last[path] = (size, version, modified, reason)
        key = log.put_list("arrivals", f"{number:010d}-y", StoredList(INGESTED_FILES, stored))
        arrivals.commit(["z"], file_list=key)
        if merges:
            IngestedFiles(log, "arrivals", arrivals.newest).merge(1)
    for path in removed & set(listed):
        (arrivals.landing / path).unlink()
        del listed[path]

    ledger = partition_ledger(
        arrivals.platform, arrivals.flow, arrivals.newest, NOW, LedgerBounds(), compare=True
    )
    counted: Counter[tuple[str, str]] = Counter()
    for path, (size, version, modified, reason) in last.items():
        partition = path.rpartition("/")[0] or ("2026-05-31" if modified else "")
        loaded = reason in (None, IN_TABLE)
        counted[partition, "files"] += loaded
        counted[partition, "bytes"] += size if loaded else 0
        counted[partition, "skipped"] += reason == SET
        counted[partition, "duplicates"] += bool(reason and reason.startswith(SAME_CONTENT))
        counted[partition, "gone_files"] += loaded and path not in listed
        if (file := listed.get(path)) is not None:
            counted[partition, "changed"] += loaded and (file.size, file.version) != (size, version)
            counted[partition, "waiting"] += reason == UNPROCESSED
    for path in set(listed) - set(last):
        counted[path.rpartition("/")[0] or "2026-05-31", "waiting"] += 1
    assert {
        (partition.name, name): count
        for partition, counts in ledger.ledger.partitions
        for name, count in counts._asdict().items()
        if count
    } == {key: count for key, count in counted.items() if count}
    assert ledger.comparison is not None
    assert set(ledger.comparison.gone_files) == {
        path for path, row in last.items() if row[3] in (None, IN_TABLE) and path not in listed
    }


def test_the_newest_partitions_need_the_last_ranges_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals = Arrivals(tmp_path)
    arrivals.commit([f"d={number:02}/{name}" for number in range(9) for name in "ab"])
    IngestedFiles(arrivals.platform.log, "arrivals", arrivals.newest).merge(1)
    record = IngestedFiles(arrivals.platform.log, "arrivals", arrivals.newest)
    read: list[str] = []
    table = IngestedFiles.table

    def noted(record: IngestedFiles, range_: FileRange) -> Any:
        read.append(range_.name)
        return table(record, range_)

    monkeypatch.setattr(IngestedFiles, "table", noted)
    newest = newest_partitions(arrivals.flow, record, 2)
    assert [(partition.name, counts.files) for partition, counts in newest] == [("d=07", 2), ("d=08", 2)]
    assert len(read) == 2
