"""One table of a format, written under numbers beside other writers.

Strandline's own commits are used where the format allows.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from partitions.errors import TargetError
from partitions.loads import Append, Load, Replace
from partitions.predicate import Predicate
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, TaggedCommit
from resources.tables.data_files import written as data_files
from resources.tables.delta import own_commit as delta_own_commit
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.iceberg import own_commit as iceberg_own_commit
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.table import IcebergTable
from tests.support.iceberg import foreign_table, iceberg_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP = "app"

Moment = Literal["before the files", "files written", "before the commit"]
"""When something happens: the rows of a write are to be written; their files are there; the newest version was looked at, and the next one is to be put."""

LOST = "the connection was lost"


@dataclass
class Lake(ABC):
    """One table.

    Attributes:
        spark: a session.
        folder: the folder of the table.
        patch: undoes a test's patches at its end.
        partition_by: the partition columns of a new table.
    """

    spark: SparkSession
    folder: Path
    patch: pytest.MonkeyPatch
    partition_by: tuple[str, ...] = ()

    own_commits: ClassVar[ModuleType]
    """The module of the format's own commits."""

    @abstractmethod
    def table(self) -> Any:
        """Return the table: a new object each time, so that nothing is cached."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the table's name in other engines' SQL."""

    @abstractmethod
    def other_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return these columns of all rows, read by another engine without Spark."""

    @property
    @abstractmethod
    def strays(self) -> set[str]:
        """Return the data files that no version of the table names."""

    @property
    @abstractmethod
    def removed_files(self) -> int:
        """Return how many data files the newest commit has removed."""

    @property
    @abstractmethod
    def _committer(self) -> tuple[type, str]:
        """Return the class and the method that put the version of a commit."""

    @abstractmethod
    def _lost_answer_error(self) -> Exception:
        """Return the error that the method raises if its answer is lost."""

    @property
    @abstractmethod
    def _looker(self) -> tuple[type, str]:
        """Return the class and the method that look up the newest version."""

    def append(self, number: int, *rows: Any, columns: str = "id long", table: Any = None) -> None:
        """Append rows, in one file."""
        self.write(number, self.frame(rows, columns).coalesce(1), table=table)

    def replace(self, number: int, where: Predicate, *rows: Any, columns: str = "id long") -> None:
        """Replace rows, in one file."""
        self.write(number, self.frame(rows, columns).coalesce(1), Replace(where))

    def load(self, number: int, load: Load, *rows: Any, columns: str) -> None:
        """Load rows in any way."""
        self.write(number, self.frame(rows, columns), load)

    def write(
        self, number: int, rows: Any, load: Load | None = None, *, table: Any = None, app: str = APP
    ) -> None:
        """Load rows of a Spark DataFrame."""
        tag = Tag(app, number, f"owner {number} of {app}")
        base = self.table().tip(app).version
        (table or self.table()).write(rows, load or Append(), tag, str(number), base=base)

    def frame(self, rows: Sequence[Any], columns: str) -> DataFrame:
        """Return rows as a Spark DataFrame."""
        return self.spark.createDataFrame(list(rows), columns)

    def fence(self, number: int) -> None:
        """Commit a number without rows."""
        self.table().give_up(self.spark, Tag(APP, number, "fence", gives_up=True), "1", None)

    def sql(self, text: str) -> Any:
        """Run another engine's statement; ``{t}`` is the table."""
        return self.spark.sql(text.format(t=self.name)).collect()

    @abstractmethod
    def insert(self, *rows: tuple[int, str]) -> None:
        """Append rows of an id and a unit as another writer."""

    def make_again(self) -> None:
        """Drop the table and create it again with a row, as another writer."""
        self.table().remove(lambda: self.spark)
        self.append(1, (7,))

    def interrupt(self, moment: Moment, act: Callable[[], Any]) -> None:
        """Have another writer act once, at this moment of the next write."""
        if moment == "before the commit":
            self.act_before_commits(act)
            return
        write = data_files.write_files

        def written(*arguments: Any, **more: Any) -> None:
            self.patch.setattr(self.own_commits, "write_files", write)
            if moment == "before the files":
                act()
            write(*arguments, **more)
            if moment == "files written":
                act()

        self.patch.setattr(self.own_commits, "write_files", written)

    def act_before_commits(self, *acts: Callable[[], Any]) -> None:
        """Have another writer act before each of the next commits, after the newest version was read."""
        owner, name = self._committer
        put_version, remaining_acts = getattr(owner, name), list(acts)

        def late(committer: Any, *arguments: Any) -> Any:
            if remaining_acts:
                remaining_acts.pop(0)()
            return put_version(committer, *arguments)

        self.patch.setattr(owner, name, late)

    @contextmanager
    def losing_answers(self, *, landed: bool, unreadable: bool = False) -> Iterator[None]:
        """Lose the answer to a commit inside the block, after or before it was put.

        With ``unreadable`` nobody can then look it up.
        """
        owner, name = self._committer
        put_version = getattr(owner, name)
        with pytest.MonkeyPatch.context() as patch:

            def lose_answer(committer: Any, *arguments: Any) -> Any:
                if landed:
                    put_version(committer, *arguments)
                if unreadable:
                    patch.setattr(*self._looker, unread)
                raise self._lost_answer_error()

            def unread(*_: Any) -> Any:
                raise TargetError(LOST)

            patch.setattr(owner, name, lose_answer)
            yield

    def rows(self, columns: str = "id, unit") -> list[tuple[Any, ...]]:
        """Return all rows, read by Spark."""
        return sorted((tuple(row) for row in self.sql(f"SELECT {columns} FROM {{t}}")), key=str)

    @property
    def ids(self) -> list[Any]:
        """Return the ids of all rows; Spark and another engine must agree."""
        by_spark = sorted(row["id"] for row in self.sql("SELECT id FROM {t}"))
        assert by_spark == sorted(row["id"] for row in self.other_rows(["id"]))
        return by_spark

    @property
    def own(self) -> list[bool]:
        """Return, for each commit of the app after the first, whether it was Strandline's own."""
        tagged = self.table().head(None, APP).tagged_commits
        return [commit.committed_by.startswith("Strandline") for commit in tagged[1:]]

    @property
    def committed_by(self) -> str | None:
        """Return the writer that the app's newest commit names."""
        writer: str | None = self.table().head(None, APP).tagged_commits[-1].committed_by
        return writer

    def tagged(self, number: int) -> TaggedCommit:
        """Return the commit of a number, with the counts that it states."""
        commit: TaggedCommit
        (commit,) = [
            commit for commit in self.table().head(None, APP).tagged_commits if commit.number == number
        ]
        return commit

    def counts(self, number: int) -> tuple[int, int | None]:
        """Return how many rows the commit of a number wrote and removed."""
        commit = self.table().complete_counts(self.tagged(number), 0)
        return commit.rows, commit.removed


class DeltaLake(Lake):
    """A Delta table."""

    own_commits: ClassVar = delta_own_commit

    def table(self) -> DeltaLakeTable:
        return DeltaLakeTable(Place(str(self.folder)), self.partition_by)

    @property
    def name(self) -> str:
        return f"delta.`{self.folder}`"

    def other_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        return self.query(", ".join(columns))

    def insert(self, *rows: tuple[int, str]) -> None:
        ids, units = zip(*rows, strict=True)
        other_rows = pa.table({"id": pa.array(ids, pa.int64()), "unit": list(units)})
        write_deltalake(str(self.folder), other_rows, mode="append")

    def query(self, columns: str) -> list[dict[str, Any]]:
        """Return rows as another engine reads them, in the order of the first column."""
        query = QueryBuilder().register("rows", DeltaTable(str(self.folder)))
        result = query.execute(f"SELECT {columns} FROM rows ORDER BY 1").read_all()
        rows: list[dict[str, Any]] = pa.table(result).to_pylist()
        return rows

    @property
    def log(self) -> list[list[dict[str, Any]]]:
        """Return the actions of each commit in the log."""
        files = sorted((self.folder / "_delta_log").glob("*.json"))
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    @property
    def writers(self) -> list[str]:
        """Return the writer of each commit: ``own`` or ``Delta``."""
        infos = [
            next(action["commitInfo"] for action in commit if "commitInfo" in action) for commit in self.log
        ]
        return ["own" if info["engineInfo"].startswith("delta-rs") else "Delta" for info in infos]

    @property
    def folders(self) -> list[str]:
        """Return folders of data files below the table."""
        return sorted(
            path.name for path in self.folder.iterdir() if not path.name.startswith("_") and path.is_dir()
        )

    def statistics(self, version: int) -> list[dict[str, Any]]:
        """Return a version's statistics of each file that it adds."""
        adds = [action["add"] for action in self.log[version] if "add" in action]
        return [json.loads(add["stats"], parse_float=str) for add in adds]

    @property
    def strays(self) -> set[str]:
        # Delta's own writer leaves files behind, beside Strandline's folders.
        named = {
            unquote(action["add"]["path"]) for commit in self.log for action in commit if "add" in action
        }
        files = (path for folder in self.folders for path in (self.folder / folder).rglob("*.parquet"))
        return {str(path.relative_to(self.folder)) for path in files} - named

    @property
    def removed_files(self) -> int:
        return sum("remove" in action for action in self.log[-1])

    def copy(self) -> Path:
        """Return a copy of the table, beside it."""
        return Path(shutil.copytree(self.folder, self.folder.with_name("copy")))

    @property
    def _committer(self) -> tuple[type, str]:
        return delta_own_commit.DeltaOwnCommit, "_commit"

    def _lost_answer_error(self) -> Exception:
        return OSError(LOST)

    @property
    def _looker(self) -> tuple[type, str]:
        return DeltaLog, "table"


class IcebergLake(Lake):
    """An Iceberg table."""

    own_commits: ClassVar = iceberg_own_commit

    def table(self) -> IcebergTable:
        return IcebergTable(Place(str(self.folder)), self.partition_by)

    @property
    def name(self) -> str:
        return foreign_table(self.spark, self.folder)

    def insert(self, *rows: tuple[int, str]) -> None:
        values = ", ".join(f"({id_}, '{unit}', NULL)" for id_, unit in rows)
        self.sql(f"INSERT INTO {{t}} VALUES {values}")

    def call(self, procedure: str, **arguments: Any) -> None:
        """Call another engine's procedure."""
        catalog, _, name = self.name.partition(".")
        argument_text = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        self.spark.sql(f"CALL {catalog}.system.{procedure}(table => '{name}', {argument_text})").collect()

    def other_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        return iceberg_rows(self.folder, columns)

    @property
    def metadata(self) -> Metadata:
        """Return the newest metadata."""
        newest = FolderCatalog(Place(str(self.folder))).newest()
        assert newest is not None
        return newest

    @property
    def strays(self) -> set[str]:
        known_files = {
            Path(row["file_path"]).name for row in self.sql("SELECT file_path FROM {t}.all_data_files")
        }
        return {path.name for path in (self.folder / "data").rglob("*.parquet")} - known_files

    @property
    def removed_files(self) -> int:
        return next(self.metadata.lineage()).count("deleted-data-files")

    @property
    def _committer(self) -> tuple[type, str]:
        return FolderCatalog, "add_snapshot"

    def _lost_answer_error(self) -> Exception:
        return TargetError(LOST)

    @property
    def _looker(self) -> tuple[type, str]:
        return FolderCatalog, "newest"


LAKES: dict[str, type[Lake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
"""By format, those whose commits can be Strandline's own."""


def lake_in(format_: str, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """Return a table of a format in a folder of a lake."""
    return LAKES[format_](spark, folder / "lake/bronze/t", patch)
