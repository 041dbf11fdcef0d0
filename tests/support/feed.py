"""A dataflow on real parts: a project folder with landing zone, lake and log, below one folder.

Belongs here: putting files, running the loop or the command line, and reading back the table. Tables are
read with
deltalake, which takes milliseconds.
"""

from __future__ import annotations

import bz2
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.cli.main import strandline
from platform_assets.project import load_project
from platform_assets.project.project import SPARK_REMOTE
from resources.connections.places import Place
from resources.outcome import Observer, Outcome, Step
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.tables.delta.commit import DeltaCommit
from resources.tables.delta.log import DeltaLog
from resources.watermarks.entry import Entry, Intent
from tests.support.environment import clean_environment
from tests.support.iceberg import iceberg_rows
from tests.support.jvmless import ArrowPlatform, JvmlessEngine

NAME = "flow"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
"""The clock of all runs that are not about time."""

CHECKOUT = Path(__file__).resolve().parents[2]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    Attributes:
        code: its exit code.
        out: its stdout.
        err: its stderr.
    """

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return its one JSON document."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error of a command that failed for one dataflow, wherever the contract puts it."""
        document = self.json
        error: dict[str, Any] = (document[0] if isinstance(document, list) else document)["error"]
        return error


@dataclass
class Feed:
    """One dataflow, whose definition is a mapping like its YAML file.

    Attributes:
        folder: the project folder; ``landing``, ``lake`` and ``state`` lie in it, unless the settings say
        otherwise.
        engine: Spark; a remote one wherever the loop runs in this process.
        definition: the dataflow.
        settings: platform.yaml.
        environment: variables that the project and its commands see.
        name: the name of the dataflow. The second one of a project has a landing zone of its own.
    """

    folder: Path
    engine: SparkEngine
    definition: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    name: str = NAME

    def __post_init__(self) -> None:
        """Write the project."""
        (self.folder / "dataflows").mkdir(parents=True, exist_ok=True)
        self.landing.mkdir(exist_ok=True)
        settings = {"state": "./state", "lake": "./lake"} | self.settings
        (self.folder / "platform.yaml").write_text(yaml.safe_dump(settings))
        files = {"type": "files", "path": f"./{self.landing.name}", "format": "ndjson", "schema": "id long"}
        base = {
            "source": files if self.definition.get("source", {}).get("type", "files") == "files" else {},
            "watermark": {"type": "path"},
            "target": {"load": "append"} | ({"origin_columns": False} if self.in_arrow else {}),
        }
        self.definition = _merged(base, self.definition)
        self._write()

    def copy(self, folder: Path) -> Feed:
        """Return the same dataflow with all its data, in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True)
        feed = Feed(folder, self.engine, self.definition, self.settings, self.environment, self.name)
        feed.definition = self.definition  # a key that was taken out of the usual ones stays out
        feed._write()
        return feed

    @property
    def landing(self) -> Path:
        """Return the landing zone."""
        return self.folder / ("landing" if self.name == NAME else f"landing_{self.name}")

    @property
    def table(self) -> Path:
        """Return the table's folder, which may not exist."""
        return (
            self.folder / "lake" / str(self.definition.get("target", {}).get("table", f"bronze/{self.name}"))
        )

    @property
    def state(self) -> Path:
        """Return the folder of this dataflow's watermark log, if the settings leave it in the project."""
        return self.folder / "state" / self.name

    def define(self, **changes: Any) -> Feed:
        """Change the definition, key by key; a None removes a key."""
        self.definition = _merged(self.definition, changes)
        self._write()
        return self

    def put(self, path: str, *rows: Row | int) -> str:
        """Put a file of JSON lines, compressed according to its ending; a number is a row with that ``id``."""
        texts = [json.dumps({"id": row} if isinstance(row, int) else row, ensure_ascii=False) for row in rows]
        return self.put_text(path, "".join(f"{text}\n" for text in texts))

    def put_text(self, path: str, text: str) -> str:
        """Put a file with this text, compressed according to its ending."""
        return self.put_bytes(path, _packed(path, text.encode()))

    def put_bytes(self, path: str, data: bytes) -> str:
        """Put a file as it is, by a rename: nobody sees a part of it."""
        file = self.landing / path
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{uuid4().hex}.draft"
        draft.write_bytes(data)
        draft.replace(file)
        return path

    def put_parquet(self, path: str, *rows: Row | int) -> str:
        """Put a Parquet file; a number is a row with only this ``id``."""
        buffer = BytesIO()
        table = pa.Table.from_pylist([{"id": row} if isinstance(row, int) else dict(row) for row in rows])
        pq.write_table(table, buffer)
        return self.put_bytes(path, buffer.getvalue())

    def put_damaged(self, path: str, **columns: Any) -> str:
        """Put a Parquet file with a good footer and damaged rows: only the write fails."""
        self.put_parquet(path, *[{"id": number, **columns} for number in range(1000)])
        data = bytearray((self.landing / path).read_bytes())
        data[4:200] = bytes(196)
        return self.put_bytes(path, bytes(data))

    @property
    def dataflow(self) -> Dataflow:
        """Return the dataflow, through the project's own loader."""
        return load_project(self.folder, environment=self.environment).named([self.name])[0]

    @property
    def in_arrow(self) -> bool:
        """Return whether rows are in Arrow and need no JVM.

        ``_source_file`` is then the only column beside ``id``.
        """
        return isinstance(self.engine, JvmlessEngine)

    @property
    def platform(self) -> Platform:
        """Return new resources, as for a new process."""
        project = load_project(self.folder, environment=self.environment)
        return (ArrowPlatform if self.in_arrow else Platform)(
            project.state,
            project.lake,
            self.engine,
            project.source_place,
            folder=project.folder,
            lineage=project.lineage,
        )

    def run(self, observer: Observer | None = None, now: datetime = NOW, **options: Any) -> Outcome:
        """Run the loop in this process."""
        heard: dict[str, Any] = {"observer": observer} if observer else {}
        return self.platform.loop(self.dataflow, now, **heard, **options).run()

    def load(self) -> Outcome:
        """Run the loop, which must not fail."""
        outcome = self.run()
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def fail(self, observer: Observer | None = None, now: datetime = NOW, **options: Any) -> StrandlineError:
        """Run the loop, which must fail, and return its error."""
        error = self.run(observer, now, **options).error
        assert error is not None
        return error

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows of the table, sorted, NULLs first; none without a table."""
        return rows_in(self.table, columns)

    def rows_by_spark(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return the same for a table that only Spark reads, wherever it lies."""
        table = self.platform.table(self.dataflow)
        session = self.platform.engine(self.dataflow).session()
        frame = table.contents.read(session, table.contents.newest_version())
        rows = [row.asDict(recursive=True) for row in frame.select(*columns).collect()]
        return sorted_rows(rows, columns)

    @property
    def ids(self) -> list[int]:
        """Return the column ``id`` of all rows, sorted; a row that occurs twice shows twice."""
        return [row[0] for row in self.rows("id")]

    @property
    def types(self) -> dict[str, str]:
        """Return the newest columns in Delta's type names, without those that loading adds."""
        fields = DeltaTable(str(self.table)).schema().fields
        return {
            field.name: str(getattr(field.type, "type", field.type))
            for field in fields
            if field.name[0] != "_"
        }

    @property
    def newest(self) -> Entry | None:
        """Return the newest entry."""
        return self.platform.log.newest(self.name)

    @property
    def watermark(self) -> Any:
        """Return the newest watermark; None without an entry."""
        entry = self.newest
        return entry.state() if entry else None

    @property
    def path(self) -> str | None:
        """Return the path of the newest watermark, scope global."""
        return (self.watermark or {}).get("path")

    @property
    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        return list(self.platform.log.history(self.name))[::-1]

    @property
    def quarantined(self) -> dict[str, str]:
        """Return the reasons of files in quarantine, by path."""
        return {file["path"]: file["reason"] for file in self.cli("list").json[0]["quarantined"]["files"]}

    @property
    def commits(self) -> list[DeltaCommit]:
        """Return all commits of the table, oldest first."""
        return DeltaLog(Place(str(self.table))).commits(None)

    @property
    def open_intent(self) -> Intent | None:
        """Return the intent of the number after the newest entry, if one was put."""
        return self.platform.log.open_intent(self.name, self.newest)

    def cli(self, *arguments: str) -> Answer:
        """Call ``strandline --json`` in this process; Spark is the engine's server."""
        return self._call("--json", *arguments)

    def text(self, *arguments: str) -> str:
        """Call ``strandline`` as people do, and return all of its output."""
        answer = self._call(*arguments)
        return answer.out + answer.err

    def _call(self, *arguments: str) -> Answer:
        runner = CliRunner(env=self._variables())
        with patch("platform_assets.platform.Platform", ArrowPlatform) if self.in_arrow else nullcontext():
            result = runner.invoke(strandline, ["--project", str(self.folder), *arguments])
        return Answer(result.exit_code, result.stdout, result.stderr)

    def command(self, *arguments: str) -> Answer:
        """Call ``strandline --json`` in this process, and require success."""
        answer = self.cli(*arguments)
        assert answer.code == 0, answer.err + answer.out
        return answer

    def decide(self, verb: str, *arguments: str, now: str | None = None) -> Answer:
        """Call ``strandline state`` with a reason and without a prompt, and require success."""
        clock = ("--now", now) if now else ()
        return self.command("state", verb, self.name, *arguments, "--reason", "because", "--yes", *clock)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``strandline --json`` as a process of its own."""
        return subprocess.Popen(
            call_of(self.folder, "--json", *arguments),
            cwd=CHECKOUT,
            env={**clean_environment(), **self._variables()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _variables(self) -> dict[str, str]:
        return self.environment | ({SPARK_REMOTE: self.engine.remote} if self.engine.remote else {})

    def _write(self) -> None:
        (self.folder / "dataflows" / f"{self.name}.yaml").write_text(yaml.safe_dump(self.definition))


def rows_in(table: Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return these columns of all rows of a table in a folder, sorted, NULLs first; none without a table."""
    if (table / "metadata").is_dir():
        return sorted_rows(iceberg_rows(table, columns), columns)
    is_delta = (table / "_delta_log").is_dir()  # which has a long watermark in such a folder, too
    if (table / "_strandline").is_dir() and not is_delta:  # as a plain reader sees a Parquet table
        files = [pq.read_table(file, columns=list(columns)) for file in table.rglob("*.parquet")]
        return sorted_rows([row for file in files for row in file.to_pylist()], columns)
    if not list((table / "_delta_log").glob("*.json")):
        return []
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=list(columns)).to_pylist()
    return sorted_rows(rows, columns)


def sorted_rows(rows: Iterable[Row], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return rows as tuples of these columns, NULLs first."""
    return in_order(tuple(row[column] for column in columns) for row in rows)


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows sorted by their values, NULLs first."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def dies_after(step: Step) -> Observer:
    """Return an observer with which a run dies at its first such step."""

    def dies(reached: Step, line: str) -> None:
        if reached is step:
            raise KeyboardInterrupt

    return dies


def removes_table(feed: Feed) -> Observer:
    """Return an observer that removes the table between a run's first slice and its second write."""
    heard: list[Step] = []

    def removes(step: Step, line: str) -> None:
        heard.append(step)
        if step is Step.INTENT_PUT and Step.APPENDED in heard:
            shutil.rmtree(feed.table)

    return removes


def call_of(project: Path, *words: str) -> list[str]:
    """Return the command that calls ``strandline`` as a process."""
    return [sys.executable, "-m", "platform_assets.cli", "--project", str(project), *words]


def answer_of(process: subprocess.Popen[str], patience: float = 120) -> Answer:
    """Wait for a started command."""
    out, err = process.communicate(timeout=patience)
    return Answer(process.returncode, out, err)


def _packed(path: str, data: bytes) -> bytes:
    match Path(path).suffix:
        case ".gz":
            return gzip.compress(data, mtime=0)
        case ".bz2":
            return bz2.compress(data)
    return data


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = deepcopy(dict(base))
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = value
    return merged
