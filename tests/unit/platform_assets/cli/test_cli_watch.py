"""The process of ``strandline watch``, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import DagsterInstance

from platform_assets.cli.context import Context
from platform_assets.cli.watching import Watch

FLOW = "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\n"


def test_a_broken_file_is_told_and_others_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "dataflows/orders.yaml").write_text(FLOW)
    (tmp_path / "dataflows/broken.yaml").write_text("source: 7\n")
    with DagsterInstance.ephemeral() as instance:
        watch = Watch(Context(tmp_path), (), instance, 1, lambda: None)
        watch.run_new_work()
        watch.end()
    assert (watch.names, watch.folders) == (["orders"], {tmp_path / "landing"})
    assert capsys.readouterr().out == "  broken: its file has errors; run `strandline validate`\n"
