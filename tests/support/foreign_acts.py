"""What other writers do to a dataflow's table, for each format, so that one test covers all.

See docs/reference/state.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from resources.connections.places import Place
from tests.support.catalogs import name_in_sql
from tests.support.feed import NAME, Feed
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN_ID = 77
"""The ``id`` of each row that others add."""

ACTS = ("rollback", "expiry", "compaction", "append", "delete", "made again")
"""To before the last commit; of all that only older versions need; of all files into one; of a row; of row 1; with one row."""


@dataclass(frozen=True)
class Others:
    """Another writer of a dataflow's table, with the format's own tools.

    Attributes:
        feed: the dataflow.
        spark: a session; None for Delta alone.
        table: another table of the same format, ``<layer>/<name>``.
    """

    feed: Feed
    spark: SparkSession | None
    table: str | None = None

    def do(self, act: str) -> None:
        """Do one of :data:`ACTS`, or ``double`` all rows of a table that is not Parquet's."""
        acts: dict[str, Callable[[str], None]] = {
            "delta": self._delta,
            "iceberg": self._iceberg,
            "parquet": self._parquet,
        }
        acts[self.feed.dataflow.target.format](act)

    def ids(self) -> list[int]:
        """Return the column ``id`` of all rows, as plain readers see them."""
        if self.feed.dataflow.target.format == "parquet":
            return sorted(pq.read_table(self._folder)["id"].to_pylist()) if _files(self._folder) else []
        if self._place.catalog:
            return sorted(row["id"] for row in self._session.table(self._name).select("id").collect())
        return self.feed.ids

    @property
    def _folder(self) -> Path:
        return self.feed.folder / "lake" / self.table if self.table else self.feed.table

    @property
    def _place(self) -> Place:
        return self.feed.platform.lake.child(self.table or self.feed.dataflow.table)

    @property
    def _name(self) -> str:
        """Return the SQL name of an Iceberg table."""
        has_catalog = self._place.catalog is not None
        return (
            name_in_sql(self._session, self._place)
            if has_catalog
            else foreign_table(self._session, self._folder)
        )

    @property
    def _session(self) -> SparkSession:
        assert self.spark is not None
        return self.spark

    def _delta(self, act: str) -> None:
        path, table = str(self._folder), DeltaTable(str(self._folder))
        match act:
            case "rollback":
                table.restore(table.version() - 1)
            case "expiry":
                table.create_checkpoint()
                for file in (self._folder / "_delta_log").glob("*.json"):
                    if int(file.stem) < table.version():
                        file.unlink()
                DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
            case "compaction":
                table.optimize.compact()
            case "append":
                write_deltalake(path, self._row(table.to_pyarrow_table().schema), mode="append")
            case "double":
                write_deltalake(path, table.to_pyarrow_table(), mode="append")
            case "delete":
                table.delete("id = 1")
            case "made again":
                row = self._row(table.to_pyarrow_table().schema)
                shutil.rmtree(self._folder)
                write_deltalake(path, row)

    def _row(self, columns: pa.Schema) -> pa.Table:
        nullable = pa.schema([field.with_nullable(True) for field in columns])
        return pa.Table.from_pylist([dict.fromkeys(columns.names) | {"id": FOREIGN_ID}], nullable)

    def _iceberg(self, act: str) -> None:
        name = self._name
        catalog, namespace, table = name.split(".")
        call = f"CALL {catalog}.system.{{}}(table => '{namespace}.{table}', {{}})".format
        match act:
            case "rollback":
                newest, *_ = self._session.sql(
                    f"SELECT parent_id FROM {name}.history WHERE is_current_ancestor ORDER BY made_current_at DESC"
                ).collect()
                self._ask(call("rollback_to_snapshot", f"snapshot_id => {newest['parent_id']}"))
            case "expiry":
                old = "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"
                self._ask(call("expire_snapshots", old))
            case "compaction":
                self._ask(call("rewrite_data_files", "options => map('rewrite-all', 'true')"))
            case "append":
                columns = [field.name for field in self._session.table(name).schema]
                values = ", ".join(str(FOREIGN_ID) if column == "id" else "NULL" for column in columns)
                self._ask(f"INSERT INTO {name} VALUES ({values})")
            case "double":
                self._ask(f"INSERT INTO {name} SELECT * FROM {name}")
            case "delete":
                self._ask(f"DELETE FROM {name} WHERE id = 1")
            case "made again":
                ddl = ", ".join(f"`{column}` {kind}" for column, kind in self._session.table(name).dtypes)
                self._ask(f"DROP TABLE {name}")
                shutil.rmtree(self._folder, ignore_errors=True)
                at = f" LOCATION '{self._folder}'" if self._place.catalog else ""
                self._ask(f"CREATE TABLE {name} ({ddl}) USING iceberg{at}")
                self._iceberg("append")

    def _ask(self, text: str) -> None:
        self._session.sql(text).collect()

    def _parquet(self, act: str) -> None:
        lists = sorted((self._folder / "_strandline").glob("*.json"))
        hidden = self._folder.parent / "_staging" / NAME
        files = _files(self._folder)
        match act:
            case "rollback":  # as a backup puts it back: without the last list, and without its files
                for added in json.loads(lists[-1].read_text()).get("added", ()):
                    (self._folder / added["path"]).unlink(missing_ok=True)
                lists[-1].unlink()
            case "expiry":  # somebody tidies up what looks like leftovers
                shutil.rmtree(hidden, ignore_errors=True)
            case "compaction":
                rows = pq.read_table(self._folder)
                for file in files:
                    file.unlink()
                pq.write_table(rows, self._folder / "compacted.parquet")
            case "append":
                pq.write_table(self._row(pq.read_schema(files[0])), self._folder / "foreign.parquet")
            case "delete":
                next(file for file in files if 1 in pq.read_table(file)["id"].to_pylist()).unlink()
            case "made again":
                row = self._row(pq.read_schema(files[0]))
                shutil.rmtree(self._folder)
                self._folder.mkdir()
                pq.write_table(row, self._folder / "foreign.parquet")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))
