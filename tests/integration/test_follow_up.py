"""What a table's format leaves for after the entry is done after each append, and by the next run if one died before it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.dataflow import Dataflow
from resources.kinds import all_decisions as decisions
from resources.tables.contract.commits import TableCommit, Version
from tests.support.arrow import ArrowTable
from tests.support.jvmless import JvmlessEngine, JvmlessPlatform, Process, dataflow

pytestmark = pytest.mark.usefixtures("in_arrow")


NOW = datetime(2026, 6, 1, tzinfo=UTC)
FLOW = dataflow("watermark", "ingest", ".x")


@dataclass
class Follower:
    """What follows an entry here: a note of the version, or the death of the process.

    Attributes:
        dies: whether the process dies before it.
        versions: of the commits that were followed up.
    """

    dies: bool = False
    versions: list[Version | None] = field(default_factory=list)

    def follow(self, commit: TableCommit) -> None:
        """Note a commit, or die."""
        if self.dies:
            raise KeyboardInterrupt
        self.versions.append(commit.version)


class _Table(ArrowTable):
    follower: Follower

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Hand it on."""
        self.follower.follow(commit)


@dataclass(frozen=True)
class _Platform(JvmlessPlatform):
    follower: Follower = field(default_factory=Follower)

    def table(self, dataflow: Dataflow) -> ArrowTable:
        table = _Table(self.lake.child(dataflow.table))
        table.hear = lambda when, write: self.process.reach(when, "commit", write)
        table.follower = self.follower
        return table


@pytest.fixture
def platform(tmp_path: Path) -> _Platform:
    """Four files, which make two slices."""
    landing = tmp_path / "landing"
    landing.mkdir()
    for number in range(1, 5):
        (landing / f"{number}.ndjson").write_text(f'{{"id": {number}}}\n')
    process = Process()
    return _Platform.of(tmp_path / "state", tmp_path / "lake", landing, process, JvmlessEngine(process))


def _run(platform: _Platform) -> str:
    outcome = platform.loop(FLOW, NOW).run()
    assert outcome.error is None
    return outcome.status


def test_each_entry_is_followed_up_and_the_newest_one_again_by_the_next_run(platform: _Platform) -> None:
    assert (_run(platform), platform.follower.versions) == ("committed", [0, 1])
    assert (_run(platform), platform.follower.versions) == ("nothing", [0, 1, 1])


def test_a_run_that_died_before_it_is_made_up_for_by_the_next(platform: _Platform) -> None:
    platform.follower.dies = True
    with pytest.raises(KeyboardInterrupt):
        _run(platform)
    platform.follower.dies = False
    assert (_run(platform), platform.follower.versions) == ("committed", [0, 1])


@pytest.mark.parametrize(
    "decision",
    [decisions.reset("any"), decisions.rewind("any", 0), decisions.adopt("any")],
    ids=["reset", "rewind", "adopt"],
)
def test_a_dead_run_is_made_up_for_by_a_decision(
    platform: _Platform, decision: decisions.DraftBuilder
) -> None:
    platform.follower.dies = True
    with pytest.raises(KeyboardInterrupt):
        _run(platform)
    platform.follower.dies = False
    decisions.decide(platform, FLOW, decision, "any")
    assert platform.follower.versions == [0]


def test_a_decision_about_a_table_that_is_gone_follows_nothing_up(platform: _Platform) -> None:
    _run(platform)
    shutil.rmtree(platform.lake.child(FLOW.table).local or "")
    decisions.decide(platform, FLOW, decisions.reset("any"), "any")
    assert platform.follower.versions == [0, 1]
