"""The pages for a Dagster project of a user's own, from top to bottom, with the wheel alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.support.installed import DG_PROJECT, Installed
from tests.support.pages import CHECKOUT, Reader, steps

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PAGES = ("tutorials/dagster.md", "how-to/test-with-materialize.md")
"""One project works through them in this order."""


def test_every_block_of_the_pages_works_in_a_project_of_dg(tmp_path: Path, spark_engine: SparkEngine) -> None:
    installed = Installed(tmp_path)
    for name, text in DG_PROJECT.items():
        if not name.endswith("report.py"):
            installed.write(name, text)
    (installed.folder / "src/shop/defs").mkdir()
    environment = installed.environment | {"PYTHONPATH": str(installed.folder / "src")}
    reader = Reader(installed.folder, spark_engine.remote or "", environment=environment)
    with reader.at_work():
        for page in PAGES:
            for step in steps((CHECKOUT / "docs" / page).read_text()):
                reader.do(step)
