"""What every table format promises to dataflows that share a table: each deletes, updates and counts its own rows alone (docs/reference/loads.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from partitions.errors import WriteConflict
from partitions.loads import Append, Load, OrderByColumn, Replace, ReplaceAll, Upsert
from partitions.predicate import Among
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.commits import TableCommit, Tag, TaggedCommit
from resources.tables.contract.sharing import share_of
from resources.tables.contract.table import Table
from resources.tables.registry import open_table
from tests.contract.capabilities import pytest_generate_tests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pytest_generate_tests"]

A, B = "a", "b"
UPSERT = Upsert(("id",), (OrderByColumn("unit"),))


@dataclass
class Subject:
    """A table of one format that two dataflows share."""

    format: str
    folder: Path
    spark: SparkSession

    def table(self, dataflow: str) -> Table:
        """As a dataflow sees it; a new one each time: nothing is remembered."""
        return share_of(open_table(self.format, Place(str(self.folder))), dataflow)

    def rows(self, dataflow: str, *rows: tuple[int, str]) -> DataFrame:
        """Rows of an id, a unit, and whose they are."""
        return self.spark.createDataFrame(
            [(*row, dataflow) for row in rows], "id long, unit string, _dataflow string"
        )

    def load(
        self, dataflow: str, number: int, *rows: tuple[int, str], load: Load | None = None, **given: Any
    ) -> None:
        """Load rows under a number of a dataflow; the state after it is the number."""
        table = self.table(dataflow)
        base = given.get("base", table.tip(dataflow).version)
        tag = Tag(dataflow, number, f"owner {number} of {dataflow}", after=given.get("after"))
        table.write(self.rows(dataflow, *rows), load or Append(), tag, str(number), base=base)

    def commit(self, dataflow: str, number: int, since: TableCommit | None = None) -> TaggedCommit:
        """The commit of a number, with its counts."""
        table = self.table(dataflow)
        found = table.head(since, dataflow).find_tagged_commit(number)
        assert found is not None
        return table.complete_counts(found, 0)

    @property
    def all_rows(self) -> list[tuple[Any, ...]]:
        """All rows, whose they are first."""
        table = self.table(A)
        rows = (
            table.contents.read(self.spark, table.contents.newest_version())
            .select("_dataflow", "id", "unit")
            .collect()
        )
        return sorted(tuple(row) for row in rows)


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine) -> Subject:
    return Subject(request.param, tmp_path / "table", engine.session())


def test_each_dataflow_sees_and_counts_its_own_rows(subject: Subject) -> None:
    subject.load(A, 1, (1, "x"), (9, "y"))
    assert (subject.table(B).exists(), subject.table(B).contents.has_data()) == (True, False)
    subject.load(B, 1, (2, "z"))
    assert [subject.table(name).contents.count_rows() for name in (A, B, "c")] == [2, 1, 0]
    assert [subject.table(name).contents.has_data() for name in (A, B, "c")] == [True, True, False]
    assert [subject.table(name).contents.distinct_texts("unit") for name in (A, B)] == [{"x", "y"}, {"z"}]
    counts = [subject.table(name).contents.text_counts("unit").to_pylist() for name in (B, "c")]
    assert counts == [[{"text": "z", "rows": 1}], []]
    assert [subject.table(name).contents.highest_values(["id"]) for name in (A, B, "c")] == [
        {"id": 9},
        {"id": 2},
        {"id": None},
    ]


def test_a_number_that_was_given_up_counts_as_data_of_its_dataflow_alone(subject: Subject) -> None:
    subject.load(B, 1, (2, "z"))
    subject.table(A).give_up(subject.spark, Tag(A, 1, "fence", gives_up=True), "0", None)
    assert [subject.table(name).contents.has_data() for name in (A, "c")] == [True, False]


@pytest.mark.parametrize(
    ("load", "left"),
    [
        (Append(), [(A, 1, "x"), (A, 2, "x"), (A, 3, "x")]),
        (UPSERT, [(A, 1, "x"), (A, 2, "x"), (A, 3, "x")]),
        (Replace(Among("unit", ("x",))), [(A, 3, "x")]),
        (Upsert(("id",), (), where=Among("unit", ("x",))), [(A, 3, "x")]),
        (ReplaceAll(), [(A, 3, "x")]),
    ],
    ids=["append", "upsert", "replace", "upsert that replaces", "replace all"],
)  # fmt: skip
def test_a_load_leaves_rows_of_other_dataflows(subject: Subject, load: Load, left: list[Any]) -> None:
    others = [(B, 1, "x"), (B, 3, "x")]
    subject.load(A, 1, (1, "x"), (2, "x"))
    subject.load(B, 1, *[(number, unit) for _, number, unit in others])
    subject.load(A, 2, (3, "x"), load=load)
    assert subject.all_rows == left + others
    assert subject.commit(A, 2).removed == len([(A, 1), (A, 2)]) + 1 - len(left)


def test_a_window_that_is_empty_now_leaves_the_rows_of_other_dataflows(subject: Subject) -> None:
    subject.load(A, 1, (1, "x"), (2, "y"))
    subject.load(B, 1, (1, "x"))
    subject.load(A, 2, load=Replace(Among("unit", ("x",))))
    assert subject.all_rows == [(A, 2, "y"), (B, 1, "x")]
    assert (subject.commit(A, 2).rows, subject.commit(A, 2).removed) == (0, 1)


@pytest.mark.parametrize("load", [UPSERT, Replace(Among("unit", ("x",)))], ids=["upsert", "replace"])
def test_a_load_deletes_its_own_rows_alone_in_files_that_others_share(subject: Subject, load: Load) -> None:
    both = subject.rows(A, (1, "x")).unionByName(subject.rows(B, (1, "x"), (2, "x"))).coalesce(1)
    subject.table(A).write(both, Append(), Tag(A, 1, "o"), "1", base=None)
    subject.load(A, 2, (1, "x"), load=load)
    assert subject.all_rows == [(A, 1, "x"), (B, 1, "x"), (B, 2, "x")]


def test_a_table_that_another_dataflow_has_made_meanwhile_is_loaded_into(subject: Subject) -> None:
    subject.load(A, 1, (1, "x"))
    subject.load(B, 1, (2, "y"), base=None)
    assert subject.all_rows == [(A, 1, "x"), (B, 2, "y")]


def test_a_table_made_at_the_same_moment_conflicts(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.load(A, 1, (1, "x"))
    table, looks = subject.table(B), iter([False])
    monkeypatch.setattr(table, "exists", lambda: next(looks, True))  # it was not there at the first look
    rows, tag = subject.rows(B, (2, "y")), Tag(B, 1, "o")
    with pytest.raises(WriteConflict):
        table.write(rows, Append(), tag, "1", base=None)
    table.write(rows, Append(), tag, "1", base=None)
    assert subject.all_rows == [(A, 1, "x"), (B, 2, "y")]


def test_commits_of_other_dataflows_do_not_come_between_a_dataflow_and_its_table(subject: Subject) -> None:
    subject.load(A, 1, (1, "x"))
    begun = subject.table(A).tip(A).newest
    assert begun is not None
    for number in (1, 2):
        subject.load(B, number, (number, "y"))
    subject.load(A, 2, (2, "x"))
    head = subject.table(A).head(begun, A)
    assert (head.has_recorded, head.emptied_by, [commit.number for commit in head.tagged_commits]) == (
        True,
        None,
        [2],
    )
    assert subject.commit(A, 2, begun).follows == begun.version
    versions = [subject.commit(B, number).version for number in (1, 2)]
    assert [subject.commit(B, number, begun).follows for number in (1, 2)] == [begun.version, versions[0]]


def test_a_dataflow_adopts_the_state_of_its_own_commits(subject: Subject) -> None:
    subject.load(A, 1, (1, "x"))
    subject.load(A, 2, (2, "x"), after=subject.table(A).tip(A).newest)
    subject.load(B, 7, (3, "y"))
    for name, number in ((A, 2), (B, 7)):
        adopted = adopted_state(subject.table(name))
        assert adopted is not None
        assert (adopted.app_id, adopted.state, adopted.number) == (name, str(number), number)
    assert adopted_state(subject.table("c")) is None
