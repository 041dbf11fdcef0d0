"""What the log of a Delta table alone says of each commit, whoever wrote it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from benchmarks.long_log import TAIL, write_long_log
from partitions.errors import NeedsDecision
from resources.connections.places import Place
from resources.tables.contract.commit_log import LoggedCommit, ReadPosition
from resources.tables.delta.commit_log import DeltaCommits
from resources.tables.delta.log import DeltaLog, LogCheckpoint
from resources.tables.delta.log_state import read_state


def _append(folder: Path, *ids: int) -> None:
    write_deltalake(str(folder), pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def _commits(folder: Path) -> DeltaCommits:
    return DeltaCommits(DeltaLog(Place(str(folder))))


def _logged(folder: Path, since: int | None = None) -> tuple[LoggedCommit, ...]:
    return _commits(folder).since(None if since is None else ReadPosition(since)).commits


def _put(folder: Path, version: int, operation: str, metrics: dict[str, int], *actions: object) -> None:
    info = {
        "timestamp": 1_700_000_000_000,
        "operation": operation,
        "operationMetrics": {name: str(count) for name, count in metrics.items()},
        "engineInfo": "Apache-Spark/4.1.4 Delta-Lake/4.4.0",
    }
    lines = [{"commitInfo": info}, *actions]
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    (folder / "_delta_log" / f"{version:020d}.json").write_text(text)


def test_a_commit_is_told_by_what_it_does_to_files(tmp_path: Path) -> None:
    _append(tmp_path, 1, 2)
    _append(tmp_path, 3)
    DeltaTable(str(tmp_path)).optimize.compact()
    DeltaTable(str(tmp_path)).delete("id = 1")
    DeltaTable(str(tmp_path)).restore(1)
    write_deltalake(str(tmp_path), pa.table({"id": pa.array([9], pa.int64())}), mode="overwrite")
    logged = _logged(tmp_path)
    assert [(commit.kind, commit.rows) for commit in logged] == [
        ("appends", 2),
        ("appends", 1),
        ("nothing", 0),
        ("rewrites", None),
        ("rewrites", None),
        ("rewrites", None),
    ]
    assert [commit.only_inserts for commit in logged] == [True, True, True, False, False, False]
    assert all(commit.files and commit.bytes for commit in logged if commit.kind != "nothing")
    assert logged[1].description == "version 1 (WRITE by delta-rs) adds 1 row"


def test_the_counts_of_a_merge_by_spark_say_what_changed(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    file = {"path": "a.parquet", "partitionValues": {}, "size": 5, "dataChange": True}
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    for version, counts in enumerate([(0, 1200, 3), (0, 0, 0), (4, 0, 0)], start=1):
        _put(
            tmp_path, version, "MERGE", dict(zip(names, counts, strict=True)), {"remove": file}, {"add": file}
        )
    changing, nothing, inserting = _logged(tmp_path, 0)
    assert changing.description == "version 1 (MERGE by Spark) updates 1,200 rows and deletes 3"
    assert (changing.kind, changing.only_inserts) == ("rewrites", False)
    assert (nothing.kind, nothing.files, nothing.changes) == ("nothing", 0, None)
    assert (inserting.kind, inserting.only_inserts, inserting.rows) == ("rewrites", True, 4)
    assert nothing.time == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_the_counts_of_another_writer_prove_nothing(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    source = pa.table({"id": pa.array([1], pa.int64())})
    merge = DeltaTable(str(tmp_path)).merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update({"id": "s.id"}, predicate="t.id > 5").execute()
    assert [commit.kind for commit in _logged(tmp_path, 0)] in (["rewrites"], [])


def test_a_version_has_the_same_files_from_each_kind_of_checkpoint(tmp_path: Path) -> None:
    for number in range(4):
        _append(tmp_path, number)
    DeltaTable(str(tmp_path)).delete("id = 2")
    listed = [file.path for file in _commits(tmp_path).snapshot_files(ReadPosition(4))]
    DeltaTable(str(tmp_path)).create_checkpoint()
    _append(tmp_path, 5)
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    commits = _commits(tmp_path)
    assert [file.path for file in commits.snapshot_files(ReadPosition(4))] == listed
    assert [file.rows for file in commits.snapshot_files(ReadPosition(5))] == [1, 1, 1, 1]
    assert commits.since(ReadPosition(4)).table == str(DeltaTable(str(tmp_path)).metadata().id)


def test_a_range_that_the_log_no_longer_has_names_the_missing_version(tmp_path: Path) -> None:
    for number in range(4):
        _append(tmp_path, number)
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(NeedsDecision, match="starts at version 1 or before") as error:
        _logged(tmp_path, 0)
    assert error.value.code == "versions_gone"
    with pytest.raises(NeedsDecision, match="expected version 1 in its log") as error:
        _commits(tmp_path).snapshot_files(ReadPosition(1))
    assert error.value.code == "versions_gone"


def test_a_range_ends_at_the_same_commit_or_says_that_it_is_another(tmp_path: Path) -> None:
    for number in range(3):
        _append(tmp_path, number)
    first, second, third = _logged(tmp_path)
    commits = _commits(tmp_path)
    assert commits.since(first.read_position, second.read_position).commits == (second,)
    assert commits.since(None, second.read_position).commits == (first, second)
    assert commits.since(third.read_position).commits == ()
    with pytest.raises(NeedsDecision) as error:
        commits.since(first.read_position, ReadPosition(1, third.id))
    assert error.value.code == "versions_gone"
    with pytest.raises(NeedsDecision) as error:
        commits.since(ReadPosition(1, third.id))
    assert error.value.code == "source_replaced"


def test_a_table_behind_the_position_has_no_commits_and_an_older_newest_version(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    logged = _commits(tmp_path).since(ReadPosition(7))
    assert (logged.newest, logged.commits) == (0, ())


def test_a_look_behind_a_known_position_reads_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_long_log(tmp_path, 30, 60)
    table = str(DeltaTable(str(tmp_path)).metadata().id)
    position = _logged(tmp_path)[-3].read_position
    for file in (tmp_path / "_delta_log").iterdir():
        if file.name < f"{position.version:020d}":
            file.write_bytes(b"unreadable")
    _forbid_listings(monkeypatch)
    commits = _commits(tmp_path)
    logged = commits.since(position, table=table)
    assert (logged.table, [commit.rows for commit in logged.commits]) == (table, [2, 2])
    assert commits.since(logged.commits[-1].read_position, table=table).commits == ()


def test_a_commit_that_sets_columns_tells_the_id_of_its_table(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    (first,) = _logged(tmp_path)
    metadata = {"id": "another", "format": {}, "schemaString": "{}", "configuration": {}}
    _put(tmp_path, 1, "CREATE OR REPLACE TABLE", {}, {"metaData": metadata})
    assert _commits(tmp_path).since(first.read_position, table="table").table == "another"


def test_a_state_is_read_without_a_listing_from_the_checkpoint_that_the_log_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_long_log(tmp_path, 30, 60)
    whole = read_state(DeltaLog(Place(str(tmp_path))), 27, with_files=True)
    assert (len(whole.files), whole.table_id) == (28, str(DeltaTable(str(tmp_path)).metadata().id))
    for file in (tmp_path / "_delta_log").glob("*.json"):
        if file.name < f"{30 - TAIL:020d}":
            file.unlink()
    _forbid_listings(monkeypatch)
    assert read_state(DeltaLog(Place(str(tmp_path))), 27, with_files=True) == whole


@pytest.mark.parametrize(
    "note", ['{"version": 29, "size": 1}', '{"version": 24, "size": 1, "parts": 2}', "[]", "{}", "no JSON"]
)
def test_a_wrong_note_of_the_last_checkpoint_does_no_harm(tmp_path: Path, note: str) -> None:
    write_long_log(tmp_path, 30, 60)
    log = DeltaLog(Place(str(tmp_path)))
    whole = read_state(log, 29, with_files=True)
    (tmp_path / "_delta_log/_last_checkpoint").write_text(note)
    assert read_state(log, 29, with_files=True) == whole


def test_the_note_of_a_checkpoint_tells_the_names_of_its_files() -> None:
    stem = f"{7:020d}.checkpoint"
    assert LogCheckpoint.of({"version": 7, "size": 3}).names == (f"{stem}.parquet",)
    assert LogCheckpoint.of({"version": 7, "parts": 2}).names == (
        f"{stem}.{1:010d}.{2:010d}.parquet",
        f"{stem}.{2:010d}.{2:010d}.parquet",
    )
    name = f"{stem}.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    assert LogCheckpoint.of({"version": 7, "v2Checkpoint": {"path": name}}).names == (name,)


def _forbid_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(*_: object) -> None:
        raise AssertionError("listed")

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, listing)
