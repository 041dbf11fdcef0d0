"""Schedules that once went wrong, each with the rule that it holds."""

from __future__ import annotations

import pytest

from tests.model.actions import (
    Accept,
    Action,
    Adopt,
    AppendForeign,
    Arrive,
    CleanLog,
    CopyRuns,
    Follow,
    Import,
    Kill,
    Land,
    Late,
    LoseList,
    LoseState,
    Meanwhile,
    Overwrite,
    RecreateTable,
    Release,
    RemoveTable,
    Reset,
    RestoreState,
    RestoreTable,
    RestoreVersion,
    Rewind,
    Run,
    Set,
    Sweep,
    Unprocess,
)  # fmt: skip
from tests.model.world import Config, play

_BY_SET = Config(tracking="set")
_QUARANTINE = Config(late_files="quarantine")


def _holds(*schedule: Action, config: Config | None = None, name: str) -> object:
    """A schedule that ends well."""
    return pytest.param(schedule, config, id=name)


_TWO_AHEAD = (Arrive(2), Run(), Arrive(2), Run(), RestoreState(2))
"""Four files are loaded, and the state knows of two."""

_OPEN = (Arrive(1), Run(), Arrive(1), Run(Kill("after", "intents")))
"""Number 2 is begun, and nothing of it written."""


@pytest.mark.parametrize(
    ("schedule", "config"),
    [
        # A decision between a state that was restored and the next run
        _holds(*_TWO_AHEAD, Late(), Sweep(), config=_QUARANTINE, name="behind-quarantine"),
        _holds(*_TWO_AHEAD, Accept(), name="behind-accept"),
        _holds(*_TWO_AHEAD, Rewind(0), name="behind-rewind"),
        _holds(*_TWO_AHEAD, Unprocess(), config=_BY_SET, name="behind-unprocess"),
        _holds(
            Arrive(1), Run(), Late(), Sweep(), Arrive(2), Run(), RestoreState(2), Release(),
            config=_QUARANTINE, name="behind-release",
        ),
        _holds(
            Arrive(1), Run(), Late(), Sweep(), Release(), Run(), RestoreState(2), config=_QUARANTINE, name="behind-released",
        ),
        _holds(
            Arrive(1), Run(), Late(), Sweep(), Release(), Run(), RestoreState(3), config=_QUARANTINE, name="behind-release-loaded",
        ),
        _holds(*_TWO_AHEAD, name="behind-run"),
        # An open intent, and the table is another one
        _holds(*_OPEN, RemoveTable(), Reset(), name="open-removed-reset"),
        _holds(*_OPEN, RemoveTable(), Reset(replace=True), name="open-removed-reset-replace"),
        _holds(*_OPEN, RemoveTable(), name="open-removed"),
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), Arrive(1), Run(Kill("after", "intents")), RestoreTable(4), name="open-older",
        ),
        _holds(*_OPEN, name="open"),
        # A state that was lost, and a decision that dies
        _holds(Arrive(2), Run(), LoseState(), Adopt(Kill("after", "intents")), Run(), name="lost-adopt-dies"),
        _holds(Arrive(2), Run(), LoseState(), Reset(kill=Kill("after", "intents")), name="lost-reset-dies"),
        _holds(Arrive(2), Run(), LoseState(), Import(2, Kill("after", "intents")), name="lost-import-dies"),
        _holds(Arrive(2), Run(), LoseState(), name="lost"),
        # A table that is not the one that was written
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), RecreateTable(1, commits=3), Arrive(1), name="made-again"
        ),
        _holds(Arrive(1), Run(), Arrive(1), Run(), RestoreVersion(1), Arrive(1), name="restored"),
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), RestoreTable(2), AppendForeign(), Arrive(1), name="older-and-grown"
        ),
        _holds(Arrive(1), Run(), Arrive(1), Run(), RestoreTable(2), Arrive(1), name="older"),
        # Nothing is new
        _holds(Arrive(1), Run(), RemoveTable(), name="removed-unseen"),
        # A copy of the project
        _holds(Arrive(1), Run(), Arrive(1), CopyRuns(2), name="copy"),
        _holds(Arrive(1), Run(), Arrive(1), Run(Kill("after", "intents")), Arrive(1), CopyRuns(3), name="copy-open"),
        # A reset that is taken back
        _holds(Arrive(1), Run(), Reset(replace=True), Adopt(), Arrive(1), name="adopt-after-reset"),
        _holds(Arrive(1), Run(), Reset(replace=True), Rewind(1), Arrive(1), name="emptied-rewind"),
        _holds(Arrive(1), Run(), Arrive(1), Reset(replace=True), Import(2), name="emptied-import"),
        _holds(Arrive(1), Run(), Reset(), Rewind(0, replace=True), name="rewind-after-reset"),
        _holds(Arrive(1), Run(), Reset(), Rewind(1), name="rewind-before-reset"),
        # Others overwrite all of it, or a part, or another project does
        *(
            _holds(Arrive(2), Run(), Arrive(2), Run(), Overwrite(by), *then, Arrive(1), config=config, name=f"overwritten-{by}-{name}")
            for by in ("others", "half", "part", "project")
            for name, then, config in (
                ("", (), None), ("lost", (LoseState(),), None), ("restored", (RestoreVersion(1),), None), ("by-set", (), _BY_SET)
            )
        ),
        # A rewind upwards, and the table has lost rows since
        _holds(
            Arrive(4), Run(), Rewind(2), RemoveTable(), Run(Kill("after", "entries")), Rewind(2), name="rewind-up-removed"
        ),
        _holds(
            Arrive(2), Run(), Arrive(2), Run(), RestoreTable(3), Import(4), Rewind(1), name="import-rewind-up"
        ),
        _holds(Arrive(4), Run(), Rewind(2), Rewind(1), name="rewind-up"),
        # A number that was given up says nothing of rows
        _holds(
            Arrive(3), Run(), Arrive(1), Run(Kill("after", "intents")), RestoreVersion(1), name="adopt-given-up"
        ),
        _holds(Arrive(1), Run(Kill("after", "intents")), CopyRuns(2), name="adopt-given-up-first"),
        # Rows that the adopted watermark does not cover
        _holds(
            Arrive(4), Run(), Rewind(4, replace=True), Run(Kill("after", "entries")), LoseState(), name="adopt-above"
        ),
        # An adopt that has ended a number of which nobody knows, and dies
        _holds(
            Arrive(3), Run(Kill("before", "entries", 2)), AppendForeign(), CleanLog(), Follow(0, Kill("after", "intents")), Arrive(1),
            name="unknown-adopt-dies",
        ),
        # Parts of the log that are gone
        _holds(Arrive(1), Run(Meanwhile("before", "entries", LoseState())), Arrive(1), name="lost-inside"),
        _holds(Arrive(1), Run(), LoseList(), Late(), name="list-lost"),
        # A table that a fence has made, and somebody else has written to
        _holds(
            Arrive(1), Run(Kill("during", "commit")), Arrive(1), Set(), AppendForeign(), name="fence-then-foreign"
        ),
        _holds(
            Arrive(1), Run(Kill("during", "commit")), Rewind(0), CopyRuns(1), Arrive(1), name="fence-then-copy"
        ),
        # A RESTORE under an open intent, and one that is gone from the table's log
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), Arrive(1), Run(Kill("during", "commit")), RestoreVersion(1), Land(),
            name="restored-then-landed",
        ),
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), Arrive(1), Run(Meanwhile("before", "commit", RestoreVersion(1))), name="restored-inside"
        ),
        _holds(
            Arrive(1), Run(), Arrive(1), Run(), RestoreVersion(1), AppendForeign(), CleanLog(), name="restored-and-cleaned"
        ),
        # An overwrite under an open intent, and a decision about it that dies once it has ended the intent
        _holds(
            Arrive(2), Run(), Arrive(1), Run(Kill("after", "intents")), Overwrite("half"), Adopt(Kill("after", "entries")),
            name="overwritten-and-given-up",
        ),
        _holds(
            Arrive(2), Run(), Arrive(1), Run(Kill("during", "commit")), Overwrite("half"), Land(), Adopt(Kill("after", "entries")),
            name="overwritten-and-landed",
        ),
        # A table that comes while the first slice of a state is written, or given up
        _holds(
            Arrive(2), Run(), Arrive(1), RemoveTable(), LoseState(), Run(Meanwhile("after", "intents", RestoreTable(4))),
            name="restored-under-a-first-run",
        ),
        _holds(
            Arrive(2), Run(), Arrive(1), RemoveTable(), Reset(), Run(Meanwhile("after", "intents", RestoreTable(4))),
            name="restored-under-the-first-run-after-a-reset",
        ),
        # A table that was made after the reset that saw none
        _holds(
            Arrive(1), Run(), Arrive(2), RemoveTable(), Reset(), CopyRuns(4), name="reset-then-made"
        ),
        # State and table as they were when a rewind was decided
        _holds(
            Arrive(1), Run(), Rewind(4), Arrive(4), Run(), RestoreTable(3), RestoreState(2), name="both-restored-to-a-rewind"
        ),
        # Follow what a run says
        _holds(Arrive(2), Run(), LoseState(), Follow(0), Arrive(1), Run(), name="lost-followed"),
    ],
)  # fmt: skip
def test_a_schedule_that_went_wrong_ends_well(schedule: tuple[Action, ...], config: Config | None) -> None:
    play(schedule, config)
