"""Tables that chains by commits read, each with what may happen to it: by other writers, or by a dataflow of its own.

Each act takes what it needs from the world's dice, and returns nothing: what a table holds after it is read
from the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from deltalake import DeltaTable

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.commits import COLUMNS, TABLE, WRITERS, SparkUpstream, Upstream, delta_rows
from tests.support.feed import Feed, in_order
from tests.support.iceberg import newest_table
from tests.support.steps import Killed, killed_at

STEPS = (Step.PLANNED, Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
"""Steps at which a run may die."""

Rows = list[tuple[Any, ...]]
Act = Callable[[], None]


class Versions:
    """The rows of each version of a table, noted as long as it can be read."""

    def __init__(self, folder: Path, columns: tuple[str, ...]) -> None:
        """Begin without a version."""
        self.folder = folder
        self.columns = columns
        self._rows: dict[int, Rows] = {}

    def note(self) -> None:
        """Read the versions that are new, in their order."""
        if (self.folder / "metadata").is_dir():
            table = newest_table(self.folder)
            for snapshot in sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0):
                if snapshot.snapshot_id not in self._rows:
                    read = table.scan(
                        snapshot_id=snapshot.snapshot_id, selected_fields=self.columns
                    ).to_arrow()
                    rows = (tuple(row[name] for name in self.columns) for row in read.to_pylist())
                    self._rows[snapshot.snapshot_id] = in_order(rows)
        elif (self.folder / "_delta_log").is_dir():
            newest = DeltaTable(str(self.folder)).version()
            for version in range(max(self._rows, default=-1) + 1, newest + 1):
                self._rows[version] = delta_rows(DeltaTable(str(self.folder), version=version), self.columns)

    def at(self, position: Mapping[str, Any]) -> Rows:
        """Return the rows at a position, as a watermark has it."""
        snapshot = position.get("snapshot", position.get("version"))
        return [] if snapshot == -1 else self._rows[snapshot]

    def newest(self) -> Rows:
        """Return the rows as they are now."""
        if (self.folder / "metadata").is_dir():
            current = newest_table(self.folder).current_snapshot()
            return [] if current is None else self._rows[current.snapshot_id]
        return self._rows[max(self._rows)]

    def between(self, first: Mapping[str, Any], last: Mapping[str, Any]) -> list[Rows]:
        """Return the rows of each version from one position to another one, in the order of commits."""
        keys = [position.get("snapshot", position.get("version")) for position in (first, last)]
        noted = list(self._rows)
        return [self._rows[key] for key in noted[noted.index(keys[0]) : noted.index(keys[1]) + 1]]


class TableAbove(ABC):
    """The first table of a chain.

    Attributes:
        columns: what a reader of it compares.
        keys: what identifies a row.
        is_cleaned: whether others have removed files that a reader may need.
    """

    columns: tuple[str, ...] = COLUMNS
    keys: tuple[str, ...] = ("id",)
    is_cleaned = False

    def __init__(self, project: Path, engine: SparkEngine, kind: str, random: Random) -> None:
        """Note the parts."""
        self.project, self.engine, self.kind, self.random = project, engine, kind, random
        self.folder = project / "lake" / TABLE
        self.next_id = 0

    @abstractmethod
    def begin(self) -> None:
        """Put the first rows."""

    @abstractmethod
    def acts(self) -> Mapping[str, Act]:
        """Return what may happen; more likely acts are more."""

    def new_ids(self) -> list[int]:
        """Return ids that no row has had, not in the order of their time."""
        count = self.random.randint(1, 3)
        self.next_id += count
        return [self.next_id - place for place in range(count)]


class TableOfOthers(TableAbove):
    """A table that deltalake and Spark, or Spark and pyiceberg, write in turn."""

    def __init__(self, project: Path, engine: SparkEngine, kind: str, random: Random) -> None:
        """Choose the properties of the table, and who may write it."""
        super().__init__(project, engine, kind, random)
        lake = project / "lake"
        self._writers: list[Upstream] = [writer(lake, engine) for writer in WRITERS[kind]]
        self._may_restore = True
        if kind == "delta" and (chosen := random.choice(["", "", _FEED, _VECTORS, f"{_FEED}, {_VECTORS}"])):
            by_spark = SparkUpstream(lake, engine, properties=chosen)
            self._writers = [by_spark] if _VECTORS in chosen else [by_spark, Upstream(lake, engine)]

    def never_restores(self) -> None:
        """Leave rollbacks out: those of Iceberg have no time."""
        self._may_restore = False

    @property
    def _writer(self) -> Upstream:
        return self.random.choice(self._writers)

    def begin(self) -> None:
        """Put the first rows, with the writer that knows the properties."""
        self._writers[0].append(*self._new())

    def acts(self) -> Mapping[str, Act]:
        """Return what writers do to tables."""
        acts: dict[str, Act] = {
            "append": self._append,
            "late": self._append_low,
            "update": self._update,
            "delete": self._delete,
            "merge": self._merge,
            "compact": lambda: self._writer.compact(),
            "overwrite": self._overwrite,
        }
        if self._may_restore:
            acts["restore"] = lambda: self._writer.restore(self.random.randint(1, 2))
        acts["clean"] = self._clean
        return acts

    def _new(self) -> list[tuple[int, str]]:
        return [(id_, f"v{self.next_id}") for id_ in self.new_ids()]

    def _ids(self) -> list[int]:
        return [id_ for id_, _ in self._writers[0].rows()]

    def _append(self) -> None:
        self._writer.append(*self._new())

    def _append_low(self) -> None:
        self.next_id += 1
        self._writer.append((-self.next_id, "late"))

    def _update(self) -> None:
        for id_ in self._ids()[:1] and [self.random.choice(self._ids())]:
            self._writer.update(id_, f"u{self.random.randrange(1000)}")

    def _delete(self) -> None:
        for id_ in self._ids()[:1] and [self.random.choice(self._ids())]:
            self._writer.delete(id_)

    def _merge(self) -> None:
        known = [(self.random.choice(ids), f"m{self.random.randrange(1000)}")] if (ids := self._ids()) else []
        self._writer.merge(*known, *self._new())

    def _overwrite(self) -> None:
        kept = [row for row in self._writers[0].rows() if self.random.random() < 0.7]
        self._writer.overwrite(*kept, *self._new())

    def _clean(self) -> None:
        self.is_cleaned = True
        if self.kind == "delta" and self.random.random() < 0.7:
            self._writer.vacuum()
        else:
            self._writers[0 if self.kind == "iceberg" else -1].clean()


_FEED = "'delta.enableChangeDataFeed' = 'true'"
_VECTORS = "'delta.enableDeletionVectors' = 'true'"


class TableOfDataflow(TableAbove):
    """A table that a dataflow of files loads.

    Attributes:
        target: keys of the dataflow's target.
    """

    target: ClassVar[Mapping[str, Any]] = {"load": "append"}
    schema = "id long, v string"

    def __init__(self, project: Path, engine: SparkEngine, kind: str, random: Random) -> None:
        """Write the definition."""
        super().__init__(project, engine, kind, random)
        definition: dict[str, Any] = {
            "layer": "bronze",
            "source": {"schema": self.schema},
            "watermark": self.watermark,
            "target": {"table": TABLE, "format": kind, **self.target},
            "maintenance": {"optimize": "PT1H", "vacuum": "PT1H"},
        }
        self.feed = Feed(project, engine, definition, name="events")
        self.files: dict[str, list[dict[str, Any]]] = {}
        self._day = 50

    @property
    def watermark(self) -> dict[str, Any]:
        """Keys of the watermark."""
        return {"checkpoint": {"interval_files": 1}}

    def begin(self) -> None:
        """Load a first file, into a table that has a change data feed or none."""
        self._load_new()
        if self.kind == "delta" and self.random.random() < 0.5:
            self._set_properties(_FEED)

    def forget_soon(self) -> None:
        """Let a vacuum delete all files that the newest version does not need."""
        if self.kind == "delta":
            self._set_properties("'delta.deletedFileRetentionDuration' = 'interval 0 seconds'")

    def _set_properties(self, properties: str) -> None:
        table = f"delta.`{self.folder}`"
        self.engine.session().sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})").collect()

    def acts(self) -> Mapping[str, Act]:
        """Return what a dataflow does to its table."""
        return {
            "load": self._load_new,
            "load two": self._load_two,
            "die above": self._die,
            "late file": self._late,
            "delete for good": self._delete_for_good,
            "replay": self._replay,
            "promote": self._promote,
            "maintain": self._maintain,
        }

    def rows_of_file(self) -> list[dict[str, Any]]:
        """Return the rows of a new file."""
        return [{"id": id_, "v": f"v{self.next_id}"} for id_ in self.new_ids()]

    def corrected(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row as its source has corrected it."""
        return row | {"v": f"c{self.random.randrange(1000)}"}

    def _put(self, day: int) -> None:
        path = f"d={day:03}/{len(self.files)}.ndjson"
        self.files[path] = self.rows_of_file()
        self.feed.put(path, *self.files[path])

    def _load_new(self) -> None:
        self._day += 1
        self._put(self._day)
        self.feed.load()

    def _load_two(self) -> None:
        self._day += 2
        self._put(self._day - 1)
        self._put(self._day)
        self.feed.load()

    def _die(self) -> None:
        self._day += 1
        self._put(self._day)
        with suppress(Killed):
            self.feed.run(killed_at(self.random.choice(STEPS), 1))

    def _late(self) -> None:
        self.feed.load()
        self._put(self.random.randrange(50))
        self._command("late")

    def _delete_for_good(self) -> None:
        self.feed.load()
        self._command(
            "delete", "--where", f"id = {self.random.randint(1, self.next_id)}", "--reason", "x", "--yes"
        )

    def _correct(self) -> tuple[str, ...]:
        """Correct a file that is loaded; return the range that reads it again."""
        self.feed.load()
        path = self.random.choice(list(self.files))
        rows = self.files[path] = [
            self.corrected(row) for row in self.files[path] if self.random.random() < 0.8
        ]
        self.feed.put(path, *rows)
        return ("--start", path, "--end", f"{path}~", "--column", "_source_file")

    def _replay(self) -> None:
        self._command("replay", *self._correct(), "--replace")

    def _promote(self) -> None:
        self._command("replay", *self._correct(), "--into", "aside/again")
        answer = self.feed.cli("promote", self.feed.name, "aside/again", "--reason", "x", "--yes")
        if answer.code:  # later files have all keys of the one that was chosen
            assert answer.error["code"] == "nothing_to_promote", answer.out
            self._command("drop", "aside/again", "--reason", "x", "--yes")

    def _maintain(self) -> None:
        self.feed.load()
        self._command("maintain")

    def _command(self, verb: str, *arguments: str) -> None:
        self.feed.command(verb, self.feed.name, *arguments)


class KeyedTable(TableOfDataflow):
    """Rows by their keys, which some rows delete."""

    target: ClassVar[Mapping[str, Any]] = {
        "load": "merge_upsert",
        "merge_keys": ["id"],
        "delete_when": "gone",
    }
    schema = "id long, v string, gone boolean"

    def rows_of_file(self) -> list[dict[str, Any]]:
        """Return rows of new and of known ids; some delete theirs."""
        ids = {*self.new_ids(), self.random.randint(1, self.next_id)}
        return [
            {"id": id_, "v": f"v{self.random.randrange(1000)}", "gone": self.random.random() < 0.3}
            for id_ in ids
        ]


class HistoryTable(TableOfDataflow):
    """Versions of keys, of which a reader gets each."""

    target: ClassVar[Mapping[str, Any]] = {"load": "scd2", "merge_keys": ["id"], "effective_column": "since"}
    schema = "id long, v string, since long"
    columns = ("id", "v", "since", "_valid_to", "_is_current")
    keys = ("id", "since")

    def acts(self) -> Mapping[str, Act]:
        """Return what versions allow: a replay may not replace them."""
        left_out = ("replay", "promote", "delete for good")
        return {name: act for name, act in super().acts().items() if name not in left_out}

    def rows_of_file(self) -> list[dict[str, Any]]:
        """Return versions of new and of known ids, some between older ones."""
        ids = {*self.new_ids(), self.random.randint(1, self.next_id)}
        return [
            {"id": id_, "v": f"v{self.random.randrange(1000)}", "since": self.random.randrange(100)}
            for id_ in ids
        ]


class WholeTable(TableOfDataflow):
    """All rows of its files, replaced in each run."""

    target: ClassVar[Mapping[str, Any]] = {"load": "overwrite"}

    @property
    def watermark(self) -> dict[str, Any]:
        """Keys of the watermark."""
        return {"type": "window", "definition": []}

    def acts(self) -> Mapping[str, Act]:
        """Return what whole files allow: they have no positions."""
        acts = super().acts()
        kept = ("load", "load two", "die above", "maintain")
        return {name: acts[name] for name in kept} | {"correct": self._reload}

    def _reload(self) -> None:
        self._correct()
        self.feed.load()


ABOVE: Mapping[str, type[TableAbove]] = {
    "others": TableOfOthers,
    "append": TableOfDataflow,
    "keyed": KeyedTable,
    "history": HistoryTable,
    "whole": WholeTable,
}
"""Tables above, by who writes them."""
