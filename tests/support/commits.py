"""A table that grows and changes commit by commit, and dataflows that read its log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from resources.spark.engine import SparkEngine
from tests.support.feed import Feed, in_order
from tests.support.iceberg import foreign_table, iceberg_rows, newest_table

TABLE = "bronze/events"
COLUMNS = ("id", "v")
OF_CHANGES = ("id", "v", "_change_type", "_commit_version", "_commit_timestamp")

Row = tuple[int, str]


def copying(**keys: Any) -> dict[str, Any]:
    """Return the definition of a dataflow that reads the table's commits into ``silver/copy``."""
    source = {"type": "table", "table": TABLE} | keys.pop("source", {})
    target = {"load": "append", "table": "silver/copy"} | keys.pop("target", {})
    watermark = {"type": "offset"} | keys.pop("watermark", {})
    return {"layer": "silver", "source": source, "watermark": watermark, "target": target, **keys}


@dataclass
class Upstream:
    """A Delta table of the lake that deltalake writes.

    Attributes:
        lake: the folder of the lake.
        engine: Spark.
        name: the name of the table.
    """

    lake: Path
    engine: SparkEngine
    name: str = TABLE

    @property
    def folder(self) -> Path:
        """Return the table's folder."""
        return self.lake / self.name

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable(str(self.folder))

    def append(self, *rows: Row) -> None:
        """Commit rows."""
        write_deltalake(str(self.folder), _arrow(rows), mode="append")

    def overwrite(self, *rows: Row) -> None:
        """Replace all rows in one commit."""
        write_deltalake(str(self.folder), _arrow(rows), mode="overwrite")

    def delete(self, id_: int) -> None:
        """Delete a row."""
        self._table.delete(f"id = {id_}")

    def update(self, id_: int, value: str) -> None:
        """Change a row."""
        self._table.update(updates={"v": f"'{value}'"}, predicate=f"id = {id_}")

    def merge(self, *rows: Row) -> None:
        """Update the rows with these ids, and insert new ones, in one commit."""
        merger = self._table.merge(_arrow(rows), "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> None:
        """Join small files, which changes no row."""
        self._table.optimize.compact()

    def restore(self, back: int) -> None:
        """Set the table back to the state some commits ago, in a new commit; -1: to the state before the last one."""
        table = self._table
        table.restore(max(0, table.version() - abs(back)))

    def date_commit(self, version: int, time: str) -> None:
        """Write another time into the log file of a commit."""
        file = self.folder / "_delta_log" / f"{version:020d}.json"
        milliseconds = int(datetime.fromisoformat(time).timestamp() * 1000)
        text = re.sub(r'"timestamp":\d+', f'"timestamp":{milliseconds}', file.read_text())
        file.write_text(text)

    def rename_file(self, name: str) -> None:
        """Give the file that the newest commit added another name, as a foreign writer may have."""
        log = self.folder / "_delta_log" / f"{self.version:020d}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            (self.folder / add["path"]).rename(self.folder / name)
            add["path"] = quote(name)
        log.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions))

    def clean(self) -> None:
        """Remove all versions from the log but the newest, and the files that only they need."""
        self._table.create_checkpoint()
        for file in sorted((self.folder / "_delta_log").glob("*.json"))[:-1]:
            file.unlink()
        self.vacuum()

    def vacuum(self) -> None:
        """Remove the files that the newest version does not need; the log stays."""
        self._table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def remove_files(self, version: int) -> None:
        """Delete the files that a commit added, as a VACUUM does after they were rewritten."""
        for add in self._adds(version):
            (self.folder / add["path"]).unlink()

    def _adds(self, version: int) -> list[dict[str, Any]]:
        log = self.folder / "_delta_log" / f"{version:020d}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        return [action["add"] for action in actions if "add" in action]

    def rows(self) -> list[Row]:
        """Return the rows, sorted."""
        return delta_rows(self._table, COLUMNS)

    @property
    def version(self) -> int:
        """Return the number of the newest commit."""
        return self._table.version()


@dataclass
class IcebergUpstream(Upstream):
    """The same as an Iceberg table that Spark writes; deletes and updates lie in files of their own."""

    def _sql(self, statement: str, **names: str) -> None:
        spark = self.engine.session()
        name = foreign_table(spark, self.folder)
        catalog, _, table = name.partition(".")
        text = statement.format(table=name, catalog=catalog, name=table.replace("`", ""), **names)
        spark.sql(text).collect()

    def append(self, *rows: Row) -> None:
        """Commit rows."""
        spark = self.engine.session()
        frame = spark.createDataFrame(list(rows), "id long, v string").coalesce(1)
        name = foreign_table(spark, self.folder)
        if (self.folder / "metadata").is_dir():
            frame.writeTo(name).append()
            return
        modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
        writer = frame.writeTo(name).using("iceberg").tableProperty("format-version", "2")
        for key, value in modes.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def overwrite(self, *rows: Row) -> None:
        """Replace all rows in one commit."""
        from pyspark.sql import functions as F

        spark = self.engine.session()
        frame = spark.createDataFrame(list(rows), "id long, v string")
        frame.writeTo(foreign_table(spark, self.folder)).overwrite(F.lit(True))

    def delete(self, id_: int) -> None:
        """Delete a row."""
        self._sql(f"DELETE FROM {{table}} WHERE id = {id_}")

    def update(self, id_: int, value: str) -> None:
        """Change a row."""
        self._sql(f"UPDATE {{table}} SET v = '{value}' WHERE id = {id_}")

    def merge(self, *rows: Row) -> None:
        """Update the rows with these ids, and insert new ones, in one commit."""
        self._sql(f"MERGE INTO {{table}} t USING ({_selected(rows)}) s ON t.id = s.id {_MERGED}")

    def compact(self) -> None:
        """Join small files, which changes no row."""
        self._sql(
            "CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('min-input-files', '2'))"
        )

    def restore(self, back: int) -> None:
        """Roll the table back by some snapshots, or forward to the last one, which leaves no commit behind."""
        spark = self.engine.session()
        name = foreign_table(spark, self.folder)
        if back < 0:
            newest = f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1"
            self.set_to(spark.sql(newest).collect()[0][0])
            return
        line = (
            f"SELECT snapshot_id FROM {name}.history WHERE is_current_ancestor ORDER BY made_current_at DESC"
        )
        history = list(dict.fromkeys(row[0] for row in spark.sql(line).collect()))
        snapshot = history[min(back, len(history) - 1)]
        self._sql(f"CALL {{catalog}}.system.rollback_to_snapshot('{{name}}', {snapshot})")

    def set_to(self, snapshot: int) -> None:
        """Make any snapshot the current one, which leaves no commit behind."""
        self._sql(f"CALL {{catalog}}.system.set_current_snapshot('{{name}}', {snapshot})")

    def clean(self) -> None:
        """Expire all snapshots but the newest."""
        self._sql(
            "CALL {catalog}.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1)"
        )

    def rows(self) -> list[Row]:
        """Return the rows, sorted."""
        return sorted((row["id"], row["v"]) for row in iceberg_rows(self.folder, COLUMNS))


@dataclass
class SparkUpstream(Upstream):
    """The same Delta table, which Spark writes: with deletion vectors, or a feed, if its properties say so."""

    properties: str = ""

    def _sql(self, statement: str) -> None:
        self.engine.session().sql(statement.format(table=f"delta.`{self.folder}`")).collect()

    def append(self, *rows: Row) -> None:
        """Commit rows."""
        if not (self.folder / "_delta_log").is_dir():
            properties = f" TBLPROPERTIES ({self.properties})" if self.properties else ""
            self._sql(f"CREATE TABLE {{table}} (id bigint, v string) USING delta{properties}")
        self._sql(f"INSERT INTO {{table}} {_selected(rows)}")

    def overwrite(self, *rows: Row) -> None:
        """Replace all rows in one commit."""
        self._sql(f"INSERT OVERWRITE {{table}} {_selected(rows)}")

    def delete(self, id_: int) -> None:
        """Delete a row."""
        self._sql(f"DELETE FROM {{table}} WHERE id = {id_}")

    def update(self, id_: int, value: str) -> None:
        """Change a row."""
        self._sql(f"UPDATE {{table}} SET v = '{value}' WHERE id = {id_}")

    def merge(self, *rows: Row) -> None:
        """Update the rows with these ids, and insert new ones, in one commit."""
        self._sql(f"MERGE INTO {{table}} t USING ({_selected(rows)}) s ON t.id = s.id {_MERGED}")

    def compact(self) -> None:
        """Join small files, which changes no row."""
        self._sql("OPTIMIZE {table}")

    def restore(self, back: int) -> None:
        """Set the table back to the state some commits ago, in a new commit."""
        self._sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {max(0, self.version - back)}")

    def vacuum(self) -> None:
        """Remove the files that the newest version does not need; the log stays."""
        self.engine.session().conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self._sql("VACUUM {table} RETAIN 0 HOURS")


class _FolderTables(NoopCatalog):
    """A catalog of pyiceberg that puts the next metadata beside the others, as Spark's of a folder does."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the metadata of the next number."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        number = int(Path(table.metadata_location).name[1:].partition(".")[0])
        place = Path(table.metadata_location).with_name(f"v{number + 1}.metadata.json")
        ToOutputFile.table_metadata(metadata, table.io.new_output(str(place)))
        return CommitTableResponse(metadata=metadata, metadata_location=str(place))


@dataclass
class PyicebergUpstream(IcebergUpstream):
    """The same Iceberg table, which pyiceberg writes: it rewrites files, and deletes none by delete files."""

    @property
    def _written(self) -> Table:
        newest = newest_table(self.folder)
        return Table(
            ("bronze", "events"), newest.metadata, newest.metadata_location, newest.io, _FolderTables("-")
        )

    def append(self, *rows: Row) -> None:
        """Commit rows."""
        if not (self.folder / "metadata").is_dir():
            super().append(*rows)
            return
        self._written.append(_arrow(rows))

    def overwrite(self, *rows: Row) -> None:
        """Replace all rows in one transaction: a snapshot that deletes, and one that appends."""
        self._written.overwrite(_arrow(rows))

    def delete(self, id_: int) -> None:
        """Delete a row."""
        self._written.delete(f"id = {id_}")

    def update(self, id_: int, value: str) -> None:
        """Change a row."""
        self.merge((id_, value))

    def merge(self, *rows: Row) -> None:
        """Update the rows with these ids, and insert new ones."""
        self._written.upsert(_arrow(rows), join_cols=["id"])

    def restore(self, back: int) -> None:
        """Roll the table back by some snapshots, which leaves no commit behind."""
        table = self._written
        line = [table.current_snapshot()]
        while line[-1] is not None and line[-1].parent_snapshot_id is not None:
            line.append(table.snapshot_by_id(line[-1].parent_snapshot_id))
        snapshot = line[min(back, len(line) - 1)]
        assert snapshot is not None
        table.manage_snapshots().set_current_snapshot(snapshot.snapshot_id).commit()


UPSTREAMS: Mapping[str, type[Upstream]] = {"delta": Upstream, "iceberg": IcebergUpstream}
WRITERS: Mapping[str, tuple[type[Upstream], ...]] = {
    "delta": (Upstream, SparkUpstream),
    "iceberg": (IcebergUpstream, PyicebergUpstream),
}
"""All writers of a table, by its format."""


def delta_rows(table: DeltaTable, columns: Sequence[str]) -> list[Any]:
    """Return these columns of all rows of a version, sorted; also of files with deletion vectors."""
    read = QueryBuilder().register("t", table).execute(f"SELECT {', '.join(columns)} FROM t").read_all()
    return in_order(tuple(row[name] for name in columns) for row in pa.table(read).to_pylist())


def rows_of(feed: Feed) -> list[Row]:
    """Return the rows of a dataflow's table, sorted."""
    return [(id_, value) for id_, value in feed.rows(*COLUMNS)]


def replayed(changes: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows that a table has after its change rows, applied in the order of their numbers.

    Args:
        changes: the columns of each row, and then those of its change.
    """
    rows: list[tuple[Any, ...]] = []
    for number in sorted({change[-2] for change in changes}):
        of_commit = [change for change in changes if change[-2] == number]
        for change in of_commit:
            if change[-3] in ("delete", "update_preimage"):
                rows.remove(change[:-3])
        rows += [change[:-3] for change in of_commit if change[-3] in ("insert", "update_postimage")]
    return in_order(rows)


_MERGED = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def _selected(rows: Sequence[Row]) -> str:
    values = ", ".join(f"({id_}L, '{value}')" for id_, value in rows)
    return f"SELECT * FROM VALUES {values} AS x(id, v)"


def _arrow(rows: Sequence[Row]) -> pa.Table:
    ids, values = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})
