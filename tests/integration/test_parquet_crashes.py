"""A Parquet table whose writers die anywhere: each row once at every version, for its own readers and for plain ones (docs/reference/parquet.md)."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.errors import RowsRefused, SourceError, TargetError
from partitions.loads import Append, Load, Replace, ReplaceAll
from partitions.predicate import Between, matches
from resources.connections.places import Place
from resources.tables.contract.commits import TableCommit, Tag
from resources.tables.parquet import commit
from resources.tables.parquet.commit import ParquetCommit, PlannedCommit
from resources.tables.parquet.commit_list import CommitList, ListedFile, TableSnapshot, apply_commit
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.maintenance import ParquetMaintenance
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.set_aside import RemovedFiles
from resources.tables.parquet.staging import CommitStaging, StagedFolder
from resources.tables.parquet.table import ParquetTable
from resources.tables.parquet.table_files import TableFiles
from tests.support.arrow import ArrowReplacement, Rows
from tests.support.jvmless import Killed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = pa.schema([("id", pa.int64())])


class _ArrowCommit(ParquetCommit):
    """A commit whose rows are Arrow's."""

    def _fit_rows(self, rows: Any, base: TableSnapshot) -> tuple[Any, str]:
        return rows, base.columns_json

    def _replacement(self, rows: Any, load: Replace, part: Any) -> Any:
        place = self.log.place.local
        assert place is not None
        return ArrowReplacement.of(rows, load, [place / file.path for file in part])

    def _write_files(self, rows: Any, folder: StagedFolder, layout: Any) -> None:
        target = self.placement.staging.place_of(folder).local
        assert target is not None
        target.mkdir(parents=True)
        written = rows.table.to_pylist()
        for index, chunk in enumerate((written[::2], written[1::2])):
            if chunk or not index:  # as Spark, which writes a file for no rows, too
                pq.write_table(pa.Table.from_pylist(chunk, schema=SCHEMA), target / f"part-{index}.parquet")


@dataclass
class Mortal:
    """A process that dies at its n-th change of what lasts, right before or right after it."""

    dies_at: int | None = None
    after: bool = False
    done: int = field(default=0, init=False)

    def change(self, act: Callable[[], Any]) -> Any:
        """Act, or die."""
        self.done += 1
        dies = self.done == self.dies_at
        if dies and not self.after:
            raise Killed
        made = act()
        if dies:
            raise Killed
        return made


class _MortalFiles(TableFiles):
    process: Mortal

    def _move(self, source: str, goal: str) -> None:
        self.process.change(lambda: super(_MortalFiles, self)._move(source, goal))


@dataclass(frozen=True)
class _MortalStaging(CommitStaging):
    process: Mortal

    def drop(self, folder: str) -> None:
        self.process.change(lambda: super(_MortalStaging, self).drop(folder))

    def begin(self, folder: StagedFolder) -> None:
        self.process.change(lambda: super(_MortalStaging, self).begin(folder))


class _MortalLog(CommitLog):
    process: Mortal

    def put(self, commit: CommitList) -> bool:
        return bool(self.process.change(lambda: super(_MortalLog, self).put(commit)))


class _Table(ParquetTable):
    def __init__(self, folder: Path, process: Mortal | None = None) -> None:
        place = Place(str(folder))
        super().__init__(place)
        log, files = _MortalLog(place), _MortalFiles(place)
        log.process = files.process = process or Mortal()
        self._log = log
        self._placement = Placement(files, _MortalStaging(files, files.process), RemovedFiles(files))

    def _commit(self, tag: Tag, state: str) -> ParquetCommit:
        return _ArrowCommit(self._log, self._placement, tag, state)


def _rows(*ids: int) -> DataFrame:
    return cast("DataFrame", Rows(pa.table({"id": pa.array(ids, pa.int64())})))


def _ids(table: ParquetTable, version: int) -> Counter[int]:
    """All rows of a version, by the product's own reader."""

    def ask(rows: Any) -> Counter[int]:
        return Counter(
            value
            for batch in rows._batches(["id"], Between("id", -1, None))
            for value in batch["id"].to_pylist()
        )

    return table.contents._query(ask, version)


def _plain_ids(folder: Path) -> Counter[int]:
    """All rows that a reader sees who knows nothing of lists."""
    files = list(folder.rglob("*.parquet"))
    return Counter(value for file in files for value in pq.read_table(file)["id"].to_pylist())


def _write(table: ParquetTable, number: int, load: Load, ids: tuple[int, ...], app: str = "app") -> None:
    table.write(
        _rows(*ids), load, Tag(app, number, f"intent {number}"), str(number), base=table.tip(app).version
    )


def _follow_up(table: ParquetTable) -> None:
    table.after_append(TableCommit(None), "flow")


_LOADS = st.one_of(
    st.just(Append()),
    st.builds(
        lambda lower, size: Replace(Between("id", lower, lower + size)), st.integers(0, 12), st.integers(1, 6)
    ),
    st.just(ReplaceAll()),
)


@dataclass(frozen=True)
class _Step:
    load: Load
    ids: tuple[int, ...]
    dies_at: int | None
    after: bool
    retried: int


_STEPS = st.lists(
    st.builds(
        _Step,
        _LOADS,
        st.lists(st.integers(0, 15), max_size=4).map(tuple),
        st.none() | st.integers(1, 12),
        st.booleans(),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30, deadline=None)
@given(_STEPS)
def test_each_row_is_there_once_wherever_writers_die(steps: list[_Step]) -> None:
    with TemporaryDirectory() as parent:
        folder, model, versions = Path(parent) / "table", Counter[int](), dict[int, Counter[int]]()
        for number, step in enumerate(steps, 1):
            ids = tuple(
                i
                for i in step.ids
                if not isinstance(step.load, Replace) or matches(step.load.where, {"id": i})
            )
            with suppress(Killed):
                dying = _Table(folder, Mortal(step.dies_at, step.after))
                _write(dying, number, step.load, ids)
                _follow_up(dying)
            before = model.copy()
            if isinstance(step.load, Replace) and versions:
                before = Counter({i: n for i, n in before.items() if not matches(step.load.where, {"id": i})})
            elif isinstance(step.load, ReplaceAll):
                before = Counter()
            model = before + Counter(ids)
            for _ in range(1 + step.retried):  # the run that recovers, and zombies after it
                _write(_Table(folder), number, step.load, ids)
            version = int(_Table(folder).contents.newest_version())
            versions[version] = model.copy()
            assert _ids(_Table(folder), version) == model
            assert not _plain_ids(folder) - model - sum(versions.values(), Counter())
            if number % 3 == 0 or number == len(steps):
                _follow_up(_Table(folder))
                assert _plain_ids(folder) == model
                left = (
                    [path.name for path in (folder.parent / "_staging" / "table").iterdir()]
                    if (folder.parent / "_staging" / "table").is_dir()
                    else []
                )
                assert set(left) <= {"removed"}
        assert len(versions) == len(steps)
        for version, rows in versions.items():
            assert _ids(_Table(folder), version) == rows
        head = _Table(folder).head(None, "app")
        assert (head.highest_tag, head.missing_files, head.foreign_files) == (len(steps), (), ())


def test_before_moves_own_readers_see_the_version_and_others_no_row_twice(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (1, 2, 3, 4))
    assert (_ids(_Table(folder), 1), _plain_ids(folder)) == (Counter((1, 2, 3, 4)), Counter())
    _follow_up(_Table(folder))
    assert _plain_ids(folder) == Counter((1, 2, 3, 4))
    _write(_Table(folder), 2, Replace(Between("id", 1, 3)), (2, 2))
    seen = []
    for moves in range(1, 12):
        with suppress(Killed):
            _follow_up(_Table(folder, Mortal(moves)))
        seen.append(_plain_ids(folder))
        assert _ids(_Table(folder), 2) == Counter((2, 2, 3, 4))
        assert _ids(_Table(folder), 1) == Counter((1, 2, 3, 4))
    assert seen[-1] == Counter((2, 2, 3, 4))
    old, new = Counter((1, 2, 3, 4)), Counter((2, 2, 3, 4))
    assert all(rows <= old or rows <= new for rows in seen)


def test_a_zombies_write_after_recovery_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (1,))
    _follow_up(_Table(folder))
    zombie = _Table(folder, Mortal(1))  # it dies as it comes to its commit
    with suppress(Killed):
        _write(zombie, 2, Append(), (2,))
    _write(_Table(folder), 2, Append(), (2,))
    _write(_Table(folder), 2, Append(), (2, 99))
    _write(_Table(folder), 1, Append(), (98,))
    _follow_up(_Table(folder))
    assert _plain_ids(folder) == Counter((1, 2))
    assert not (tmp_path / "_staging" / "table").is_dir() or not list(
        (tmp_path / "_staging" / "table").iterdir()
    )


def test_writers_of_several_dataflows_share_a_table_and_each_has_its_own_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (0,), "first")

    def load(app: int) -> None:
        for number in range(1, 11):
            for _ in range(2):
                _write(_Table(folder), number, Append(), (100 * app + number,), f"app{app}")
            _follow_up(_Table(folder))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(load, range(1, 5)))
    expected = Counter([0, *(100 * app + number for app in range(1, 5) for number in range(1, 11))])
    assert (_ids(_Table(folder), int(_Table(folder).contents.newest_version())), _plain_ids(folder)) == (
        expected,
        expected,
    )
    assert [_Table(folder).tip(f"app{app}").highest_tag for app in range(1, 5)] == [10] * 4


def test_a_copy_that_comes_late_is_set_aside_by_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (1,))
    _follow_up(_Table(folder))
    (old,) = folder.glob("*.parquet")
    data = old.read_bytes()
    _write(_Table(folder), 2, ReplaceAll(), (2,))
    _follow_up(_Table(folder))
    old.write_bytes(data)  # as a store does that carries a copy out after its sender died
    run = _Table(folder)
    head = run.head(None, "app")
    assert (head.foreign_files, head.missing_files) == ((), ())
    _follow_up(run)
    assert _plain_ids(folder) == Counter((2,))


def test_files_of_others_and_files_that_are_gone_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (1, 2))
    _write(_Table(folder), 2, Append(), (3,))
    _follow_up(_Table(folder))
    gone = next(iter(folder.glob("*.parquet")))
    gone.unlink()
    (folder / "day=1").mkdir()
    (folder / "day=1" / "other.parquet").write_bytes(b"")
    (folder / "_hidden").mkdir()
    (folder / "_hidden" / "unseen.parquet").write_bytes(b"")
    head = _Table(folder).head(None, "app")
    assert (head.missing_files, head.foreign_files, head.emptied_by) == (
        (gone.name,),
        ("day=1/other.parquet",),
        None,
    )


def test_a_file_stays_staged_if_its_goal_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "table"
    _write(_Table(folder), 1, Append(), (1,))

    def link(source: Path, goal: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(goal))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(TargetError):
            _follow_up(_Table(folder))
    _follow_up(_Table(folder))
    assert _plain_ids(folder) == Counter((1,))


@pytest.mark.parametrize("damage", ["removed", "truncated"])
def test_a_table_with_damaged_lists_is_made_again_once_they_go(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "table"
    for number in (1, 2, 3):
        _write(_Table(folder), number, Append(), (number,))
        _follow_up(_Table(folder))
    zombie = _Table(folder)
    begun = zombie._log.snapshot()
    damaged = folder / "_strandline" / f"{2 if damage == 'removed' else 3:020d}.json"
    damaged.unlink() if damage == "removed" else damaged.write_bytes(b"")
    for act in (
        lambda: _Table(folder).head(None, "app"),
        lambda: _write(_Table(folder), 4, ReplaceAll(), (4,)),
    ):
        with pytest.raises(TargetError, match=rf"{damaged.name}.*delete the table's folder _strandline"):
            act()
    assert _plain_ids(folder) == Counter((1, 2, 3))
    shutil.rmtree(folder / "_strandline")
    _write(_Table(folder), 4, ReplaceAll(), (4,))
    _follow_up(_Table(folder))
    with pytest.raises((TargetError, RowsRefused)):
        zombie._commit(Tag("app", 5, "zombie"), "5").commit_planned(PlannedCommit(Append(), begun))
    assert (_plain_ids(folder), _Table(folder).head(None, "app").foreign_files) == (Counter((4,)), ())


@pytest.mark.parametrize("lost", ["first", "last"])
def test_adopt_goes_back_to_the_newest_commit_whose_files_are_all_there(tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "table"
    for number in (1, 2, 3):
        _write(_Table(folder), number, Append(), (number,))
        _follow_up(_Table(folder))
    files = sorted(folder.glob("*.parquet"))
    files[0 if lost == "first" else -1].unlink()
    told = _Table(folder).adoptable_state("app")
    assert told is not None
    assert (told.state, told.number, told.beyond) == ((None, 0, True) if lost == "first" else ("2", 2, True))


def test_many_commits_are_read_from_few_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CommitLog(Place(str(tmp_path)))
    for number in range(1, 101):
        file = ListedFile(path=f"{number}.parquet", rows=1)
        before = log.snapshot()
        made = CommitList(version=number, table="t", owner=str(number), app_id="app", number=number, state="", time="",
                          added=(file,), columns_json="{}")  # fmt: skip
        if number % 20 == 1:
            made = made.model_copy(update=apply_commit(before, made).full_list_fields())
        assert log.put(made)
    read: list[int] = []
    one = CommitLog.read

    def reading(self: CommitLog, version: int) -> CommitList:
        read.append(version)
        return one(self, version)

    monkeypatch.setattr(CommitLog, "read", reading)
    snapshot = log.snapshot(95)
    assert snapshot is not None
    assert (len(snapshot.files), read, snapshot.tags) == (95, list(range(81, 96)), {"app": 95})


def test_vacuum_deletes_what_only_old_versions_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, now = tmp_path / "table", datetime.now(UTC)
    loads: tuple[Load, ...] = (Append(), ReplaceAll(), ReplaceAll(), ReplaceAll())
    for number, (days, load) in enumerate(zip((20, 15, 10, 3), loads, strict=True), 1):
        at = (now - timedelta(days=days)).isoformat()
        monkeypatch.setattr(commit, "utc_now", lambda at=at: at)
        _write(_Table(folder), number, load, (number, number))
        _follow_up(_Table(folder))
    foreign = tmp_path / "_staging" / "table" / "removed" / "x" / "foreign.parquet"
    foreign.parent.mkdir()
    foreign.write_bytes(b"")
    table = _Table(folder)
    maintenance = ParquetMaintenance(table._log, table._placement, now)
    care = [maintenance.vacuum(lambda: pytest.fail("no Spark is needed")).deleted for _ in range(2)]
    assert care == [4, 0]
    # At the beginning of the retention version 3 was the newest.
    assert [_ids(_Table(folder), version) for version in (3, 4)] == [Counter((3, 3)), Counter((4, 4))]
    assert (foreign.exists(), _plain_ids(folder)) == (True, Counter((4, 4)))
    with pytest.raises(SourceError, match="is missing"):
        _ids(_Table(folder), 2)
