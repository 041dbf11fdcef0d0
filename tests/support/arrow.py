"""What stands in for Spark where a test wants thousands of runs: rows in Arrow, and a writer that commits to Delta as Spark does.

Belongs here: the few methods of a DataFrame and of a session that the loop and :class:`DeltaLakeTable` call, so that both stay the
real ones; and Delta's rules for a commit:

- a write whose number is not above the one that the table has recorded for its app id is skipped in silence;
- of two writes with one app id that began on the same version one fails, also where the table is made by both;
- rows that replace others must be among those that the predicate names;
- an overwrite fails where somebody else has changed the data since it began; an append does not.

What a commit says of itself (``operationMetrics`` and the like) is what Delta 4.4 on Spark 4.1 writes;
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
    """As Delta's writers fail that meet another's commit."""


@dataclass(frozen=True)
class Rows:
    """A DataFrame, as far as the loop and a target know it."""

    table: pa.Table
    hear: Hear = lambda when, write: None

    @property
    def schema(self) -> StructType:
        """Its columns; everything is known already."""
        return StructType([StructField(one.name, _SPARK_TYPE[one.type]) for one in self.table.schema])

    @property
    def sparkSession(self) -> Session:  # noqa: N802 - Spark's name
        """A session."""
        return Session(self.hear)

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self.table.column_names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Their names and types."""
        return [(one.name, str(one.type)) for one in self.table.schema]

    @property
    def write(self) -> Writer:
        """A writer of these rows."""
        return Writer(self)

    def unionByName(self, other: Rows) -> Rows:  # noqa: N802 - Spark's name
        """These rows and those."""
        return replace(self, table=pa.concat_tables([self.table, other.table.select(self.columns)]))

    def limit(self, count: int) -> Rows:
        """The first rows."""
        return replace(self, table=self.table.slice(0, count))


@dataclass(eq=False)  # which makes it hashable, as a session is
class Session:
    """A session, as far as the loop and a target know it.

    Attributes:
        hear: is called right before and right after the commit of a write: what it raises is the writer's death.
    """

    hear: Hear = lambda when, write: None

    @property
    def conf(self) -> _Conf:
        """Takes every setting."""
        return _Conf()

    @property
    def read(self) -> Session:
        """Reads tables only; files are read by who knows them."""
        return self

    def format(self, name: str) -> Session:
        """Delta."""
        assert name == "delta", name
        return self

    def load(self, url: str) -> Rows:
        """A table's columns.

        Raises:
            AnalysisException: where there is none.
        """
        folder = _folder(url)
        if not _versions(folder):
            from pyspark.errors import AnalysisException

            raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {url}. SQLSTATE: 42K03")
        fields = DeltaTable(str(folder)).schema().fields
        types = {"long": pa.int64(), "string": pa.string()}
        schema = pa.schema([(one.name, types[str(one.type.type)]) for one in fields])
        return Rows(schema.empty_table(), self.hear)


class _Conf:
    getAll: ClassVar[dict[str, str]] = {}  # noqa: N815 - Spark's name

    def get(self, key: str, default: object = None) -> object:
        """Nothing is set."""
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
        """Delta, or Parquet files in a new folder."""
        assert name in ("delta", "parquet"), name
        self._format = name
        return self

    def mode(self, mode: str) -> Writer:
        """``append``, ``overwrite``, or ``error`` for a table that must not be there."""
        self._mode = mode
        return self

    def option(self, key: str, value: object) -> Writer:
        """An option of the writer."""
        return self.options(**{key: value})

    def options(self, **options: object) -> Writer:
        """Several of them."""
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
    """A write that was begun: it may land later, when nobody waits for it any more.

    Attributes:
        read: the version of the table that it was begun on; None where there was no table.
        where: which rows an overwrite deletes, None is all of them.
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
        """The same write, into a copy of the table."""
        return replace(self, folder=folder)

    @property
    def paths(self) -> list[str]:
        """The files that its rows came from, one a row."""
        return [str(path) for path in self.rows["_source_file"].to_pylist()]

    @property
    def owned(self) -> dict[str, Any]:
        """What the commit says of itself to us."""
        found: dict[str, Any] = json.loads(self.metadata)["strandline"]
        return found

    @property
    def deleted(self) -> set[str] | None:
        """The files whose rows an overwrite deletes; None is all rows of the table."""
        if self.mode != "overwrite":
            return set()
        if self.where is None:
            return None
        assert self.where.startswith(("`_source_file` IN (", "`_source_file` = ")), self.where
        return {re.sub(r"\\(.)", r"\1", text) for text in _LITERAL.findall(self.where)}

    def land(self) -> None:
        """Commit.

        Raises:
            CommitFailed: where another commit is in the way, or the table is not the one any more that it was begun on.
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
        winners = [one for one in versions if self.read is None or one > self.read]
        if winners and self.read is None:
            raise CommitFailed("ProtocolChangedException: the table was made by somebody else")
        for version in winners:
            actions = _actions(self.folder, version)
            if any(action.get("txn", {}).get("appId") == self.app_id for action in actions):
                raise CommitFailed("ConcurrentTransactionException: this query was run twice")
            if self.mode == "overwrite" and any("add" in action or "remove" in action for action in actions):
                raise CommitFailed("ConcurrentAppendException: files were added or removed meanwhile")

    def _first(self, last: int | None) -> list[dict[str, Any]]:
        """What the first commit of a table says of it."""
        if last is not None:
            return []
        fields = [
            {"name": one.name, "type": _DELTA_TYPE[one.type], "nullable": True, "metadata": {}}
            for one in self.rows.schema
        ]
        made = {
            "id": str(uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": _now(),
        }
        return [{"metaData": made}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]

    def _data(self, last: int | None) -> list[dict[str, Any]]:
        """The rows, what makes room for them, and the numbers that the commit counts; commitInfo comes first."""
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
        """Whole files go; of a file that holds other rows, too, these are copied."""
        removes: list[dict[str, Any]] = []
        copies: list[dict[str, Any]] = []
        gone = copied = size = 0
        names = active(self.folder) if last is not None else []
        for name in names:
            rows, kept = pq.read_table(self.folder / name), None
            if self.deleted is not None:
                hit = pc.fill_null(
                    pc.is_in(rows["_source_file"], pa.array(sorted(self.deleted), pa.string())), False
                )
                if not pc.any(hit).as_py():
                    continue
                kept = rows.filter(pc.invert(hit))
            bytes_ = (self.folder / name).stat().st_size
            size += bytes_
            gone += rows.num_rows - (kept.num_rows if kept is not None else 0)
            copied += kept.num_rows if kept is not None else 0
            removes.append(
                {"remove": {"path": name, "deletionTimestamp": _now(), "dataChange": True, "extendedFileMetadata": True,
                            "partitionValues": {}, "size": bytes_}}
            )  # fmt: skip
            if kept is not None:
                copies += self._added(kept)
        metrics = {"numRemovedFiles": str(len(removes)), "numRemovedBytes": str(size)}
        if self.where is not None:
            metrics |= {
                "numCopiedRows": str(copied),
                "numAddedChangeFiles": "0",
                "numDeletedRows": str(gone),
            }
        return removes, copies, metrics


@dataclass(frozen=True)
class OwnWrite:
    """A write of the product's own that has come to its commit: it may land later, when nobody waits for it any more."""

    own: DeltaOwnCommit
    change: PlannedChange

    @property
    def number(self) -> int:
        """Of the slice."""
        return self.own.tag.number

    @property
    def mode(self) -> str:
        """As Spark names it."""
        return "overwrite" if isinstance(self.change.load, Replace) else "append"

    @property
    def paths(self) -> list[str]:
        """The files that its rows came from, one a row."""
        folder = self.own.log.place.local
        assert folder is not None
        files = [pq.read_table(folder / file.path, partitioning=None) for file in self.change.files]
        paths = [path for rows in files for path in rows["_source_file"].to_pylist()]
        # Rows that were only copied do not come from a file.
        return paths if self.deleted == set() else [path for path in paths if path in (self.deleted or ())]

    @property
    def owned(self) -> dict[str, Any]:
        """What the commit says of itself to us."""
        found: dict[str, Any] = json.loads(self.own.text)["strandline"]
        return found

    @property
    def deleted(self) -> set[str] | None:
        """The files whose rows it deletes."""
        load = self.change.load
        if not isinstance(load, Replace) or self.change.base is None:
            return set()
        assert isinstance(load.where, Among)
        assert load.where.column == "_source_file"
        return set(load.where.values)

    def land(self) -> None:
        """Go on with it.

        Raises:
            CommitFailed: it is refused, skipped, or left to Delta's own writer, which nobody calls any more.
        """
        before = _versions(_local(self.own))
        try:
            self.own.commit_change(self.change)
        except StrandlineError as error:
            raise CommitFailed(error.message) from error
        if _versions(_local(self.own)) == before:
            raise CommitFailed("it was skipped")

    def moved(self, folder: Path) -> OwnWrite:
        """The same write, into a copy of the table."""
        return replace(self, own=DeltaOwnCommit(DeltaLog(Place(str(folder))), self.own.tag, self.own.text))


@dataclass(frozen=True)
class HeardCommit(DeltaOwnCommit):
    """The product's own commit, which is announced.

    Attributes:
        hear: as a session's.
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
    """As :class:`resources.tables.rows.replacement.Replacement`, of rows in Arrow."""

    rows: Rows
    kept: int
    outside: int

    @classmethod
    def of(cls, rows: Rows, load: Replace, part: Sequence[Path]) -> ArrowReplacement:
        """Return the rows with those that stay of files that go in part."""
        there = [row for file in part for row in pq.read_table(file, partitioning=None).to_pylist()]
        kept = [row for row in there if not matches(load.where, row)]
        outside = sum(not matches(load.where, row) for row in rows.table.to_pylist())
        stay = Rows(pa.Table.from_pylist(kept, schema=rows.table.schema))
        return cls(rows.unionByName(stay), len(kept), outside)

    def count_copied(self, folder: Place, files: Sequence[DataFile]) -> int:
        """Return how many rows stay, if no row of the slice is outside of what the load replaces."""
        if self.outside:
            raise RowsRefused(
                f"{self.outside} rows lie outside the rows that the slice replaces", code=OUTSIDE
            )
        return self.kept


class ArrowTable(DeltaLakeTable):
    """A Delta table whose rows are Arrow's.

    Attributes:
        hear: as a session's.
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
    """The data files of a table's newest version; none where there is no table."""
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
