"""The process of ``strandline watch``, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import DagsterInstance

from partitions.errors import SourceError
from platform_assets.cli.context import Context
from platform_assets.cli.watching import Watch
from platform_assets.platform import build_platform
from resources.notes.last_run import last_attempt, note_failed_start

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


def test_what_only_a_run_asks_stays_failed_after_the_checks_of_a_watch(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/orders.yaml").write_text(
        "source: {type: python, function: 'shop:orders', schema: 'id long'}\n"
        "watermark: {type: column, columns: [id]}\ntarget: {load: append}\n"
    )
    with DagsterInstance.ephemeral() as instance:
        context = Context(tmp_path)
        log = build_platform(context.project).log
        note_failed_start(log, "orders", SourceError("401"))
        before = last_attempt(log, "orders")
        watch = Watch(context, (), instance, 1, lambda: None)
        watch.run_new_work()
        watch.end()
    assert before is not None
    assert (last_attempt(log, "orders"), before.status) == (before, "failed")
