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
REST = "or reread: rest, if no group lies in two parts"
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
    *(
        (
            flow(TABLE | {"unit_columns": {}}, definition=(TIME,), **watermark) + "sql: SELECT max(at) AS at FROM input GROUP BY unit\n",
            [(line, "sql", f"GROUP BY over {part}, which is read in parts: each part would have rows of its own", expected)],
        )
        for line, watermark, part, expected in (
            (18, {"window": "daily"}, "a growing window", f"watermark.reread: whole, or watermark.partial: false; {REST}"),
            (18, {"window": "none"}, "a growing window", f"watermark.reread: whole; {REST}"),
            (20, {"window": "daily", "partial": False, "grace": "PT6H"}, "a window within its grace", f"watermark.reread: whole; {REST}"),
        )
    ),
]  # fmt: skip

GROUPED = "sql: SELECT max(at) AS at FROM input GROUP BY unit\n"


@pytest.mark.parametrize(
    "watermark",
    [
        {"reread": "whole", "grace": 1},
        {"reread": "rest"},
        {"partial": False, "grace": 1},
        {"window": "weekly", "partial": False, "grace": "P8D", "timezone": "America/New_York"},
    ],
)
def test_a_group_by_is_accepted_where_no_part_of_a_window_is_read_alone(
    make: Make, watermark: dict[str, Any]
) -> None:
    source = TABLE | {"unit_columns": {}}
    text = flow(source, definition=(TIME,), **({"window": "daily"} | watermark)) + GROUPED
    assert make(text).errors == []


def test_text_and_comments_with_group_by_are_no_group_by(make: Make) -> None:
    source = TABLE | {"unit_columns": {}}
    sql = "sql: |\n  SELECT at, 'group by' AS how /* GROUP BY at */ FROM input -- group by at\n"
    assert make(flow(source, definition=(TIME,), window="daily") + sql).errors == []


def test_windows_that_are_read_as_a_whole_again_may_be_appended(make: Make) -> None:
    source, how = TABLE | {"unit_columns": {}}, {"window": "daily", "reread": "whole"}
    made = make(
        files={
            "dataflows/sums.yaml": flow(source, {"load": "append"}, (TIME,), **how, grace=1) + GROUPED,
            "dataflows/folders.yaml": flow(FOLDERS, {"load": "append"}, (TIME,), **how),
        }
    )
    assert made.errors == []


def test_reread_beside_windows_that_wait_is_refused(make: Make) -> None:
    waits = TIME | {"range": {"from": "2020-01-01", "to": "upstream"}}
    (error,) = make(flow(definition=(waits, UNITS), window="daily", reread="whole")).errors
    assert "no such key beside to: watermark or to: upstream" in error.message


def test_changed_windows_over_a_lake_table_are_accepted(make: Make) -> None:
    assert make(flow(window="daily", refresh="changed")).errors == []


def test_changed_windows_need_commits(make: Make) -> None:
    (error,) = make(flow({**JDBC, "query": QUERY}, window="daily", refresh="changed"), platform=ERP).errors
    assert (error.key, error.expected) == (
        "watermark.refresh",
        "no such key, with a grace for rows that come late; or a source of type table",
    )


def test_changed_windows_need_a_time(make: Make) -> None:
    (error,) = make(flow(definition=(UNITS,), refresh="changed")).errors
    assert "expected a datetime entry in definition beside refresh: changed" in error.message


def test_changed_windows_are_refused_over_a_retention_by_another_column(make: Make) -> None:
    files = {"type": "files", "path": "./in", "format": "ndjson"}
    target = {"table": "raw/events", "load": "append", "retention": {"column": "seen", "keep": "P9D"}}
    maker = yaml.safe_dump({"source": files, "watermark": {"type": "path"}, "target": target})
    reader = flow(window="daily", refresh="changed")
    (error,) = make(files={"dataflows/a.yaml": maker, "dataflows/b.yaml": reader}).errors
    assert (error.key, error.expected) == ("watermark.refresh", "a retention by at in a, or no such key")


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
