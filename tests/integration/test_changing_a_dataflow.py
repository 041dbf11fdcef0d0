"""Changes of a definition that runs: each row of the table in docs/how-to/changing-a-dataflow.md, on three kinds of source.

Rows 1 and 2 are loaded, the definition changes, and row 3 arrives. The next run loads it or stops with the
code of the table; after each remedy of the table the rows are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import PostgresRows, at, on_lake, on_postgres
from tests.support.feed import CHECKOUT, NAME, Feed
from tests.support.window_feed import LakeTable, instant

pytestmark = pytest.mark.postgres

_TEXT = "id long, at timestamp, value long"
_NOW = instant("2026-06-01")


class Source:
    """A source with the columns id, at and value.

    Attributes:
        feed: the dataflow that reads it.
        moved: the part of its definition that names the same rows in another place.
        inside: the part that names a folder of files inside the old one; {} for a table.
    """

    feed: Feed
    moved: Mapping[str, Any]
    inside: Mapping[str, Any] = MappingProxyType({})

    def put(self, number: int) -> None:
        """Let a row arrive in both places."""
        raise NotImplementedError


class _Files(Source):
    def __init__(self, folder: Path, engine: SparkEngine, target: Mapping[str, Any]) -> None:
        self.feed = Feed(folder, engine, {"source": {"schema": _TEXT}, "target": {**target}})
        self.moved = {"path": "./moved"}
        self.inside = {"path": "./landing/part"}

    def put(self, number: int) -> None:
        row = {"id": number, "at": at(number).isoformat(), "value": 7}
        name = self.feed.put(f"part/{number}.ndjson", row)
        moved = self.feed.folder / "moved/part"
        moved.mkdir(parents=True, exist_ok=True)
        (moved / f"{number}.ndjson").write_bytes((self.feed.landing / name).read_bytes())


class _PostgreSQL(Source):
    def __init__(
        self, folder: Path, engine: SparkEngine, target: Mapping[str, Any], server: Postgres
    ) -> None:
        self._tables = PostgresRows(server), PostgresRows(server)
        self.feed = on_postgres(folder, engine, self._tables[0], target={"load": "append", **target}).feed
        self.moved = {"table": self._tables[1].name}

    def put(self, number: int) -> None:
        for table in self._tables:
            table.put((number, at(number), 7))


class _LakeTable(Source):
    def __init__(self, folder: Path, engine: SparkEngine, target: Mapping[str, Any]) -> None:
        columns, table = on_lake(folder, engine, target={"load": "append", **target})
        self.feed = columns.feed
        self._tables = table, LakeTable(table.path.parent / "moved", table.schema)
        self.moved = {"table": "raw/moved"}

    def put(self, number: int) -> None:
        for table in self._tables:
            table.add({"id": number, "at": at(number), "value": 7})


Rows = list[tuple[Any, ...]]
LOADED: Rows = [(1, 7), (2, 7)]
ALL: Rows = [(1, 7), (2, 7), (3, 7)]
RESET = "state reset --replace"
VERSIONS = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}


@dataclass(frozen=True)
class Change:
    """A change of the definition.

    Attributes:
        makes: the changed keys, of a source.
        code: code of the next run's error; None: it loads.
        rows: ids and values of the table after that run, if it loads.
        refused: a command that the table names as refused; "" if there is none.
        remedies: rows after a command of the table and the next run, by command.
        target: target of the first definition.
        only: the sources that have such a key.
    """

    makes: Callable[[Source], Mapping[str, Any]]
    code: str | None = None
    rows: Rows = field(default_factory=lambda: ALL)
    refused: str = ""
    remedies: Mapping[str, Rows] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ("files", "postgresql", "table")


def _other_watermark(source: Source) -> Mapping[str, Any]:
    return {"watermark": {"type": "column", "columns": ["id"]}}


CHANGES = {
    "the source's folder, table or query": Change(
        lambda source: {"source": source.moved},
        "definition_changed",
        remedies={"state accept": ALL, RESET: ALL},
    ),
    "the source's folder, to one inside or around the old one": Change(
        lambda source: {"source": source.inside},
        "definition_changed",
        refused="state accept",
        remedies={RESET: ALL},
        only=("files",),
    ),
    "`watermark.type` or `watermark.columns`": Change(
        _other_watermark, "definition_changed", remedies={RESET: ALL}
    ),
    "`watermark.scope`": Change(
        lambda _: {"watermark": {"scope": "partition"}},
        "definition_changed",
        remedies={RESET: ALL},
        only=("files",),
    ),
    "`watermark.tracking`": Change(
        lambda _: {"watermark": {"tracking": "set"}},
        "definition_changed",
        remedies={"state accept": ALL},
        only=("files",),
    ),
    "`target.table`": Change(
        lambda _: {"target": {"table": "bronze/other"}},
        "definition_changed",
        remedies={"state accept": [(3, 7)], "state reset": ALL},
    ),
    "`target.format`": Change(
        lambda _: {"target": {"format": "parquet"}},
        "definition_changed",
    ),
    "`target.load`, to or from `scd2`": Change(
        lambda _: {"target": {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}},
        "definition_changed",
        remedies={RESET: ALL},
    ),
    "`target.load`, any other": Change(lambda _: {"target": {"load": "merge_upsert", "merge_keys": ["id"]}}),
    "`target.merge_keys`": Change(
        lambda _: {"target": {"merge_keys": ["value"]}},
        "keys_not_unique",
        remedies={"state accept": [(3, 7), (3, 7)], RESET: [(3, 7)]},
        target={"load": "merge_upsert", "merge_keys": ["id"]},
    ),
    "`target.delete_when`": Change(
        lambda _: {"target": {"delete_when": "id >= 2"}},
        rows=LOADED,
        remedies={RESET: [(1, 7)]},
        target={"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "value = 9"},
    ),
    "`target.names`, `target.open_end` of `scd2`": Change(
        lambda _: {"target": {"names": {"valid_from": "since"}, "open_end": "9999-12-31"}},
        "definition_changed",
        remedies={RESET: ALL},
        target=VERSIONS,
    ),
    "`target.track`, `target.ignore`": Change(
        lambda _: {"target": {"track": ["value"]}}, remedies={RESET: ALL}, target=VERSIONS
    ),
    "`target.insert_only`": Change(
        lambda _: {"target": {"insert_only": True}}, target={"load": "merge_upsert", "merge_keys": ["id"]}
    ),
    "`target.immutable`": Change(
        lambda _: {"target": {"immutable": ["value"]}},
        remedies={RESET: ALL},
        target={"load": "merge_upsert", "merge_keys": ["id"]},
    ),
    "`target.missing_columns`": Change(
        lambda _: {"target": {"missing_columns": "keep"}},
        target={"load": "merge_upsert", "merge_keys": ["id"]},
    ),
    "`target.partition_by`": Change(lambda _: {"target": {"partition_by": ["value"]}}, remedies={RESET: ALL}),
    "`sql`, other values": Change(
        lambda _: {"sql": "SELECT id, at, value + 1 AS value FROM input"},
        rows=[(1, 7), (2, 7), (3, 8)],
        remedies={RESET: [(1, 8), (2, 8), (3, 8)]},
    ),
    "`sql`, a new column": Change(
        lambda _: {"sql": "SELECT *, 1 AS more FROM input"},
        "incompatible_schema",
        remedies={"schema_mode: merge": ALL},
    ),
    "`target.schema_mode`": Change(lambda _: {"target": {"schema_mode": "merge"}}),
    "`target.origin_columns`": Change(lambda _: {"target": {"origin_columns": False}}),
    "`rules`": Change(lambda _: {"rules": [{"name": "small", "expect": "value < 7"}]}, rows=LOADED),
    "`target.retention`, `maintenance`, `alerts`, `tags`": Change(
        lambda _: {
            "target": {"retention": {"column": "at", "keep": "P90D"}},
            "maintenance": {"optimize": "P1D"},
            "tags": {"team": "sales"},
        },
        rows=LOADED,
    ),
}


def documented() -> dict[str, list[str]]:
    """The code of the next run, what is refused, and the commands or keys of the last column, by change."""
    text = (CHECKOUT / "docs/how-to/changing-a-dataflow.md").read_text()
    table = re.search(r"^\| you change \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    cells = ([cell.strip() for cell in line.split("|")[1:5]] for line in table[1].splitlines())
    return {
        change: [
            *re.findall(r"^stops with `([a-z_]+)`", run),
            *re.findall(r"`([a-z ]+)` is refused", meaning),
            *re.findall(r"`((?:state |schema_mode)[a-z: -]+)`", remedy),
        ]
        for change, run, meaning, remedy in cells
    }


def test_the_table_says_what_becomes_of_every_change() -> None:
    expected = {
        name: [*filter(None, [change.code, change.refused]), *change.remedies]
        for name, change in CHANGES.items()
    }
    assert documented() == expected


@pytest.fixture(params=["files", "postgresql", "table"])
def make_source(
    request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine, postgres: Postgres
) -> Callable[[Mapping[str, Any]], Source]:
    """Make a source of one kind with a dataflow above it."""

    def make(target: Mapping[str, Any]) -> Source:
        folder = tmp_path / "project"
        if request.param == "postgresql":
            return _PostgreSQL(folder, engine, target, postgres)
        return (_Files if request.param == "files" else _LakeTable)(folder, engine, target)

    make.kind = request.param  # type: ignore[attr-defined]
    return make


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_loads_or_stops_as_the_table_says(make_source: Any, name: str) -> None:
    change = CHANGES[name]
    if make_source.kind not in change.only:
        pytest.skip("the source has no such key")
    source = make_source(change.target)
    feed = source.feed
    for number in (1, 2):
        source.put(number)
    assert feed.run(now=_NOW).error is None
    feed.define(**change.makes(source))
    source.put(3)
    error = feed.run(now=_NOW).error
    assert (error.code if error else None) == change.code, error
    if error is None:
        assert feed.rows("id", "value") == change.rows
    if change.refused:
        refused = feed.cli(*change.refused.split(), NAME, "--reason", "moved", "--yes")
        assert refused.error["code"] == "definition_changed", change.refused
    for place, (remedy, rows) in enumerate(change.remedies.items()):
        mended = feed.copy(feed.folder.parent / f"mended{place}")
        command, _, option = remedy.removeprefix("state ").partition(" ")
        if remedy.startswith("state"):
            mended.decide(command, *([option] if option else []))
        else:
            mended.define(target={"schema_mode": "merge"})
        error = mended.run(now=_NOW).error
        assert error is None, (remedy, error)
        assert mended.rows("id", "value") == rows, remedy
