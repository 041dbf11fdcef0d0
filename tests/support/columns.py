"""Dataflows with a column watermark on real parts: a table of PostgreSQL or of the lake.

Belongs here: definitions, rows at the source, and what a run has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from partitions.sentinels import Watermark
from resources.outcome import Outcome
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.feed import Feed
from tests.support.window_feed import LakeTable, instant, reaching

BY_TIME = {"type": "column", "columns": ["at"]}
REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}
ROWS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("value", pa.int64())])


@dataclass
class PostgresRows:
    """A table of PostgreSQL with an id, an indexed instant and a value, in a schema of its own."""

    server: Postgres
    columns: str = "id bigint, at timestamptz, value bigint"
    indexed: str | None = "at"
    schema: str = field(default_factory=lambda: f"src_{uuid4().hex[:10]}")

    def __post_init__(self) -> None:
        """Create it."""
        self.ask("CREATE SCHEMA {s}")
        self.ask(f"CREATE TABLE {{s}}.rows ({self.columns})")
        if self.indexed is not None:
            self.ask(f"CREATE INDEX ON {{s}}.rows ({self.indexed})")

    @property
    def name(self) -> str:
        """Return the name of the table, as a definition has it."""
        return f"{self.schema}.rows"

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; ``{s}`` stands for the schema."""
        return self.server.ask(statement, *values, s=self.schema)

    def put(self, *rows: tuple[Any, ...]) -> None:
        """Insert rows."""
        for row in rows:
            self.ask(f"INSERT INTO {{s}}.rows VALUES ({', '.join(['%s'] * len(row))})", *row)


@dataclass
class Columns:
    """A dataflow with a column watermark.

    Attributes:
        feed: the dataflow.
    """

    feed: Feed

    def run(self, now: str = "2026-06-01", **options: Any) -> Outcome:
        """Run at an instant, and require success."""
        outcome = self.feed.run(now=instant(now), **options)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def fail(self, now: str = "2026-06-01") -> Any:
        """Run at an instant; return the error."""
        return self.feed.run(now=instant(now)).error

    @property
    def ids(self) -> list[int]:
        """Return the ids of all rows of the target, sorted."""
        return sorted(row[0] for row in self.feed.rows("id"))

    @property
    def watermark(self) -> Watermark:
        """Return the newest watermark."""
        entry = self.feed.newest
        return entry.state() if entry else {}


def at(day: int, microsecond: int = 0) -> datetime:
    """Return a moment of a day of January 2026."""
    return datetime(2026, 1, day, 12, microsecond=microsecond, tzinfo=UTC)


def on_postgres(
    folder: Path,
    engine: SparkEngine,
    table: PostgresRows,
    *,
    source: Mapping[str, Any] | None = None,
    **definition: Any,
) -> Columns:
    """Return a dataflow that appends rows by time, unless the definition says otherwise."""
    table_source = {"type": "jdbc", "connection": "erp", **(source or {"table": table.name})}
    feed = Feed(
        folder,
        engine,
        {"watermark": BY_TIME, **definition, "source": table_source},
        *reaching(table.server),
    )
    return Columns(feed)


def read_as_other_user(flow: Columns, table: PostgresRows) -> None:
    """Let a dataflow read as a user who may read its table, and nothing else of the server."""
    role = f"r_{table.schema}"
    table.server.ask(f"CREATE ROLE {role} LOGIN PASSWORD '{table.server.password}'")
    table.server.ask(f"GRANT USAGE ON SCHEMA {table.schema} TO {role}")
    table.server.ask(f"GRANT SELECT ON {table.name} TO {role}")
    settings = flow.feed.folder / "platform.yaml"
    settings.write_text(settings.read_text().replace("user: postgres", f"user: {role}"))


def on_lake(
    folder: Path, engine: SparkEngine, *, schema: pa.Schema = ROWS, **definition: Any
) -> tuple[Columns, LakeTable]:
    """Return such a dataflow over a table of the lake, unless the definition says otherwise."""
    table_source = {"type": "table", "table": "raw/rows"}
    feed = Feed(folder, engine, {"watermark": BY_TIME, **definition, "source": table_source})
    return Columns(feed), LakeTable(folder / "lake" / "raw" / "rows", schema)
