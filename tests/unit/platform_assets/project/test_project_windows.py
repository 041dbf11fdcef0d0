"""Windows in project files: combinations that are refused, each at its own key and line, all of them at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from platform_assets.installation import ROOT
from platform_assets.project import load_project
from tests.support.projects import project_of

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

ERP = "connections: {erp: {type: jdbc, url: 'jdbc:postgresql://h:5433/erp', user: me, password: {env: PW}}}\n"
TIME = {"name": "system", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
UNITS = {"name": "u", "type": "unit", "units": "a,b"}
TABLE = {"type": "table", "table": "raw/events", "window_column": "at", "unit_columns": {"u": "unit"}}
JDBC = {"type": "jdbc", "connection": "erp"}
QUERY = "select * from t where at >= {start} and at < {end} and u = {unit.u}"
REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}
INSTEAD = "load: merge_overwrite with replace_by_watermark: true, or merge_upsert"

MOVING = TIME | {"range": {"from": "P30D", "to": "-"}}
FOLDERS = {"type": "files", "path": "./in/{start:%Y-%m-%d}", "format": "ndjson"}
STANDS = (
    "a constant time; or whole days (P30D) from a midnight on, or whole hours from a full hour"
    f" on; or {INSTEAD} beside columns that tell a row's window and unit (other times would cut new windows every day, and add their rows a second time)"
)


def flow(
    source: dict[str, Any] = TABLE,
    target: dict[str, Any] = REPLACED,
    definition: tuple[dict[str, Any], ...] = (TIME, UNITS),
    **watermark: Any,
) -> str:
    """A dataflow's text; each key on a line of its own."""
    given = {"type": "window", "definition": list(definition), **watermark}
    return yaml.safe_dump({"source": source, "watermark": given, "target": target}, sort_keys=False)


REFUSED: list[tuple[str, list[tuple[int, str, str, str]]]] = [
    (
        flow(FOLDERS, definition=(TIME,), window="daily", partial=False) + "on_bad_file: quarantine\n",
        [
            (
                18,
                "on_bad_file",
                "quarantine",
                "stop (a window is read as a whole: a run skips only the window of the bad file, and later runs read it again)",
            )
        ],
    ),
    (
        flow(
            TABLE | {"unit_columns": {"u": "unit", "v": "value"}},
            definition=(TIME, UNITS | {"units": [{"u": "a", "v": 1}, "b"]}),
        ),
        [
            (
                10,
                "watermark.definition",
                "a unit of u beside one of u, v",
                "units that all have values of the same names (a row could belong to two of them)",
            )
        ],
    ),
    (flow(TABLE | {"window_column": None}), [(1, "source.window_column", "nothing", "the column with a row's time (windows are read)")]),
    (
        flow({**JDBC, "table": "t", "unit_columns": {"u": "unit"}}),
        [
            (
                1,
                "source.window_column",
                "nothing",
                "the column with a row's time, or a query with {start} and {end} (windows are read)",
            )
        ],
    ),
    (
        flow({**JDBC, "query": "select * from t where at >= {start} and u = {unit.u}"}),
        [
            (
                1,
                "source.window_column",
                "nothing",
                "the column with a row's time, or a query with {start} and {end} (windows are read)",
            )
        ],
    ),
    (flow(definition=(UNITS,)), [(4, "source.window_column", "at", "a datetime entry in watermark.definition with it (without one there are no windows)")]),
    (
        flow({**JDBC, "query": QUERY}, definition=(UNITS,)),
        [
            (
                4,
                "source.query",
                "{end}",
                "a datetime entry in watermark.definition with it (without one there are no windows)",
            )
        ],
    ),
    (
        flow(TABLE | {"unit_columns": {"v": "unit"}}),
        [
            (5, "source.unit_columns.u", "nothing", "the column with a row's u"),
            (6, "source.unit_columns.v", "the column unit", "a name of the definition's units: u"),
        ],
    ),
    (
        flow({**JDBC, "query": QUERY.replace("unit.u", "unit.v")}),
        [
            (1, "source.unit_columns.u", "nothing", "the column with a row's u, or {unit.u} in the query"),
            (4, "source.query", "{unit.v}", "a name of the definition's units: u"),
        ],
    ),
    (flow(definition=(TIME,)), [(6, "source.unit_columns.u", "the column unit", "a name of the definition's units: it has none")]),
    (
        flow(abstinent="P2D"),
        [
            (
                18,
                "watermark.abstinent",
                "a period without abstinent_skips",
                "abstinent_skips: true beside it (rows are read by range, so no run reads the rows within the period), or no abstinent",
            )
        ],
    ),
    (
        flow(target={"load": "merge_overwrite", "merge_keys": ["id"]}),
        [
            (
                18,
                "target.replace_by_watermark",
                "nothing",
                "true (with load: merge_overwrite, the rows read replace the window), or load: merge_upsert",
            )
        ],
    ),
    (flow(target={"load": "append", "replace_by_watermark": True}), [(19, "target.load", "append", "merge_overwrite beside replace_by_watermark")]),
    (
        flow(target={"merge_keys": ["id"]}, grace="P1D"),
        [
            (
                18,
                "watermark.grace",
                "a grace beside load: append",
                f"{INSTEAD} (append would add the rows a second time), or no grace",
            ),
            (
                20,
                "target.merge_keys",
                "id",
                "no such key beside load: append (it compares nothing), or load: merge_upsert",
            ),
        ],
    ),
    (flow(definition=(MOVING, UNITS), window="weekly", target={"load": "append"}), [(9, "watermark.definition", "'P30D', which is relative to now", STANDS)]),
    (flow(FOLDERS, definition=(MOVING,), window="monthly"), [(7, "watermark.definition", "'P30D', which is relative to now", STANDS)]),
    (
        flow(TABLE | {"window_column": None}, {"load": "append"}, (UNITS,)),
        [
            (
                13,
                "target.load",
                "append",
                f"{INSTEAD} (without a datetime entry each run reads every unit again)",
            )
        ],
    ),
]  # fmt: skip


def test_a_valid_combination_is_accepted(make: Make) -> None:
    made = make(
        files={
            "dataflows/a.yaml": flow(),
            "dataflows/d.yaml": flow(definition=(MOVING, UNITS), window="weekly"),
            "dataflows/b.yaml": flow({**JDBC, "query": QUERY}, {"load": "append"}),
            "dataflows/c.yaml": flow(
                {**JDBC, "query": QUERY}, abstinent="P2D", abstinent_skips=True, grace=1
            ),
        },
        platform=ERP,
    )
    assert made.errors == []
    assert list(made.dataflows) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "errors"), REFUSED, ids=lambda value: "" if isinstance(value, str) else value[0][1]
)
def test_an_invalid_combination_is_refused_at_its_key(
    make: Make, text: str, errors: list[tuple[int, str, str, str]]
) -> None:
    text = "\n".join(line for line in text.splitlines() if not line.endswith(": null")) + "\n"
    refused = make(text, platform=ERP).errors
    assert [(error.line, error.key, error.actual, error.expected) for error in refused] == errors
    assert {error.file for error in refused} == {"dataflows/flow.yaml"}


def test_the_page_about_chains_shows_days_over_hourly_files_that_a_project_accepts(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/chains.md").read_text()
    section = page.split("### Days over hourly files")[1].split("###")[0]
    blocks = re.findall(r"```yaml\n# dataflows/(\w+)\.yaml\n(.*?)```", section, re.DOTALL)
    project = load_project(project_of(tmp_path, **dict(blocks)), environment={})
    assert (project.errors, sorted(project.dataflows)) == ([], ["clicks", "counted"])
    counted = project.dataflows["counted"]
    assert (counted.tagged, counted.source.row_columns.window) == (False, "_window_start")
