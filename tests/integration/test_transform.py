"""A step of the user's that runs Python on Spark's workers, which find no module of the project by themselves."""

from __future__ import annotations

from tests.integration.conftest import MakeFeed

STEP = """
from helpers_of_transform import doubled


def step(df, batch):
    def rows(batches):
        for part in batches:
            yield doubled(part)

    return df.mapInPandas(rows, df.schema)
"""


def test_functions_of_the_project_s_modules_run_on_the_workers(make_feed: MakeFeed) -> None:
    feed = make_feed(transform="step_of_transform:step")
    (feed.folder / "step_of_transform.py").write_text(STEP)
    (feed.folder / "helpers_of_transform.py").write_text(
        "def doubled(rows):\n    return rows.assign(id=rows['id'] * 2)\n"
    )
    feed.put("1.ndjson", 1, 2)
    feed.load()
    assert feed.ids == [2, 4]
