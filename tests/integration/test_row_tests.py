"""``strandline test``: rows of a test pass what rows of a slice pass, in each kind and source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from platform_assets.cli.main import strandline
from platform_assets.scaffold.new_project import SOURCES
from resources.spark.engine import SparkEngine

FILES = {"type": "files", "path": "./landing", "format": "ndjson"}
SCHEMA = "id long, at timestamp, fare decimal(10,2), tags array<string>, box struct<w:int>, day date, local timestamp_ntz, raw binary"
ROW: dict[str, Any] = {
    "id": 1,
    "at": "2026-01-01T10:00:00+02:00",
    "fare": 12.5,
    "tags": ["a", None],
    "box": {"w": 3},
    "day": "2026-01-01",
    "local": "2026-01-01T10:00:00",
    "raw": "AAE=",
}
NULLS = dict.fromkeys([*ROW][1:])

FLOWS: dict[str, dict[str, Any]] = {
    "plain": {"source": FILES | {"schema": SCHEMA}, "watermark": {"type": "path"}},
    "inferred": {"source": FILES, "watermark": {"type": "path"}},
    "ruled": {
        "source": FILES | {"schema": "id long, n long"},
        "watermark": {"type": "path"},
        "rules": [
            {"name": "positive", "expect": "n > 0", "max": 1},
            {"unique": ["id"]},
            {"references": {"n": "bronze/plain.id"}},
        ],
    },
    "merged": {
        "source": FILES | {"schema": "id long"},
        "watermark": {"type": "path"},
        "target": {"schema_mode": "merge"},
    },
    "csv": {
        "source": {
            "type": "files",
            "path": "./csv",
            "format": "csv",
            "schema": "id long, at date, region string",
            "options": {"sep": ";", "dateFormat": "dd.MM.yyyy"},
        },
        "watermark": {"type": "path"},
    },
    "joined": {
        "source": FILES | {"schema": "id long, delay int"},
        "watermark": {"type": "path"},
        "inputs": {"planes": "silver/planes"},
        "sql": "SELECT i.*, delay > 15 AS late, 100 / delay AS rate, p.seats, _source_file AS file FROM input i LEFT JOIN planes p USING (id)",
    },
    "keyed": {
        "source": {"type": "jdbc", "connection": "erp", "table": "public.orders"},
        "watermark": {"type": "column", "columns": ["updated_at"]},
        "target": {"load": "merge_upsert", "merge_keys": ["id"]},
        "transform": "steps:doubled",
    },
    "deleting": {
        "source": {"type": "jdbc", "connection": "erp", "table": "public.orders"},
        "watermark": {"type": "column", "columns": ["updated_at"]},
        "target": {"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "gone"},
    },
    "events": {
        "source": FILES | {"format": "debezium"},
        "watermark": {"type": "path"},
        "target": {"load": "merge_upsert", "merge_keys": ["id"]},
    },
    "kept": {
        "source": FILES,
        "watermark": {"type": "path"},
        "target": {"load": "merge_upsert", "merge_keys": ["id"], "missing_columns": "keep"},
    },
    "dropped": {
        "source": {"type": "table", "table": "bronze/plain"},
        "watermark": {"type": "column", "columns": ["at"]},
        "sql": "SELECT id FROM input",
    },
    "windows": {
        "source": {"type": "table", "table": "bronze/plain", "window_column": "at"},
        "watermark": {
            "type": "window",
            "window": "daily",
            "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}],
        },
        "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        "sql": "SELECT id, at, upper(tags[0]) AS tag FROM input",
    },
    "hours": {
        "source": FILES | {"schema": "id long", "path": "./hours/{start:%Y-%m-%dT%H}"},
        "watermark": {
            "type": "window",
            "window": "hourly",
            "definition": [{"name": "hour", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}],
        },
        "layer": "bronze",
        "target": {"load": "merge_overwrite", "replace_by_watermark": True},
    },
    "days": {
        "source": {"type": "table", "table": "bronze/hours", "window_column": "_window_start"},
        "watermark": {
            "type": "window",
            "window": "daily",
            "definition": [
                {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "upstream"}}
            ],
        },
        "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        "sql": "SELECT date_trunc('day', _window_start) AS _window_start, count(*) AS hours, max(_ingested_at) AS newest, max(_run_id) AS run FROM input GROUP BY 1",
    },
    "stream": {
        "source": FILES | {"schema": "id long, device string, ts timestamp"},
        "watermark": {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"},
    },
    "counted": {
        "source": FILES | {"schema": "id long, device string, ts timestamp"},
        "watermark": {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"},
        "operators": [
            {
                "type": "aggregate",
                "window": {"type": "session", "gap": "PT3M"},
                "group_by": ["device"],
                "aggregates": {"n": "count(*)"},
            }
        ],
    },
    "neighbours": {
        "source": FILES | {"schema": "id long, device string, ts timestamp"},
        "watermark": {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"},
        "operators": [
            {
                "type": "over",
                "partition_by": ["device"],
                "columns": {"next": {"fn": "lead", "column": "id"}},
            }
        ],
    },
    "engine": {
        "source": FILES | {"schema": "id long, ts timestamp"},
        "watermark": {
            "type": "stream",
            "engine": "structured_streaming",
            "event_time": "ts",
            "timeout": "PT5M",
        },
        "operators": [{"type": "drop_duplicates", "keys": ["id"]}],
    },
}

_AT = ("2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z", "2026-01-01T01:00:00Z")
READINGS = [
    {"id": number, "device": device, "ts": at}
    for number, device, at in zip((1, 2, 3), "aaa", _AT, strict=True)
]

TESTS: dict[str, dict[str, Any]] = {
    "plain/types": {
        "input": [ROW, {"id": 2}],
        "expect": [{"id": 2}, ROW | {"at": "2026-01-01T08:00:00Z", "fare": "12.50"}],
    },
    "plain/unknown_field": {"input": [{"id": 1, "ida": 2}], "error": "found ida beside them"},
    "plain/no_number": {"input": [{"id": 1}, {"id": "x"}], "error": "line 2: field id: expected bigint"},
    "plain/no_rows": {"input": [], "expect": []},
    "plain/named_file": {
        "input": {"rows": [{"id": 1}], "path": "day=2026-01-31/a.ndjson"},
        "expect": [{"id": 1, "day": "2026-01-31", "_source_file": "day=2026-01-31/a.ndjson"}],
    },
    "ruled/rejected": {
        "input": [{"id": 1, "n": 1}, {"id": 2, "n": -1}, {"id": 3}, {"id": 4, "n": 4}, {"id": 4, "n": 4}],
        "expect": [{"id": 1, "n": 1}, {"id": 3}],
    },
    "ruled/too_many": {
        "input": [{"id": 1, "n": -1}, {"id": 2, "n": -2}],
        "error": "rule positive: 2 of 2 rows (100%) fail 'n > 0', at most 1 may (max)",
    },
    "inferred/texts_stay_texts": {
        "input": [{"id": 1, "at": "2026-01-01", "x": 0.1}],
        "expect": [{"id": 1, "at": "2026-01-01", "x": 0.1}],
    },
    "inferred/schema_of_the_test": {
        "input": {"schema": "id long, at date", "rows": [{"id": 1, "at": "2026-01-01"}]},
        "expect": [{"id": 1, "at": "2026-01-01"}],
    },
    "merged/new_field": {"input": [{"id": 1}, {"id": 2, "x": 1}], "expect": [{"id": 1}, {"id": 2, "x": 1}]},
    "csv/real_file": {
        "input": {"files": ["region=eu/a.csv"]},
        "expect": [{"id": 7, "at": "2026-01-31", "region": "eu"}],
    },
    "joined/late": {
        "input": [{"id": 1, "delay": 20}, {"id": 2, "delay": 5}],
        "inputs": {"planes": {"schema": "id long, seats int", "rows": [{"id": 1, "seats": 100}]}},
        "expect": [{"id": 2, "late": False}, {"id": 1, "late": True, "seats": 100}],
        "partial": True,
    },
    "joined/division": {
        "input": [{"id": 1, "delay": 0}],
        "inputs": {"planes": {"schema": "id long, seats int"}},
        "error": "Division by zero",
    },
    "keyed/latest_of_a_key": {
        "input": {
            "schema": "id long, updated_at timestamp, n int",
            "rows": [
                {"id": 1, "updated_at": "2026-01-02", "n": 5},
                {"id": 1, "updated_at": "2026-01-01", "n": 4},
            ],
        },
        "expect": [{"id": 1, "updated_at": "2026-01-02T00:00:00Z", "n": 10}],
    },
    "deleting/latest_of_a_key": {
        "input": {
            "schema": "id long, updated_at timestamp, gone boolean",
            "rows": [
                {"id": 1, "updated_at": "2026-01-01", "gone": False},
                {"id": 1, "updated_at": "2026-01-02", "gone": True},
                {"id": 2, "updated_at": "2026-01-02"},
            ],
        },
        "expect": [{"id": 2, "updated_at": "2026-01-02T00:00:00Z"}],
    },
    "events/latest_of_a_key": {
        "input": [
            {"id": 1, "name": "b", "_op": "u", "_position": "2"},
            {"id": 1, "name": "a", "_op": "c", "_position": "1"},
            {"id": 2, "name": None, "_op": "d", "_position": "2"},
        ],
        "expect": [{"id": 1, "name": "b", "_op": "u", "_position": "2"}],
    },
    "kept/field_of_an_earlier_row": {
        "input": [{"id": 1, "name": "a"}, {"id": 2}],
        "expect": [{"id": 1, "name": "a"}, {"id": 2}],
    },
    "deleting/no_such_column": {
        "input": {"schema": "id long, updated_at timestamp", "rows": []},
        "error": "target.delete_when",
    },
    "dropped/columns_added": {
        "input": [{"id": 1, "at": "2026-01-01", "_run_id": "x", "_ingested_at": "2026-01-02"}],
        "error": "Keep at",
    },
    "dropped/watermark_column": {"input": [{"id": 1}], "error": "Keep at"},
    "windows/tag": {
        "input": [{"id": 1, "at": "2026-01-01", "tags": ["b"]}],
        "expect": [{"id": 1, "at": "2026-01-01T00:00:00Z", "tag": "B"}],
    },
    "days/columns_added": {
        "input": [
            {
                "id": 1,
                "_window_start": "2026-01-01T05:00:00Z",
                "_ingested_at": "2026-01-03T00:00:00Z",
                "_run_id": "x",
            },
            {"id": 2, "_window_start": "2026-01-01T06:00:00Z"},
        ],
        "expect": [{"_window_start": "2026-01-01", "hours": 2, "newest": "2026-01-03", "run": "x"}],
    },
    "stream/sorted": {"input": READINGS[::-1], "expect": READINGS, "ordered": True},
    "counted/sessions": {
        "input": READINGS,
        "expect": [{"device": "a", "n": 2}, {"device": "a", "n": 1}],
        "partial": True,
        "ordered": True,
    },
    "neighbours/last_row_too": {
        "input": READINGS,
        "expect": [{"id": 1, "next": 2}, {"id": 2, "next": 3}, {"id": 3}],
        "partial": True,
    },
    "engine/untestable": {"input": [{"id": 1}], "error": "only a running query of Spark carries them out"},
}

FAILING: dict[str, dict[str, Any]] = {
    "joined/values": {
        "input": [{"id": 1, "delay": 20}, {"id": 2, "delay": 5}],
        "inputs": {"planes": {"schema": "id long, seats int"}},
        "expect": [
            {"id": 1, "delay": 20, "late": False, "rate": 5},
            {"id": 3, "delay": 7, "late": False, "rate": 1.5},
        ],
    },
    "joined/column": {
        "input": [],
        "inputs": {"planes": {"schema": "id long, seats int"}},
        "expect": [{"id": 1}, {"id": 2, "sets": 5}],
    },
    "joined/no_error": {
        "input": [{"id": 1, "delay": 20}],
        "inputs": {"planes": {"schema": "id long, seats int"}},
        "error": "by zero",
    },
    "plain/refused": {"input": [{"id": "x"}], "expect": []},
}


def write(project: Path, tests: dict[str, dict[str, Any]]) -> None:
    files: dict[str, Any] = {f"dataflows/{name}.yaml": flow for name, flow in FLOWS.items()}
    files |= {f"tests/{name}.yaml": test for name, test in tests.items()}
    url = "jdbc:postgresql://nowhere.invalid:5432/erp"
    files["platform.yaml"] = {
        "connections": {"erp": {"type": "jdbc", "url": url, "password": {"env": "UNSET"}}},
    }
    for name, document in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document, sort_keys=False))
    (project / "steps.py").write_text("def doubled(df, batch):\n    return df.withColumn('n', df.n * 2)\n")
    csv = project / "tests/csv/region=eu/a.csv"
    csv.parent.mkdir(parents=True, exist_ok=True)
    csv.write_text("id;at\n7;31.01.2026\n")


@pytest.fixture
def remote(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of all tests."""
    monkeypatch.setenv("STRANDLINE_SPARK_REMOTE", str(engine.remote))


def run(project: Path, *words: str) -> Any:
    return CliRunner().invoke(strandline, ["test", *words, "--project", str(project)])


@pytest.mark.usefixtures("remote")
def test_rows_pass_what_a_slice_passes_in_each_kind_and_source(tmp_path: Path) -> None:
    write(tmp_path, TESTS)
    result = run(tmp_path, "--json")
    records = json.loads(result.stdout)
    assert [record for record in records if record["status"] != "passed"] == []
    assert [f"{record['dataflow']}/{record['test']}" for record in records] == sorted(TESTS)
    assert result.exit_code == 0
    assert not (tmp_path / ".strandline").exists()


@pytest.mark.usefixtures("remote")
def test_a_failed_test_shows_the_rows_that_differ_and_ends_with_1(tmp_path: Path) -> None:
    write(tmp_path, FAILING)
    result = run(tmp_path)
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[-1].startswith("4 tests: 0 passed, 4 failed, in ")
    assert lines[:-1] == [
        "joined/column: failed",
        (
            "  tests/joined/column.yaml:7: expected one of the columns id, delay, late, rate, seats, file, found sets (did you mean"
            " seats?)"
        ),
        "joined/no_error: failed",
        "  expected an error with 'by zero', found 1 row",
        "joined/values: failed",
        "  ~ id 1: late: expected false, found true; file: expected null, found rows.ndjson",
        "  - missing:    {id: 3, delay: 7, late: false, rate: 1.5, seats: null, file: null}",
        "  + unexpected: {id: 2, delay: 5, late: false, rate: 20.0, seats: null, file: rows.ndjson}",
        "plain/refused: failed",
        *lines[9:-1],
    ]
    assert lines[9].startswith(
        "  tests/plain/refused.yaml: input: line 1: field id: expected bigint, found text, 'x'"
    )


@pytest.mark.usefixtures("remote")
def test_the_first_test_that_init_writes_passes_for_each_kind_and_source(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/2024-01-01.csv").write_text("plz,day,n,note\n01067,2024-01-01,1.5,\n")
    call = ["init", str(tmp_path / "shop")]
    made = [
        CliRunner().invoke(
            strandline, [*call, "--kind", kind, "--source", source, "--name", f"{kind}_{source}"]
        )
        for kind, sources in SOURCES.items()
        for source in sources
    ]
    made.append(CliRunner().invoke(strandline, [*call, "--from", str(tmp_path / "drop")]))
    assert {result.exit_code for result in made} == {0}
    settings = tmp_path / "shop/platform.yaml"
    settings.write_text(settings.read_text().replace("#   ", "  ").replace("# connections", "connections"))
    records = json.loads(run(tmp_path / "shop", "--json").stdout)
    assert [record["status"] for record in records] == ["passed"] * len(made)
