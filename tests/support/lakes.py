"""One table of a format that numbers are written to, by commits of Strandline's own where they can be, beside what others do to it meanwhile."""

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
        folder: of the table.
        patch: undoes at the end of the test what was arranged.
        partition_by: columns that a new table is partitioned by.
    """

    spark: SparkSession
    folder: Path
    patch: pytest.MonkeyPatch
    partition_by: tuple[str, ...] = ()

    own_commits: ClassVar[ModuleType]
    """The module of the format's own commits."""

    @abstractmethod
    def table(self) -> Any:
        """The table: a new one each time, so that nothing is remembered."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What other engines call it in SQL."""

    @abstractmethod
    def other_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """These columns of all rows as another engine reads them, without Spark."""

    @property
    @abstractmethod
    def strays(self) -> set[str]:
        """Data files that no version of the table names."""

    @property
    @abstractmethod
    def removed_files(self) -> int:
        """How many data files the newest commit has removed."""

    @property
    @abstractmethod
    def _committer(self) -> tuple[type, str]:
        """The class and the method that puts the version of a commit."""

    @abstractmethod
    def _lost(self) -> Exception:
        """What the method raises if its answer is lost."""

    @property
    @abstractmethod
    def _looker(self) -> tuple[type, str]:
        """The class and the method that looks up the newest version."""

    def append(self, number: int, *rows: Any, columns: str = "id long", table: Any = None) -> None:
        """Append rows, in one file."""
        self.write(number, self.frame(rows, columns).coalesce(1), table=table)

    def replace(self, number: int, where: Predicate, *rows: Any, columns: str = "id long") -> None:
        """Replace rows by others, in one file."""
        self.write(number, self.frame(rows, columns).coalesce(1), Replace(where))

    def load(self, number: int, load: Load, *rows: Any, columns: str) -> None:
        """Load rows in any way."""
        self.write(number, self.frame(rows, columns), load)

    def write(
        self, number: int, rows: Any, load: Load | None = None, *, table: Any = None, app: str = APP
    ) -> None:
        """Load rows as Spark has them."""
        tag = Tag(app, number, f"owner {number} of {app}")
        base = self.table().tip(app).version
        (table or self.table()).write(rows, load or Append(), tag, str(number), base=base)

    def frame(self, rows: Sequence[Any], columns: str) -> DataFrame:
        """Rows as Spark has them."""
        return self.spark.createDataFrame(list(rows), columns)

    def fence(self, number: int) -> None:
        """Take a number without a row."""
        self.table().give_up(self.spark, Tag(APP, number, "fence", gives_up=True), "1", None)

    def sql(self, text: str) -> Any:
        """Another engine's statement; ``{t}`` is the table."""
        return self.spark.sql(text.format(t=self.name)).collect()

    @abstractmethod
    def insert(self, *rows: tuple[int, str]) -> None:
        """Another writer appends rows of an id and a unit."""

    def make_again(self) -> None:
        """Somebody drops the table and makes it again, with a row of its own."""
        self.table().remove(lambda: self.spark)
        self.append(1, (7,))

    def interrupt(self, moment: Moment, act: Callable[[], Any]) -> None:
        """Have somebody act once, at this moment of the next write."""
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
        """Have somebody act before each of the next commits is put, after the newest version was looked at."""
        owner, name = self._committer
        put, left = getattr(owner, name), list(acts)

        def late(committer: Any, *arguments: Any) -> Any:
            if left:
                left.pop(0)()
            return put(committer, *arguments)

        self.patch.setattr(owner, name, late)

    @contextmanager
    def losing_answers(self, *, landed: bool, unreadable: bool = False) -> Iterator[None]:
        """Within it the answer to a commit is lost, after or before it was put; ``unreadable``: and then nobody can look it up."""
        owner, name = self._committer
        put = getattr(owner, name)
        with pytest.MonkeyPatch.context() as patch:

            def lost(committer: Any, *arguments: Any) -> Any:
                if landed:
                    put(committer, *arguments)
                if unreadable:
                    patch.setattr(*self._looker, unread)
                raise self._lost()

            def unread(*_: Any) -> Any:
                raise TargetError(LOST)

            patch.setattr(owner, name, lost)
            yield

    def rows(self, columns: str = "id, unit") -> list[tuple[Any, ...]]:
        """All rows, as Spark reads them."""
        return sorted((tuple(row) for row in self.sql(f"SELECT {columns} FROM {{t}}")), key=str)

    @property
    def ids(self) -> list[Any]:
        """The ids of all rows, which Spark and another engine read alike."""
        by_spark = sorted(row["id"] for row in self.sql("SELECT id FROM {t}"))
        assert by_spark == sorted(row["id"] for row in self.other_rows(["id"]))
        return by_spark

    @property
    def own(self) -> list[bool]:
        """Of each commit under the app's tag, but the one that made the table: whether it was Strandline's own."""
        tagged = self.table().head(None, APP).tagged_commits
        return [commit.committed_by.startswith("Strandline") for commit in tagged[1:]]

    @property
    def committed_by(self) -> str | None:
        """What the newest commit under the app's tag says of its writer."""
        writer: str | None = self.table().head(None, APP).tagged_commits[-1].committed_by
        return writer

    def tagged(self, number: int) -> TaggedCommit:
        """The commit of a number, with what it says of its counts itself."""
        commit: TaggedCommit
        (commit,) = [
            commit for commit in self.table().head(None, APP).tagged_commits if commit.number == number
        ]
        return commit

    def counts(self, number: int) -> tuple[int, int | None]:
        """Rows that the commit of a number wrote, and those that it removed."""
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
        theirs = pa.table({"id": pa.array(ids, pa.int64()), "unit": list(units)})
        write_deltalake(str(self.folder), theirs, mode="append")

    def query(self, columns: str) -> list[dict[str, Any]]:
        """Rows as another engine reads them, in the order of the first column."""
        query = QueryBuilder().register("rows", DeltaTable(str(self.folder)))
        found = query.execute(f"SELECT {columns} FROM rows ORDER BY 1").read_all()
        rows: list[dict[str, Any]] = pa.table(found).to_pylist()
        return rows

    @property
    def log(self) -> list[list[dict[str, Any]]]:
        """The actions of each commit that is there."""
        files = sorted((self.folder / "_delta_log").glob("*.json"))
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    @property
    def writers(self) -> list[str]:
        """Of each commit, also of others: ``own`` or ``Delta``."""
        infos = [
            next(action["commitInfo"] for action in commit if "commitInfo" in action) for commit in self.log
        ]
        return ["own" if info["engineInfo"].startswith("delta-rs") else "Delta" for info in infos]

    @property
    def folders(self) -> list[str]:
        """Folders of data files below the table."""
        return sorted(
            path.name for path in self.folder.iterdir() if not path.name.startswith("_") and path.is_dir()
        )

    def statistics(self, version: int) -> list[dict[str, Any]]:
        """What a version's commit says of each file that it adds."""
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
        """A copy of the table, beside it."""
        return Path(shutil.copytree(self.folder, self.folder.with_name("copy")))

    @property
    def _committer(self) -> tuple[type, str]:
        return delta_own_commit.DeltaOwnCommit, "_commit"

    def _lost(self) -> Exception:
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
        """Another engine's procedure."""
        catalog, _, name = self.name.partition(".")
        told = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        self.spark.sql(f"CALL {catalog}.system.{procedure}(table => '{name}', {told})").collect()

    def other_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        return iceberg_rows(self.folder, columns)

    @property
    def metadata(self) -> Metadata:
        """The newest."""
        newest = FolderCatalog(Place(str(self.folder))).newest()
        assert newest is not None
        return newest

    @property
    def strays(self) -> set[str]:
        known = {Path(row["file_path"]).name for row in self.sql("SELECT file_path FROM {t}.all_data_files")}
        return {path.name for path in (self.folder / "data").rglob("*.parquet")} - known

    @property
    def removed_files(self) -> int:
        return next(self.metadata.lineage()).count("deleted-data-files")

    @property
    def _committer(self) -> tuple[type, str]:
        return FolderCatalog, "add_snapshot"

    def _lost(self) -> Exception:
        return TargetError(LOST)

    @property
    def _looker(self) -> tuple[type, str]:
        return FolderCatalog, "newest"


LAKES: dict[str, type[Lake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
"""By format, those whose commits can be Strandline's own."""


def lake_in(format_: str, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """A table of a format in a folder of a lake."""
    return LAKES[format_](spark, folder / "lake/bronze/t", patch)
