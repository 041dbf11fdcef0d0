"""A dozen schedules of damage and decisions on real Spark; thousands of them run without it in ``tests/model``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.model import actions as do
from tests.model.known import KNOWN
from tests.model.world import Config, play
from tests.support.sparked import parts

SCHEDULES: dict[str, tuple[Sequence[do.Action], Config]] = {
    name: KNOWN[name] for name in ("lost-followed", "behind-quarantine", "open-removed", "restored", "made-again", "copy")
} | {
    "a table is put back under an open intent": (
        [do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "commit")), do.RestoreTable(4)],
        Config(),
    ),
    "a table's log is cleaned under an open intent": (
        [do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "commit")), do.AppendForeign(), do.CleanLog()],
        Config(),
    ),
    "a rewind with replace dies": (
        [do.Arrive(3), do.Run(), do.Rewind(2, replace=True), do.Run(do.Kill("after", "commit")), do.Arrive(1)],
        Config(),
    ),
    "a reset with replace dies": (
        [do.Arrive(2), do.Run(), do.AppendForeign(), do.Reset(replace=True, kill=do.Kill("after", "intents")), do.Arrive(1),
         do.Reset(replace=True), do.Run(do.Kill("before", "commit"))],
        Config(),
    ),
    "a file is released and another project has run": (
        [do.Arrive(1), do.Run(), do.Late(), do.Sweep(), do.Release(do.Kill("after", "quarantine")), do.Release(), do.CopyRuns(3)],
        Config(late_files="quarantine"),
    ),
    "a set is imported, and a file of it read again": (
        [do.Arrive(2), do.Run(), do.LoseState(), do.Import(1), do.Unprocess(), do.Arrive(1), do.ChangeDefinition(), do.Follow(0)],
        Config(tracking="set"),
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_end_with_rows_once_or_a_way_there(name: str, engine: SparkEngine, tmp_path: Path) -> None:
    schedule, config = SCHEDULES[name]
    play(schedule, config, parts(engine), tmp_path)
