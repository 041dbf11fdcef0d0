"""A dozen schedules of damage and decisions on real Spark; thousands of them run without it in ``tests/model``."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.model.actions import (
    Action,
    AppendForeign,
    Arrive,
    ChangeDefinition,
    CleanLog,
    CopyRuns,
    Follow,
    Import,
    Kill,
    Late,
    LoseState,
    RecreateTable,
    Release,
    RemoveTable,
    Reset,
    RestoreState,
    RestoreTable,
    RestoreVersion,
    Rewind,
    Run,
    Sweep,
    Unprocess,
)  # fmt: skip
from tests.model.world import Config, play
from tests.support.sparked import parts

_QUARANTINE = Config(late_files="quarantine")
_BY_SET = Config(tracking="set")

SCHEDULES: dict[str, tuple[list[Action], Config]] = {
    "a state is lost and adopted": ([Arrive(2), Run(), Late(), LoseState(), Follow(0), Arrive(1)], Config()),
    "a state is restored and a file comes late": (
        [Arrive(2), Run(), Arrive(2), Run(), RestoreState(2), Late(), Sweep()],
        _QUARANTINE,
    ),
    "a table is removed under an open intent": (
        [Arrive(1), Run(), Arrive(1), Run(Kill("after", "intents")), RemoveTable(), Follow(0)],
        Config(),
    ),
    "a table is put back under an open intent": (
        [Arrive(1), Run(), Arrive(1), Run(), Arrive(1), Run(Kill("after", "commit")), RestoreTable(4)],
        Config(),
    ),
    "a table is restored": ([Arrive(1), Run(), Arrive(1), Run(), RestoreVersion(1), Arrive(1)], Config()),
    "a table is made again by somebody else": (
        [Arrive(1), Run(), Arrive(1), Run(), RecreateTable(1, commits=3), Arrive(1)],
        Config(),
    ),
    "a table's log is cleaned under an open intent": (
        [Arrive(1), Run(), Arrive(1), Run(Kill("after", "commit")), AppendForeign(), CleanLog()],
        Config(),
    ),
    "a copy of the project runs": ([Arrive(1), Run(), Arrive(1), CopyRuns(2), Arrive(1)], Config()),
    "a rewind with replace dies": (
        [Arrive(3), Run(), Rewind(2, replace=True), Run(Kill("after", "commit")), Arrive(1)],
        Config(),
    ),
    "a reset with replace dies": (
        [Arrive(2), Run(), AppendForeign(), Reset(replace=True, kill=Kill("after", "intents")), Arrive(1),
         Reset(replace=True), Run(Kill("before", "commit"))],
        Config(),
    ),
    "a file is released and another project has run": (
        [Arrive(1), Run(), Late(), Sweep(), Release(Kill("after", "quarantine")), Release(), CopyRuns(3)],
        _QUARANTINE,
    ),
    "a set is imported, and a file of it read again": (
        [Arrive(2), Run(), LoseState(), Import(1), Unprocess(), Arrive(1), ChangeDefinition(), Follow(0)],
        _BY_SET,
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_ends_with_every_row_once_or_commands_that_lead_there(
    name: str, engine: SparkEngine, tmp_path: Path
) -> None:
    schedule, config = SCHEDULES[name]
    play(schedule, config, parts(engine), tmp_path)
