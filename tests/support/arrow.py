"""A stand-in for Spark in tests with thousands of runs: rows in Arrow, and Delta's commits.

Belongs here: the few methods of a DataFrame and of a session that the loop and :class:`DeltaLakeTable`
call, so that both stay the
real ones; and Delta's rules for a commit:

- a write whose number is not above the one that the table has recorded for its app id is skipped silently;
- of two writes with one app id that began on the same version one fails, also if both create the table;
- rows that replace others must fit the predicate;
- an overwrite fails if another writer has changed the data since it began; an append does not.

A commit describes itself (``operationMetrics`` and the like) as Delta 4.4 on Spark 4.1 does;
``tests/integration/test_arrow.py`` compares the two.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StringType, StructField, StructType

from partitions.errors import RowsRefused, StrandlineError
from partitions.loads import Replace
from partitions.predicate import Among, matches
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.data_files.written import DataFile
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_change import PlannedChange, Removals
from resources.tables.delta.own_commit import DeltaOwnCommit
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.delta.writing import DeltaWrites
from resources.tables.rows.replacement import OUTSIDE

SCHEMA = pa.schema([("id", pa.int64()), ("_source_file", pa.string())])

_SPARK_TYPE = {pa.int64(): LongType(), pa.string(): StringType()}
_DELTA_TYPE = {pa.int64(): "long", pa.string(): "string"}
_COMMIT = re.compile(r"\d{20}\.json")
_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'")


class CommitFailed(Exception):
    """The error of a Delta writer that meets another writer's commit."""


@dataclass(frozen=True)
class Rows:
    """A DataFrame, with the methods that the loop and a target use."""

    table: pa.Table
    hear: Hear = lambda when, write: None

    @property
    def schema(self) -> StructType:
        """Return the columns."""
        return StructType(
            [StructField(column.name, _SPARK_TYPE[column.type]) for column in self.table.schema]
        )

    @property
    def sparkSession(self) -> Session:  # noqa: N802 - Spark's name
        """Return a session."""
        return Session(self.hear)

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.table.column_names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Return the names and types of the columns."""
        return [(column.name, str(column.type)) for column in self.table.schema]

    @property
    def write(self) -> Writer:
        """Return a writer of these rows."""
        return Writer(self)

    def unionByName(self, other_rows: Rows) -> Rows:  # noqa: N802 - Spark's name
        """Return these rows and the others."""
        return replace(self, table=pa.concat_tables([self.table, other_rows.table.select(self.columns)]))

    def drop(self, *names: str) -> Rows:
        """Return the rows without some columns; names that they lack do not matter, as in Spark."""
        kept = [name for name in self.columns if name not in names]
        return replace(self, table=self.table.select(kept))

    def limit(self, count: int) -> Rows:
        """Return the first rows."""
        return replace(self, table=self.table.slice(0, count))


@dataclass(eq=False)  # which makes it hashable, as a session is
class Session:
    """A session, with the methods that the loop and a target use.

    Attributes:
        hear: called right before and right after the commit of a write; an exception is the writer's
        death.
    """

    hear: Hear = lambda when, write: None

    @property
    def conf(self) -> _Conf:
        """Return a configuration that accepts every setting."""
        return _Conf()

    @property
    def read(self) -> Session:
        """Return a reader of tables; other code reads the files."""
        return self

    def format(self, name: str) -> Session:
        """Accept Delta."""
        assert name == "delta", name
        return self

    def load(self, url: str) -> Rows:
        """Return a table's columns.

        Raises:
            AnalysisException: if there is no table.
        """
        folder = _folder(url)
        if not _versions(folder):
            from pyspark.errors import AnalysisException

            raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {url}. SQLSTATE: 42K03")
        fields = DeltaTable(str(folder)).schema().fields
        types = {"long": pa.int64(), "string": pa.string()}
        schema = pa.schema([(column.name, types[str(column.type.type)]) for column in fields])
        return Rows(schema.empty_table(), self.hear)


class _Conf:
    getAll: ClassVar[dict[str, str]] = {}  # noqa: N815 - Spark's name

    def get(self, key: str, default: object = None) -> object:
        """Return the default: nothing is set."""
        return default

    def set(self, key: str, value: object) -> None:
        """Ignore it."""

    def unset(self, key: str) -> None:
        """Ignore it."""


@dataclass
class Writer:
    """``DataFrame.write``."""

    rows: Rows
    _mode: str = "error"
    _options: dict[str, str] = field(default_factory=dict)
    _format: str = "delta"

    def format(self, name: str) -> Writer:
        """Choose Delta, or Parquet files in a new folder."""
        assert name in ("delta", "parquet"), name
        self._format = name
        return self

    def mode(self, mode: str) -> Writer:
        """Choose ``append``, ``overwrite``, or ``error``, which requires that the table does not exist."""
        self._mode = mode
        return self

    def option(self, key: str, value: object) -> Writer:
        """Set an option."""
        return self.options(**{key: value})

    def options(self, **options: object) -> Writer:
        """Set several options."""
        self._options |= {key: str(value) for key, value in options.items()}
        return self

    def save(self, url: str) -> None:
        """Write in one commit, or skip it."""
        if self._format == "parquet":
            Path(url).mkdir(parents=True)
            pq.write_table(self.rows.table, Path(url) / f"part-{uuid4()}.parquet")
            return
        folder, app_id, number = _folder(url), self._options["txnAppId"], int(self._options["txnVersion"])
        versions = _versions(folder)
        if versions and (DeltaTable(str(folder)).transaction_version(app_id) or -1) >= number:
            return
        if versions and self._mode == "error":
            from pyspark.errors import AnalysisException

            raise AnalysisException(f"[DELTA_PATH_EXISTS] Cannot write to already existent path {url}")
        write = Write(
            folder,
            versions[-1] if versions else None,
            app_id,
            number,
            self._mode,
            self._options.get("replaceWhere"),
            self._options["userMetadata"],
            self.rows.table,
        )
        self.rows.hear("before", write)
        write.land()
        self.rows.hear("after", write)


@dataclass(frozen=True)
class Write:
    """A write in progress: it may land later, when nobody waits for it any more.

    Attributes:
        read: the version of the table at its start; None if there was no table.
        where: the rows that an overwrite deletes; None: all of them.
    """

    folder: Path
    read: int | None
    app_id: str
    number: int
    mode: str
    where: str | None
    metadata: str
    rows: pa.Table

    def moved(self, folder: Path) -> Write:
        """Return the same write into a copy of the table."""
        return replace(self, folder=folder)

    @property
    def paths(self) -> list[str]:
        """Return the files that the rows came from, one a row."""
        return [str(path) for path in self.rows["_source_file"].to_pylist()]

    @property
    def owned(self) -> dict[str, Any]:
        """Return Strandline's own part of the commit's description."""
        metadata: dict[str, Any] = json.loads(self.metadata)["strandline"]
        return metadata

    @property
    def deleted(self) -> set[str] | None:
        """Return the files whose rows an overwrite deletes; None: all rows of the table."""
        if self.mode != "overwrite":
            return set()
        if self.where is None:
            return None
        assert self.where.startswith(("`_source_file` IN (", "`_source_file` = ")), self.where
        return {re.sub(r"\\(.)", r"\1", text) for text in _LITERAL.findall(self.where)}

    def land(self) -> None:
        """Commit.

        Raises:
            CommitFailed: if another commit is in the way, or the table has been replaced since the start.
        """
        versions = _versions(self.folder)
        last = versions[-1] if versions else None
        self._check(versions)
        (self.folder / "_delta_log").mkdir(parents=True, exist_ok=True)
        version = 0 if last is None else last + 1
        actions = [*self._first(last), *self._data(last)]
        text = "".join(f"{json.dumps(action)}\n" for action in actions)
        draft = self.folder / "_delta_log" / f".{uuid4().hex}.tmp"
        draft.write_text(text)
        try:
            os.link(draft, self.folder / "_delta_log" / f"{version:020d}.json")
        finally:
            draft.unlink()

    def _check(self, versions: list[int]) -> None:
        if self.deleted and not set(self.paths) <= self.deleted:
            raise CommitFailed(
                "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES: rows are not among those that are replaced"
            )
        if self.read is not None and self.read > max(versions, default=-1):
            raise CommitFailed(f"version {self.read} of the table is gone")
        winners = [version for version in versions if self.read is None or version > self.read]
        if winners and self.read is None:
            raise CommitFailed("ProtocolChangedException: the table was made by somebody else")
        for version in winners:
            actions = _actions(self.folder, version)
            if any(action.get("txn", {}).get("appId") == self.app_id for action in actions):
                raise CommitFailed("ConcurrentTransactionException: this query was run twice")
            if self.mode == "overwrite" and any("add" in action or "remove" in action for action in actions):
                raise CommitFailed("ConcurrentAppendException: files were added or removed meanwhile")

    def _first(self, last: int | None) -> list[dict[str, Any]]:
        """Return the actions of a table's first commit."""
        if last is not None:
            return []
        fields = [
            {"name": column.name, "type": _DELTA_TYPE[column.type], "nullable": True, "metadata": {}}
            for column in self.rows.schema
        ]
        metadata = {
            "id": str(uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": _now(),
        }
        return [{"metaData": metadata}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]

    def _data(self, last: int | None) -> list[dict[str, Any]]:
        """Return the actions for the added and removed rows, and the commit's counts; commitInfo first."""
        adds: list[dict[str, Any]] = self._added(self.rows)
        metrics: dict[str, str] = {}
        removes: list[dict[str, Any]] = []
        if self.mode == "overwrite":
            removes, copies, metrics = self._removed(last)
            adds += copies
        size = sum(action["add"]["size"] for action in adds)
        mode = "ErrorIfExists" if self.mode == "error" else self.mode.capitalize()
        parameters = {"mode": mode, "partitionBy": "[]"}
        if self.where is not None:
            parameters["predicate"] = self.where
        partial = self.where is not None
        if self.rows.num_rows or not partial:
            copied = int(metrics.get("numCopiedRows", 0))
            metrics |= {"numFiles": str(max(1, len(adds))), "numOutputRows": str(self.rows.num_rows + copied)}
        else:  # as Spark says it: an overwrite of a part with no rows is a delete, which counts none
            metrics = {key: value for key, value in metrics.items() if "Rows" not in key} | {"numFiles": "0"}
        info = {
            "timestamp": _now(),
            "operation": "WRITE",
            "operationParameters": parameters,
            **({} if last is None else {"readVersion": last}),
            "isolationLevel": "Serializable",
            "isBlindAppend": self.mode != "overwrite",
            "operationMetrics": {**metrics, "numOutputBytes": str(size)},
            "userMetadata": self.metadata,
            "engineInfo": "tests.support.arrow",
            "txnId": str(uuid4()),
        }
        txn = {"appId": self.app_id, "version": self.number, "lastUpdated": _now()}
        return [{"commitInfo": info}, {"txn": txn}, *adds, *removes]

    def _added(self, rows: pa.Table) -> list[dict[str, Any]]:
        if not rows.num_rows:
            return []
        name = f"part-{uuid4()}.parquet"
        self.folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, self.folder / name)
        size = (self.folder / name).stat().st_size
        add = {
            "path": name,
            "partitionValues": {},
            "size": size,
            "modificationTime": _now(),
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
        }
        return [{"add": add}]

    def _removed(self, last: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
        """Return the actions that remove whole files; other rows in them are copied."""
        removes: list[dict[str, Any]] = []
        copies: list[dict[str, Any]] = []
        deleted_rows = copied = size = 0
        names = active(self.folder) if last is not None else []
        for name in names:
            rows, kept_rows = pq.read_table(self.folder / name), None
            if self.deleted is not None:
                hit = pc.fill_null(
                    pc.is_in(rows["_source_file"], pa.array(sorted(self.deleted), pa.string())), False
                )
                if not pc.any(hit).as_py():
                    continue
                kept_rows = rows.filter(pc.invert(hit))
            bytes_ = (self.folder / name).stat().st_size
            size += bytes_
            deleted_rows += rows.num_rows - (kept_rows.num_rows if kept_rows is not None else 0)
            copied += kept_rows.num_rows if kept_rows is not None else 0
            removes.append(
                {"remove": {"path": name, "deletionTimestamp": _now(), "dataChange": True, "extendedFileMetadata": True,
                            "partitionValues": {}, "size": bytes_}}
            )  # fmt: skip
            if kept_rows is not None:
                copies += self._added(kept_rows)
        metrics = {"numRemovedFiles": str(len(removes)), "numRemovedBytes": str(size)}
        if self.where is not None:
            metrics |= {
                "numCopiedRows": str(copied),
                "numAddedChangeFiles": "0",
                "numDeletedRows": str(deleted_rows),
            }
        return removes, copies, metrics


@dataclass(frozen=True)
class OwnWrite:
    """A write of the product's own at its commit: it may land later, when nobody waits any more."""

    own: DeltaOwnCommit
    change: PlannedChange

    @property
    def number(self) -> int:
        """Return the slice's number."""
        return self.own.tag.number

    @property
    def mode(self) -> str:
        """Return the mode in Spark's words."""
        return "overwrite" if isinstance(self.change.load, Replace) else "append"

    @property
    def paths(self) -> list[str]:
        """Return the files that the rows came from, one a row."""
        folder = self.own.log.place.local
        assert folder is not None
        files = [pq.read_table(folder / file.path, partitioning=None) for file in self.change.files]
        paths = [path for rows in files for path in rows["_source_file"].to_pylist()]
        # Rows that were only copied do not come from a file.
        return paths if self.deleted == set() else [path for path in paths if path in (self.deleted or ())]

    @property
    def owned(self) -> dict[str, Any]:
        """Return Strandline's own part of the commit's description."""
        metadata: dict[str, Any] = json.loads(self.own.text)["strandline"]
        return metadata

    @property
    def deleted(self) -> set[str] | None:
        """Return the files whose rows it deletes."""
        load = self.change.load
        if not isinstance(load, Replace) or self.change.base is None:
            return set()
        assert isinstance(load.where, Among)
        assert load.where.column == "_source_file"
        return set(load.where.values)

    def land(self) -> None:
        """Continue with the commit.

        Raises:
            CommitFailed: if it is refused, skipped, or left to Delta's own writer, which nobody calls any
            more.
        """
        before = _versions(_local(self.own))
        try:
            self.own.commit_change(self.change)
        except StrandlineError as error:
            raise CommitFailed(error.message) from error
        if _versions(_local(self.own)) == before:
            raise CommitFailed("it was skipped")

    def moved(self, folder: Path) -> OwnWrite:
        """Return the same write into a copy of the table."""
        return replace(self, own=DeltaOwnCommit(DeltaLog(Place(str(folder))), self.own.tag, self.own.text))


@dataclass(frozen=True)
class HeardCommit(DeltaOwnCommit):
    """The product's own commit, with announcements.

    Attributes:
        hear: as in a session.
    """

    hear: Hear = lambda when, write: None

    def _commit(self, table: DeltaTable | None, change: PlannedChange, removals: Removals) -> None:
        write = OwnWrite(DeltaOwnCommit(self.log, self.tag, self.text), change)
        self.hear("before", write)
        super()._commit(table, change, removals)
        self.hear("after", write)


class _ArrowCommit(HeardCommit):
    def _replacement(self, rows: Any, load: Replace, removals: Removals) -> Any:
        return ArrowReplacement.of(
            rows, load, [_local(self) / unquote(action["path"]) for action in removals.partial_files]
        )


@dataclass(frozen=True)
class ArrowReplacement:
    """A :class:`resources.tables.rows.replacement.Replacement` of rows in Arrow."""

    rows: Rows
    kept_count: int
    outside: int

    @classmethod
    def of(cls, rows: Rows, load: Replace, part: Sequence[Path]) -> ArrowReplacement:
        """Return the rows with the remaining rows of files that are removed in part."""
        stored_rows = [row for file in part for row in pq.read_table(file, partitioning=None).to_pylist()]
        kept_rows = [row for row in stored_rows if not matches(load.where, row)]
        outside = sum(not matches(load.where, row) for row in rows.table.to_pylist())
        stay = Rows(pa.Table.from_pylist(kept_rows, schema=rows.table.schema))
        return cls(rows.unionByName(stay), len(kept_rows), outside)

    def count_copied(self, folder: Place, files: Sequence[DataFile]) -> int:
        """Return how many rows remain, if no row of the slice is outside the load's predicate."""
        if self.outside:
            raise RowsRefused(
                f"{self.outside} rows lie outside the part of the table that the slice replaces", code=OUTSIDE
            )
        return self.kept_count


class ArrowTable(DeltaLakeTable):
    """A Delta table with rows in Arrow.

    Attributes:
        hear: as in a session.
    """

    hear: Hear = staticmethod(lambda when, write: None)

    def _writer(self) -> DeltaWrites:
        return _ArrowWrites(self.hear, self._log, self._share, self._partition_by, self._schema_mode)


class _ArrowWrites(DeltaWrites):
    def __init__(self, hear: Hear, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._hear = hear

    def _own_commit(self, tag: Tag, state: str) -> DeltaOwnCommit:
        own = super()._own_commit(tag, state)
        return _ArrowCommit(own.log, own.tag, own.text, self._hear)


def _local(own: DeltaOwnCommit) -> Path:
    assert own.log.place.local is not None
    return own.log.place.local


Hear = Callable[[str, Write | OwnWrite], None]


def active(folder: Path) -> list[str]:
    """Return the data files of a table's newest version; none if there is no table."""
    if not _versions(folder):
        return []
    paths = pa.table(DeltaTable(str(folder)).get_add_actions())["path"].to_pylist()
    return sorted(unquote(path) for path in paths)


def _versions(folder: Path) -> list[int]:
    log = folder / "_delta_log"
    names = [file.name for file in log.iterdir()] if log.is_dir() else []
    return sorted(int(name[:20]) for name in names if _COMMIT.fullmatch(name))


def _actions(folder: Path, version: int) -> list[dict[str, Any]]:
    text = (folder / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def _folder(url: str) -> Path:
    return Path(unquote(urlsplit(url).path)) if "://" in url else Path(url)


def _now() -> int:
    return int(time.time() * 1000)
