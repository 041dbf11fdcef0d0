"""Readers of others agree with ours on each commit of random tables, whoever wrote them.

Each net change of ours is compared with the truth, which is the difference of the rows before and after the commit by time travel, and with
what each reader tells of the commit (:mod:`tests.support.other_readers`). Where a reader tells something else, a rule says why.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from resources.spark.engine import SparkEngine
from tests.support.commit_histories import TABLES, SqlTable, random_statement
from tests.support.commit_worlds import ABOVE
from tests.support.other_readers import READERS, Refused, our_nets, true_nets

WRITTEN_BY_SQL = (
    "delta, feed",
    "delta, feed, names, vectors",
    "iceberg, copy on write",
    "iceberg 3, deletion vectors",
)
WRITTEN_BY = tuple(
    f"{kind}, {writer}" for writer in ("others", "append", "keyed") for kind in ("delta", "iceberg")
)
_UNREADABLE_LATER = ("clean", "maintain")
"""Acts that remove files which all of these readers need."""


def _by_sql(folder: Path, engine: SparkEngine, name: str, random: Random, acts: int) -> SqlTable:
    format_, properties, parts = TABLES[name]
    table = SqlTable.create(engine.session(), folder, format_, properties, parts=parts)
    table.insert(*range(5))
    for _ in range(acts):
        table.sql(random_statement(random, format_))
    return table


def _by_writers(folder: Path, engine: SparkEngine, name: str, random: Random, acts: int) -> SqlTable:
    kind, writer = name.split(", ")
    above = ABOVE[writer](folder, engine, kind, random)
    above.begin()
    possible = [act for act_name, act in above.acts().items() if act_name not in _UNREADABLE_LATER]
    for _ in range(acts):
        random.choice(possible)()
    (folder / "scratch").mkdir()
    return SqlTable(engine.session(), above.folder, kind, folder / "scratch")


def check(engine: SparkEngine, name: str, seed: int, acts: int) -> dict[str, int]:
    """Make a table, and compare all readers; return how many commits each has told."""
    folder, told = Path(mkdtemp()), dict[str, int]()
    try:
        made = _by_sql if name in TABLES else _by_writers
        table = made(folder, engine, name, Random(f"{name} {seed}"), acts)
        commits = table.commits.since(None).commits
        ours = our_nets(table, commits)
        assert ours == true_nets(table, commits)
        for reader, read in READERS[table.format].items():
            try:
                others = read(table, commits)
            except Refused:
                assert "merge on read" in name or "vectors" in name or "others" in name, reader
                continue
            told[reader] = len(others)
            for version, net in others.items():
                assert net == ours[version], f"{reader}, version {version}"
    finally:
        shutil.rmtree(folder)
    return told


@pytest.mark.each_case
@pytest.mark.parametrize("name", ["iceberg, copy on write", "iceberg, others"])
def test_other_readers_agree_on_each_commit_of_a_few_tables(engine: SparkEngine, name: str) -> None:
    assert any(check(engine, name, 1, 2).values())


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [*WRITTEN_BY_SQL, *WRITTEN_BY])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
def test_other_readers_agree_on_each_commit_of_fifty_tables(
    engine: SparkEngine, name: str, seed: int
) -> None:
    check(engine, name, seed, 8)
