"""Restores in each order: a run ends right, or stops with choices that lead to each row once (docs/how-to/moving-and-restoring.md).

Three batches arrive, each with a run. Copies of state and lake are saved after each. Two of them are put
back, a fourth batch arrives, and the next run meets them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from tests.support.feed import CHECKOUT, NAME, Feed
from tests.support.moves import restore
from tests.support.streams import FILES, definition

NOW = datetime(2026, 1, 10, tzinfo=UTC)
BATCHES = (1, 2, 3, 4)
ORDERS = {
    "the state, older than the lake": (1, 3),
    "the lake, older than the state": (3, 1),
    "both, of one moment": (2, 2),
    "both, the state older": (1, 2),
    "both, the lake older": (2, 1),
}
"""The batch after which state and lake were saved."""


@dataclass(frozen=True)
class Kind:
    """A kind of watermark, by a definition and the arrival of a batch."""

    definition: dict[str, Any]
    arrive: Callable[[Feed, int], object]
    table: str = f"bronze/{NAME}"


def _file(feed: Feed, batch: int) -> None:
    feed.put(f"{batch}.ndjson", {"id": batch})


def _day(feed: Feed, batch: int) -> None:
    feed.put(f"2026-01-0{batch}/x.ndjson", {"id": batch})


def _readings(feed: Feed, batch: int) -> None:
    times = (f"2026-01-01 0{batch}:{minute:02d}:00" for minute in (0, 30))
    feed.put(
        f"{batch}.ndjson",
        *({"id": 10 * batch + n, "device": "a", "ts": time} for n, time in enumerate(times)),
    )


_WINDOW = {
    "type": "window",
    "window": "daily",
    "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}],
}
KINDS = {
    "path": Kind({}, _file),
    "column": Kind({"watermark": {"type": "column", "columns": ["id"]}}, _file),
    "window": Kind(
        {
            "source": {"path": "./landing/{start:%Y-%m-%d}", "missing": "empty"},
            "watermark": _WINDOW,
            "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        },
        _day,
    ),
    "stream": Kind(definition(source=FILES), _readings, "silver/readings"),
}
FORMATS = ("delta", "iceberg", "parquet")
QUICK = {
    ("path", "delta", "the state, older than the lake"),
    ("column", "iceberg", "the lake, older than the state"),
}
"""The cells in `make test`."""


def documented() -> dict[str, list[str]]:
    """The code, and the choices, of each order in the page's table; no code where a run ends right."""
    return {
        name: [*re.findall(r"`([a-z_]+)`", run), *re.findall(r"`state ([a-z -]+)`", choices)]
        for name, run, choices, _ in table_rows()
    }


def table_rows() -> list[list[str]]:
    """The cells of each row of the page's table."""
    text = (CHECKOUT / "docs/how-to/moving-and-restoring.md").read_text()
    table = re.search(r"^\| you put back \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.split("|")[1:5]] for line in table[1].splitlines()]


def cells() -> list[Any]:
    """All cells; those that are not quick are full."""
    return [
        pytest.param(
            kind,
            table_format,
            order,
            marks=[pytest.mark.each_case]
            if (kind, table_format, order) in QUICK
            else [pytest.mark.each_case, pytest.mark.full],
            id=f"{kind}-{table_format}-{order.replace(',', '').replace(' ', '-')}",
        )
        for kind in KINDS
        for table_format in FORMATS
        for order in ORDERS
        if (kind, table_format) != ("stream", "parquet")  # refused: side tables have no entries
    ]


def load(feed: Feed, batch: int) -> Any:
    """Run at the end of a batch's day."""
    return feed.run(now=datetime(2026, 1, batch + 1, tzinfo=UTC))


def loaded(feed: Feed) -> list[tuple[Any, ...]]:
    """The ids of all rows."""
    return feed.rows("id")


@pytest.mark.parametrize(("kind", "table_format", "order"), cells())
def test_a_restore_ends_right_or_stops_with_choices_that_do(
    tmp_path: Path, engine: SparkEngine, kind: str, table_format: str, order: str
) -> None:
    scene = KINDS[kind]
    target = {**scene.definition.get("target", {}), "table": scene.table, "format": table_format}
    feed = Feed(tmp_path / "project", engine, {**scene.definition, "target": target})
    for batch in BATCHES[:3]:
        scene.arrive(feed, batch)
        assert load(feed, batch).error is None
        for part in ("state", "lake"):
            shutil.copytree(feed.folder / part, tmp_path / f"{part}{batch}")
    scene.arrive(feed, 4)
    assert load(feed, 4).error is None
    expected = loaded(feed)
    assert expected
    for part, batch in zip(("state", "lake"), ORDERS[order], strict=True):
        restore(tmp_path / f"{part}{batch}", feed.folder / part)
    error = load(feed, 4).error
    choices = list(error.choices) if error is not None else []
    told = (
        [
            error.code,
            *(
                " ".join(choice.split()[2:]).replace(f"{NAME} ", "").replace(" --reason TEXT", "")
                for choice in choices
            ),
        ]
        if error
        else []
    )
    assert told == documented()[order], error and error.message
    saved = tmp_path / "saved"
    shutil.copytree(feed.folder, saved)
    for choice in choices or [None]:
        if choice is not None:
            restore(saved, feed.folder)
            feed.command(*choice.replace("TEXT", "restored").split()[1:], "--yes")
            assert load(feed, 4).error is None, choice
        feed.cli("late", NAME)
        assert loaded(feed) == expected, choice
        assert load(feed, 4).status == "nothing"


@pytest.mark.parametrize(
    "order",
    [name if name == next(iter(ORDERS)) else pytest.param(name, marks=pytest.mark.full) for name in ORDERS],
)
def test_adopt_asks_about_rows_that_others_deleted_as_the_table_says(
    tmp_path: Path, engine: SparkEngine, order: str
) -> None:
    documented_answers = {name: re.findall(r"`--deleted (\w+)`", asks) for name, _, _, asks in table_rows()}
    feed = Feed(tmp_path / "project", engine, {})
    for batch in BATCHES[:3]:
        _file(feed, batch)
        assert load(feed, batch).error is None
        if batch == 2:
            DeltaTable(str(feed.table)).delete("id = 2")
        for part in ("state", "lake"):
            shutil.copytree(feed.folder / part, tmp_path / f"{part}{batch}")
    for part, batch in zip(("state", "lake"), ORDERS[order], strict=True):
        restore(tmp_path / f"{part}{batch}", feed.folder / part)
    adopt = ("state", "adopt", NAME, "--reason", "restored", "--yes")
    saved = tmp_path / "saved"
    shutil.copytree(feed.folder, saved)
    answer = feed.cli(*adopt)
    choices = answer.error["choices"] if answer.code else ()
    assert [choice.split()[5] for choice in choices] == documented_answers[order]
    for deleted in documented_answers[order]:
        restore(saved, feed.folder)
        feed.command(*adopt, "--deleted", deleted)
        assert load(feed, 3).error is None
        feed.cli("late", NAME)
        assert (2 in feed.ids) == (deleted == "load")
