"""The writer that stands in for Spark in ``tests/model`` commits what Spark commits, as far as anybody reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from partitions.loads import Append, Load, Replace, ReplaceAll
from partitions.predicate import Among
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from tests.support.arrow import SCHEMA, ArrowTable, Rows, Session, active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

APP = "app"
_A_AND_B, _B, _NOBODY = (Replace(Among("_source_file", paths)) for paths in (("a", "b"), ("b",), ("nobody",)))

Given = tuple[int, str]

WRITES: list[tuple[list[Given], Load, int]] = [
    ([(1, "a"), (2, "b")], Append(), 1),
    ([(3, "c")], Append(), 2),
    ([], Append(), 3),
    ([(4, "a")], Append(), 3),  # a number that is there: skipped
    ([(5, "d")], Append(), 2),  # a lower one, too
    ([(6, "a"), (7, "b")], _A_AND_B, 4),
    ([(8, "nobody")], _NOBODY, 5),
    ([], _B, 6),
    ([], Replace(Among("_source_file", ("none",))), 7),
    ([(9, "e")], ReplaceAll(), 8),
    ([], ReplaceAll(), 9),
    ([(10, "f")], ReplaceAll(), 10),
]
"""Rows, what they replace, and the number."""


def _written(folder: Path, kind: type[DeltaLakeTable], rows: Callable[[list[Given]], Any]) -> list[Any]:
    """What the table's log tells after each write, as the product reads it."""
    target = kind(Place(str(folder)))
    told: list[Any] = []
    for at, (given, load, number) in enumerate(WRITES):
        tag = Tag(APP, number, f"owner {at}", gives_up=not given)
        target.write(rows(given), load, tag, "{}", base=at or None)
        head = target.head(None, APP)
        landed = head.find_tagged_commit(number)
        assert landed is not None
        counted = target.complete_counts(landed, 0)
        told.append(
            (
                head.version,
                head.highest_tag,
                head.emptied_by,
                counted.owner,
                counted.gives_up,
                counted.rows,
                counted.removed,
            )
        )
    commits = DeltaLog(Place(str(folder))).commits(None)
    parts = [(one.version, one.tags, one.is_partial, one.operation) for one in commits]
    return [
        *told,
        *parts,
        target.contents.count_rows(),
        target.contents.columns(),
        sorted(target.contents.distinct_texts("_source_file")),
    ]


@pytest.mark.full
def test_the_stand_in_commits_what_spark_commits(engine: SparkEngine, tmp_path: Path) -> None:
    session = engine.session()

    def frame(given: list[Given]) -> DataFrame:
        # In one file, so that a part of it is replaced where a part of ours is.
        return session.createDataFrame(given, "id long, _source_file string").coalesce(1)

    def rows(given: list[Given]) -> Rows:
        columns = [{"id": one, "_source_file": path} for one, path in given]
        return Rows(pa.Table.from_pylist(columns, schema=SCHEMA))

    assert _written(tmp_path / "arrow", ArrowTable, rows) == _written(
        tmp_path / "spark", DeltaLakeTable, frame
    )
    assert len(active(tmp_path / "arrow")) == len(active(tmp_path / "spark"))


@pytest.mark.full
def test_a_missing_table_is_refused_as_by_spark(engine: SparkEngine, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    target = DeltaLakeTable(Place(str(tmp_path / "none")))
    for session in (Session(), engine.session()):
        with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
            target.give_up(session, Tag(APP, 1, "owner", gives_up=True), "{}", None)  # type: ignore[arg-type]
