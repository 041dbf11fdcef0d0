"""What makes the next run with rows stop: ``plan`` ends with 4, and ``why`` names it with the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from platform_assets.cli import main
from resources.connections.places import Place
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.projects import project_of

SOURCE = "source: {type: files, path: ./landing, format: ndjson, schema: 'id string, more string'}\n"
CHANGED = SOURCE + "watermark: {type: path}\n"
KEYS = (
    SOURCE.replace("id string, more string", "id string")
    + "watermark: {type: path}\ntarget: {load: merge_upsert, merge_keys: [id]}\n"
)
TABLE = "source: {type: table, table: bronze/rows}\nwatermark: {type: column, columns: [id]}\n"
STOP = "the next run with rows stops: source.schema: expected the pinned schema (id string), found a different one (more string)"
CHECK = "the next run with rows is the first with merge_keys: id. It stops if rows of table bronze/flow share a key (keys_not_unique)"
REFUSED = "the next run with rows stops: columns of bronze/rows: expected the table's columns, found others: name is new"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def loaded(folder: Path, definition: str, kind: str = "path") -> Path:
    """A project whose dataflow ``flow`` has loaded a file with column ``id``, appended; ``b.ndjson`` is new."""
    project = project_of(folder, flow=definition)
    for name in ("a", "b"):
        (project / f"landing/{name}.ndjson").write_text('{"id": "1"}\n')
    log = WatermarkLog(open_blobs(Place(str(project / "state"))))
    field = {"name": "id", "type": "string", "nullable": True, "metadata": {}}
    schema = {
        "columns": {"type": "struct", "fields": [field]},
        "folders": [],
        **({"declared": "id string"} if kind == "path" else {}),
    }
    pinned = log.put_schema("flow", json.dumps(schema))
    watermark = '{"path": "a.ndjson"}' if kind == "path" else '{"id": "0"}'
    entry = next_entry(None, app_id="a", fingerprint="", why="run", run_id="run-1", kind=kind,
                       watermark=watermark, pinned=pinned, keyed_by='["append"]')  # fmt: skip
    log.append("flow", entry, expected=0)
    write_deltalake(str(project / "lake/bronze/flow"), pa.table({"id": pa.array([], pa.string())}))
    write_deltalake(str(project / "lake/bronze/rows"), pa.table({"id": ["1"], "name": ["x"]}))
    return project


def call(project: Path, *words: str) -> Result:
    return CliRunner().invoke(main.strandline, ["--project", str(project), *words])


CASES = [
    pytest.param(CHANGED, "path", STOP, "state reset flow --replace --reason TEXT", id="changed schema"),
    pytest.param(KEYS, "path", CHECK, "run flow", id="new merge keys"),
    pytest.param(TABLE, "column", REFUSED, "state reset flow --replace --reason TEXT", id="columns upstream"),
]


@pytest.mark.parametrize(("definition", "kind", "stop", "remedy"), CASES)
class TestAStopOfTheNextRunWithRows:
    def test_plan_ends_with_4_and_says_the_stop_beside_the_slices(
        self, tmp_path: Path, definition: str, kind: str, stop: str, remedy: str
    ) -> None:
        project = loaded(tmp_path, definition, kind)
        answer = call(project, "plan", "--json")
        (document,) = json.loads(answer.stdout)
        assert (answer.exit_code, document["due"]) == (4, True)
        assert document["error"]["message"].startswith(stop)
        assert document["error"]["choices"] == [f"strandline {remedy}"]
        text = call(project, "plan")
        assert text.exit_code == 4
        assert f"  warning: {stop}" in text.stdout
        assert f"strandline {remedy}" in text.output

    def test_why_has_the_same_line_and_the_remedy(
        self, tmp_path: Path, definition: str, kind: str, stop: str, remedy: str
    ) -> None:
        project = loaded(tmp_path, definition, kind)
        answer: dict[str, Any] = json.loads(call(project, "why", "flow", "--json").stdout)
        assert (answer["status"], answer["choices"]) == ("stopped", [f"strandline {remedy}"])
        assert answer["summary"].startswith("the definition may stop the next run: ")
        (planned,) = json.loads(call(project, "plan", "--json").stdout)
        assert [(reason["what"], reason["why"]) for reason in answer["reasons"]] == [
            ("the definition", planned["error"]["message"])
        ]


def test_plan_of_several_ends_with_4_if_one_of_them_would_stop(tmp_path: Path) -> None:
    project = loaded(tmp_path, CHANGED)
    (project / "dataflows/other.yaml").write_text(CHANGED)
    answer = call(project, "plan", "--json")
    assert answer.exit_code == 4
    errors = {document["dataflow"]: document["error"] for document in json.loads(answer.stdout)}
    assert errors["other"] is None
    assert errors["flow"]["code"] == "schema"
