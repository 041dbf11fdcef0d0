"""A platform without a JVM: the product's real parts, with rows in Arrow instead of Spark.

Only this is replaced: how files of ``{"id": 1}`` lines are read, their schema, the session
(:mod:`tests.support.arrow`),
the lease (a thread that safety does not depend on), and ``fsync`` (nobody pulls the plug). Whatever
outlives a
process, an object beside the log or a commit of the table, is announced right before and right after: a
test that raises there
kills the process at that point.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, cast

import pyarrow as pa
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.bad_files import FILE_VANISHED
from partitions.path.source import SourceFile
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.loop import intents
from resources.platform.platform import Platform
from resources.sources.files.source import FileSource
from resources.sources.registry import Source
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.log import WatermarkLog
from tests.support.arrow import SCHEMA, ArrowTable, OwnWrite, Rows, Session, Write

NAME = "flow"

Point = tuple[str, str]
"""When (``before`` or ``after``) and what: the folder of an object beside the log, or ``commit``."""


class Killed(BaseException):
    """Ends a process as SIGKILL does: nothing in the product catches it."""


@dataclass
class Process:
    """A process as the source of lasting changes. Once killed, it changes nothing.

    Attributes:
        heard: called at every point with the write that it belongs to, if any; an exception kills the
        process.
    """

    heard: Callable[[Point, Write | OwnWrite | None], None] = lambda point, write: None
    _dead: bool = field(default=False, init=False)

    def reach(self, when: str, point: str, write: Write | OwnWrite | None = None) -> None:
        """Announce a point."""
        if self._dead:
            raise Killed
        try:
            self.heard((when, point), write)
        except Killed:
            self._dead = True
            raise


class MortalBlobs(LocalBlobs):
    """A folder whose changes are points of a process."""

    def __init__(self, root: Path, process: Process) -> None:
        super().__init__(root)
        self._process = process

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return bool(self._reached(key, lambda: super(MortalBlobs, self).put_if_absent(key, data)))

    def put(self, key: str, data: bytes) -> None:
        self._reached(key, lambda: super(MortalBlobs, self).put(key, data))

    def delete(self, key: str) -> None:
        self._reached(key, lambda: super(MortalBlobs, self).delete(key))

    def _reached(self, key: str, change: Callable[[], Any]) -> Any:
        folder = key.split("/")[1]
        self._process.reach("before", folder)
        result = change()
        self._process.reach("after", folder)
        return result


class _ArrowFiles(FileSource):
    """Files of ``{"id": 1}`` lines, plain or compressed with gzip, that are read line by line."""

    def pin(
        self, spark: SparkSession, files: Sequence[SourceFile], skipped_files: Sequence[SourceFile] = ()
    ) -> str | None:
        fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
        return json.dumps({"columns": {"type": "struct", "fields": fields}, "folders": []})

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Accept it: there is only one schema."""

    def bad_files(self, spark: SparkSession, files: Sequence[SourceFile], pinned: str) -> Sequence[BadFile]:
        return ()

    def read(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: str,
        *,
        origin: bool | None = None,
    ) -> DataFrame:
        rows = [
            {**json.loads(line), "_source_file": file.path}
            for file in files
            for line in _text(self._folder / file.path).splitlines()
        ]
        return cast("DataFrame", Rows(pa.Table.from_pylist(rows, schema=SCHEMA), cast("Session", spark).hear))

    def find_bad_file(
        self, spark: SparkSession, files: Mapping[str, SourceFile], pinned: str, error: Exception
    ) -> BadFile | None:
        missing = [path for path in files if not (self._folder / path).exists()]
        return BadFile(f"{missing[0]} is gone", path=missing[0], code=FILE_VANISHED) if missing else None

    def find_similar(self, *arguments: object) -> Sequence[BadFile]:
        return ()

    @property
    def _folder(self) -> Path:
        assert self.root.local is not None
        return self.root.local


def _text(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()


class JvmlessEngine(SparkEngine):
    """An engine whose sessions need no JVM."""

    def __init__(self, process: Process | None = None) -> None:
        super().__init__()
        self._process = process or Process()

    def session(self) -> SparkSession:
        return cast("SparkSession", Session(lambda when, write: self._process.reach(when, "commit", write)))


@dataclass(frozen=True)
class MortalPlatform(Platform):
    """The resources of a process of its own, over folders that it may share with others.

    Attributes:
        process: hears of every lasting change.
    """

    process: Process = field(default_factory=Process)

    @classmethod
    def of(cls, state: Path, lake: Path, landing: Path, process: Process, spark: SparkEngine) -> Self:
        """Return the platform of a new process."""
        source = Place(str(landing))
        return cls(
            state=Place(str(state)),
            lake=Place(str(lake)),
            spark=spark,
            source_of=lambda flow: source,
            process=process,
        )

    @cached_property
    def log(self) -> WatermarkLog:
        assert isinstance(self.state, Place)
        assert self.state.local is not None
        return WatermarkLog(MortalBlobs(self.state.local, self.process))


class ArrowPlatform(Platform):
    """The resources of a project whose files are read, and whose table is written, without a JVM."""

    def open_source(self, dataflow: Dataflow, staging: Staging) -> Source:
        root = self.source_of(dataflow)
        assert isinstance(root, Place)
        return _ArrowFiles(root, dataflow, staging)

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        return JvmlessEngine()

    def table(self, dataflow: Dataflow) -> ArrowTable:
        return ArrowTable(self.lake.child(dataflow.table), dataflow.target.partition_by)


class JvmlessPlatform(ArrowPlatform, MortalPlatform):
    """The resources of a process that needs no JVM."""

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        return JvmlessEngine(self.process)

    def table(self, dataflow: Dataflow) -> ArrowTable:
        arrow_table = super().table(dataflow)
        arrow_table.hear = lambda when, write: self.process.reach(when, "commit", write)
        return arrow_table


def platform(state: Path, lake: Path, landing: Path, process: Process) -> Platform:
    """Return the platform of a new process."""
    return JvmlessPlatform.of(state, lake, landing, process, JvmlessEngine(process))


@lru_cache
def dataflow(tracking: str, late_files: str, ending: str, *, origin: bool = False) -> Dataflow:
    """Return a dataflow through the project's own loader; two files make a slice.

    Another ending is another definition.

    Args:
        tracking: the watermark's tracking.
        late_files: the policy.
        ending: the ending of files that never arrive.
        origin: whether Spark reads. Without it rows still have ``_source_file``; the other origin columns
            would need Spark's functions.
    """
    definition = {
        "source": {"type": "files", "path": "./landing", "format": "ndjson", "schema": "id long", "extensions": [".ndjson", ending]},
        "watermark": {"type": "path", "tracking": tracking, "checkpoint": {"interval_files": 2}},
        "target": {"load": "append", "origin_columns": origin},
        **({} if tracking == "set" else {"late_files": late_files}),
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "dataflows").mkdir()
        (project / "landing").mkdir()
        (project / "platform.yaml").write_text("{}")
        (project / "dataflows" / f"{NAME}.yaml").write_text(yaml.safe_dump(definition))
        return load_project(project, environment={}).named([NAME])[0]


@dataclass(frozen=True)
class Parts:
    """The parts of a model world.

    Attributes:
        dataflow: by tracking, policy and ending, as :func:`dataflow`.
        platform: the platform of a new process, as :func:`platform`.
        columns: the table's columns, as another writer writes them.
    """

    dataflow: Callable[[str, str, str], Dataflow] = dataflow
    platform: Callable[[Path, Path, Path, Process], Platform] = platform
    columns: pa.Schema = SCHEMA


@contextmanager
def jvmless() -> Iterator[None]:
    """Skip leases and ``fsync``, which only cost time here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intents, "keep_lease", lambda log, intent: nullcontext())
        patch.setattr(os, "fsync", lambda handle: None)
        yield
