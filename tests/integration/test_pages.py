"""Tutorials and how-to pages from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.spark.connect_server import free_port
from resources.spark.engine import SparkEngine
from tests.support.pages import CHECKOUT, Reader, steps

_IN_EACH_RUN = "tutorials/files.md"
_HOW_TO = (
    "how-to/your-own-csv.md",
    "how-to/parquet-from-pandas.md",
    "how-to/changed-columns.md",
    "how-to/changing-a-dataflow.md",
    "how-to/undo-a-bad-load.md",
    "how-to/moving-and-restoring.md",
    "how-to/change-events.md",
    "how-to/deletes.md",
    "how-to/rules-for-rows.md",
    "how-to/deleting-and-keeping.md",
    "how-to/read-tables-elsewhere.md",
    "how-to/why-did-nothing-run.md",
)
_FROM_THE_WHEEL = "dagster.md"
"""The tutorial that tests/packaging runs, in a project of a user."""
_PORTS = ("54329", "8099")


def _pages() -> list[object]:
    tutorials = sorted(
        path.relative_to(CHECKOUT / "docs").as_posix()
        for path in (CHECKOUT / "docs/tutorials").glob("*.md")
        if path.name != _FROM_THE_WHEEL
    )
    return [
        pytest.param(page, marks=() if page == _IN_EACH_RUN else pytest.mark.full)
        for page in (*tutorials, *_HOW_TO)
    ]


@pytest.mark.parametrize("page", _pages())
def test_every_block_of_a_page_works_in_order(page: str, tmp_path: Path, engine: SparkEngine) -> None:
    text = (CHECKOUT / "docs" / page).read_text()
    ports = {port: free_port() for port in _PORTS if port in text}
    with Reader(tmp_path, engine.remote or "", ports).at_work() as reader:
        for step in steps(text):
            reader.do(step)
    assert steps(text)


@pytest.mark.full
def test_the_first_table_of_the_readme_works(tmp_path: Path, engine: SparkEngine) -> None:
    text = (CHECKOUT / "README.md").read_text()
    (first_table,) = [step for step in steps(text) if step.language == "sh"]
    with Reader(tmp_path, engine.remote or "").at_work() as reader:
        _, _, after_setup = first_table.text.partition("\n")
        reader.do(type(first_table)("sh", "", after_setup))
    assert "9.5" in reader.outputs[-1]
