"""The examples of docs/reference/python-functions.md run as they stand there: a dlt resource, and a Singer tap."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.spark.engine import SparkEngine
from tests.support.api import api
from tests.support.columns import Columns, at
from tests.support.feed import Feed

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/python-functions.md").read_text()


def row(number: int) -> dict[str, Any]:
    return {"id": number, "at": at(number).isoformat(), "value": number}


def example(folder: Path, engine: SparkEngine, module: str, **source: Any) -> Columns:
    """The dataflow of an example, with other keys of its source, beside its module."""
    blocks = re.findall(r"```(python|yaml)\n(.*?)```", PAGE, re.DOTALL)
    (code,) = [text for kind, text in blocks if kind == "python" and text.startswith(f"# {module}.py")]
    (definition,) = [yaml.safe_load(text) for kind, text in blocks if kind == "yaml" and f"{module}:" in text]
    settings = {"connections": {"crm": {"type": "python", "settings": source.pop("settings", {})}}}
    definition["source"] |= source
    feed = Feed(folder, engine, definition, settings)
    (folder / f"{module}.py").write_text(code)
    return Columns(feed)


def test_a_dlt_resource_is_a_source(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    with api() as server:
        flow = example(tmp_path, engine, "shop_dlt", params={"base_url": server.url})
        server.rows = [row(1), row(2)]
        assert flow.run().rows == 2
        server.rows += [row(3)]
        server.log.clear()
        assert flow.run().rows == 1
        assert flow.run().status == "nothing"
        assert (flow.ids, flow.watermark) == ([1, 2, 3], {"at": at(3)})
        assert server.requested("since")[0] == (at(2).isoformat(),)


def test_a_singer_tap_is_a_source(tmp_path: Path, engine: SparkEngine) -> None:
    file = tmp_path / "rows.jsonl"
    tap = {"tap": [sys.executable, str(Path(__file__).resolve().parents[1] / "support/tap.py")]}
    flow = example(tmp_path, engine, "shop_singer", params=tap, settings={"path": str(file)})
    file.write_text("".join(json.dumps(row(number)) + "\n" for number in (1, 2)))
    assert flow.run().rows == 2
    with file.open("a") as rows:
        rows.write(json.dumps(row(3)) + "\n")
    assert flow.run().rows == 1
    assert (flow.ids, flow.watermark) == ([1, 2, 3], {"at": at(3)})


def test_a_singer_tap_that_fails_commits_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row(1)) + "\n")
    tap = {"tap": [sys.executable, str(Path(__file__).resolve().parents[1] / "support/tap.py")]}
    settings = {"path": str(file), "fails": "3"}
    flow = example(tmp_path, engine, "shop_singer", params=tap, settings=settings)
    error = flow.fail()
    assert "RuntimeError: the tap ended with 3" in error.message
    assert (flow.feed.entries, flow.feed.open_intent) == ([], None)
