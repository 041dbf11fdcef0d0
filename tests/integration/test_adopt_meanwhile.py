"""The table changes while ``state adopt`` looks at it: the state never says more of it than was there when the look began."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from partitions.dataflow import Dataflow
from partitions.predicate import EVERYTHING, Predicate
from resources.kinds import all_decisions as decisions
from resources.kinds.path.late import late_step
from resources.listing import Budget
from resources.outcome import Outcome
from resources.tables.delta.contents import DeltaContents
from tests.support.arrow import SCHEMA, ArrowTable, Write, active
from tests.support.jvmless import NAME, JvmlessEngine, JvmlessPlatform, Process, dataflow

pytestmark = pytest.mark.usefixtures("in_arrow")


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class Meanwhile:
    """What happens once while a decision looks at the table."""

    happens: Callable[[], None] | None = None

    def now(self) -> None:
        """Let it happen."""
        happens, self.happens = self.happens, None
        if happens:
            happens()


@dataclass(frozen=True)
class _Contents(DeltaContents):
    meanwhile: Meanwhile

    def count_rows(self, rows: Predicate = EVERYTHING) -> int:
        """Count, and then it happens: the table was asked for its state before."""
        count = super().count_rows(rows)
        self.meanwhile.now()
        return count


class _Table(ArrowTable):
    meanwhile: Meanwhile

    @property
    def contents(self) -> _Contents:
        return _Contents(self._log, self._share, self.meanwhile)


@dataclass(frozen=True)
class _Platform(JvmlessPlatform):
    meanwhile: Meanwhile = field(default_factory=Meanwhile)

    def table(self, dataflow: Dataflow) -> ArrowTable:
        table = _Table(self.lake.child(dataflow.table))
        table.hear = lambda when, write: self.process.reach(when, "commit", write)
        table.meanwhile = self.meanwhile
        return table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six files, which make three slices."""
    (tmp_path / "landing").mkdir()
    for number in range(1, 7):
        (tmp_path / "landing" / f"{number}.ndjson").write_text(f'{{"id": {number}}}\n')
    return tmp_path


def _platform(folder: Path) -> _Platform:
    process = Process()
    return _Platform.of(
        folder / "state", folder / "lake", folder / "landing", process, JvmlessEngine(process)
    )


FLOW = dataflow("watermark", "ingest", ".x")


def _run(platform: _Platform) -> Outcome:
    return platform.loop(FLOW, NOW).run()


def _adopt(platform: _Platform) -> None:
    decisions.decide(platform, FLOW, decisions.adopt("any"), "any")


def _loaded(folder: Path) -> list[str]:
    table = folder / "lake" / "bronze" / NAME
    rows = (pa.parquet.read_table(table / name)["_source_file"].to_pylist() for name in active(table))
    return sorted(path for paths in rows for path in paths)


ALL = [f"{number}.ndjson" for number in range(1, 7)]


def _in_the_end(platform: _Platform) -> None:
    """What somebody does who follows what a run says."""
    error = _run(platform).error
    assert error is not None
    assert error.code in ("table_behind", "foreign_tag")
    assert any(" adopt " in choice for choice in error.choices)
    _adopt(platform)
    assert _run(platform).error is None
    late_step(platform, FLOW, NOW, Budget())


def test_a_restore_while_a_state_is_adopted_stops_the_next_run(folder: Path) -> None:
    platform = _platform(folder)
    assert _run(platform).error is None
    (folder / "landing" / "7.ndjson").write_text('{"id": 7}\n')
    platform.meanwhile.happens = lambda: _restore(folder, 0)
    _adopt(platform)
    _in_the_end(platform)
    assert _loaded(folder) == [*ALL, "7.ndjson"]


def _restore(folder: Path, version: int) -> None:
    DeltaTable(str(folder / "lake" / "bronze" / NAME)).restore(version)


def test_a_write_that_lands_while_a_lost_state_is_adopted_is_not_loaded_again(folder: Path) -> None:
    platform = _platform(folder)
    for number in ("5", "6"):
        (folder / "landing" / f"{number}.ndjson").rename(folder / number)
    assert _run(platform).error is None
    newest = platform.log.newest(NAME)
    assert newest is not None
    for number in ("5", "6"):
        (folder / number).rename(folder / "landing" / f"{number}.ndjson")
    text = {
        "owner": "of a run that counts as dead",
        "number": 3,
        "gives_up": False,
        "after": {"version": 1, "id": newest.table_commit},
        "rewound": False,
        "state": '{"path": "6.ndjson"}',
    }
    rows = pa.Table.from_pylist(
        [{"id": number, "_source_file": f"{number}.ndjson"} for number in (5, 6)], schema=SCHEMA
    )
    table = folder / "lake" / "bronze" / NAME
    write = Write(table, 1, newest.app_id, 3, "append", None, json.dumps({"strandline": text}), rows)
    shutil.rmtree(folder / "state")
    platform.meanwhile.happens = write.land
    (folder / "state").mkdir()
    _adopt(platform)
    _in_the_end(platform)
    assert _loaded(folder) == ALL
