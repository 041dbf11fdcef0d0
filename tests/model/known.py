"""Schedules that once went wrong, each with the rule that it holds."""

from __future__ import annotations

from tests.model import actions as do
from tests.model.world import Config

_BY_SET = Config(tracking="set")
_QUARANTINE = Config(late_files="quarantine")


def _holds(
    *schedule: do.Action, config: Config | None = None, name: str
) -> tuple[str, tuple[tuple[do.Action, ...], Config]]:
    """Return a schedule and what is defined, by its name."""
    return name, (schedule, config or Config())


_TWO_AHEAD = (do.Arrive(2), do.Run(), do.Arrive(2), do.Run(), do.RestoreState(2))
"""Four files are loaded, and the state knows of two."""

_OPEN = (do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "intents")))
"""Number 2 is begun, and nothing of it written."""


KNOWN = dict(
    [
        # A decision between a state that was restored and the next run
        _holds(*_TWO_AHEAD, do.Late(), do.Sweep(), config=_QUARANTINE, name="behind-quarantine"),
        _holds(*_TWO_AHEAD, do.Accept(), name="behind-accept"),
        _holds(*_TWO_AHEAD, do.Rewind(0), name="behind-rewind"),
        _holds(*_TWO_AHEAD, do.Unprocess(), config=_BY_SET, name="behind-unprocess"),
        _holds(
            do.Arrive(1), do.Run(), do.Late(), do.Sweep(), do.Arrive(2), do.Run(), do.RestoreState(2), do.Release(),
            config=_QUARANTINE, name="behind-release",
        ),
        _holds(do.Arrive(1), do.Run(), do.Late(), do.Sweep(), do.Release(), do.Run(), do.RestoreState(2), config=_QUARANTINE, name="behind-released"),
        _holds(
            do.Arrive(1), do.Run(), do.Late(), do.Sweep(), do.Release(), do.Run(), do.RestoreState(3), config=_QUARANTINE, name="behind-release-loaded",
        ),
        _holds(*_TWO_AHEAD, name="behind-run"),
        # An open intent, and the table is another one
        _holds(*_OPEN, do.RemoveTable(), do.Reset(), name="open-removed-reset"),
        _holds(*_OPEN, do.RemoveTable(), do.Reset(replace=True), name="open-removed-reset-replace"),
        _holds(*_OPEN, do.RemoveTable(), name="open-removed"),
        _holds(
            do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "intents")), do.RestoreTable(4), name="open-older",
        ),
        _holds(*_OPEN, name="open"),
        # A state that was lost, and a decision that dies
        _holds(do.Arrive(2), do.Run(), do.LoseState(), do.Adopt(do.Kill("after", "intents")), do.Run(), name="lost-adopt-dies"),
        _holds(do.Arrive(2), do.Run(), do.LoseState(), do.Reset(kill=do.Kill("after", "intents")), name="lost-reset-dies"),
        _holds(do.Arrive(2), do.Run(), do.LoseState(), do.Import(2, do.Kill("after", "intents")), name="lost-import-dies"),
        _holds(do.Arrive(2), do.Run(), do.LoseState(), name="lost"),
        # A state that was lost comes back with the decisions that no run has followed yet, also if its import dies
        _holds(do.Arrive(1), do.Run(), do.Unprocess(), do.LoseState(), config=_BY_SET, name="lost-unprocess"),
        _holds(
            do.Arrive(1), do.Run(), do.Unprocess(), do.LoseState(), do.Follow(1, do.Kill("after", "intents")), config=_BY_SET, name="lost-unprocess-import-dies"
        ),
        _holds(do.Arrive(3), do.Run(), do.Reset(replace=True), do.LoseState(), do.Follow(1, do.Kill("after", "intents")), name="lost-reset-import-dies"),
        _holds(do.Arrive(3), do.Run(), do.LoseState(), do.Follow(1, do.Kill("after", "entries")), name="lost-import-dies-between-entries"),
        # A table that is not the one that was written
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.RecreateTable(1, commits=3), do.Arrive(1), name="made-again"),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.RestoreVersion(1), do.Arrive(1), name="restored"),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.RestoreTable(2), do.AppendForeign(), do.Arrive(1), name="older-and-grown"),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.RestoreTable(2), do.Arrive(1), name="older"),
        # Nothing is new
        _holds(do.Arrive(1), do.Run(), do.RemoveTable(), name="removed-unseen"),
        # A copy of the project
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.CopyRuns(2), name="copy"),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "intents")), do.Arrive(1), do.CopyRuns(3), name="copy-open"),
        # A reset that is taken back
        _holds(do.Arrive(1), do.Run(), do.Reset(replace=True), do.Adopt(), do.Arrive(1), name="adopt-after-reset"),
        _holds(do.Arrive(1), do.Run(), do.Reset(replace=True), do.Rewind(1), do.Arrive(1), name="emptied-rewind"),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Reset(replace=True), do.Import(2), name="emptied-import"),
        _holds(do.Arrive(1), do.Run(), do.Reset(), do.Rewind(0, replace=True), name="rewind-after-reset"),
        _holds(do.Arrive(1), do.Run(), do.Reset(), do.Rewind(1), name="rewind-before-reset"),
        # Others overwrite all of it, or a part, or another project does
        *(
            _holds(do.Arrive(2), do.Run(), do.Arrive(2), do.Run(), do.Overwrite(by), *then, do.Arrive(1), config=config, name=f"overwritten-{by}-{name}")
            for by in ("others", "half", "part", "project")
            for name, then, config in (
                ("", (), None), ("lost", (do.LoseState(),), None), ("restored", (do.RestoreVersion(1),), None), ("by-set", (), _BY_SET)
            )
        ),
        # A rewind upwards, and the table has lost rows since
        _holds(do.Arrive(4), do.Run(), do.Rewind(2), do.RemoveTable(), do.Run(do.Kill("after", "entries")), do.Rewind(2), name="rewind-up-removed"),
        _holds(do.Arrive(2), do.Run(), do.Arrive(2), do.Run(), do.RestoreTable(3), do.Import(4), do.Rewind(1), name="import-rewind-up"),
        _holds(do.Arrive(4), do.Run(), do.Rewind(2), do.Rewind(1), name="rewind-up"),
        # A number that was given up says nothing of rows
        _holds(do.Arrive(3), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "intents")), do.RestoreVersion(1), name="adopt-given-up"),
        _holds(do.Arrive(1), do.Run(do.Kill("after", "intents")), do.CopyRuns(2), name="adopt-given-up-first"),
        # Rows that the adopted watermark does not cover
        _holds(do.Arrive(4), do.Run(), do.Rewind(4, replace=True), do.Run(do.Kill("after", "entries")), do.LoseState(), name="adopt-above"),
        # An adopt that has ended a number of which nobody knows, and dies
        _holds(
            do.Arrive(3), do.Run(do.Kill("before", "entries", 2)), do.AppendForeign(), do.CleanLog(), do.Follow(0, do.Kill("after", "intents")), do.Arrive(1),
            name="unknown-adopt-dies",
        ),
        # Parts of the log that are gone
        _holds(do.Arrive(1), do.Run(do.Meanwhile("before", "entries", do.LoseState())), do.Arrive(1), name="lost-inside"),
        _holds(do.Arrive(1), do.Run(), do.LoseList(), do.Late(), name="list-lost"),
        # A table that a fence has made, and somebody else has written to
        _holds(do.Arrive(1), do.Run(do.Kill("during", "commit")), do.Arrive(1), do.Set(), do.AppendForeign(), name="fence-then-foreign"),
        _holds(do.Arrive(1), do.Run(do.Kill("during", "commit")), do.Rewind(0), do.CopyRuns(1), do.Arrive(1), name="fence-then-copy"),
        # A RESTORE under an open intent, and one that is gone from the table's log
        _holds(
            do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Kill("during", "commit")), do.RestoreVersion(1), do.Land(),
            name="restored-then-landed",
        ),
        _holds(
            do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.Arrive(1), do.Run(do.Meanwhile("before", "commit", do.RestoreVersion(1))), name="restored-inside"
        ),
        _holds(do.Arrive(1), do.Run(), do.Arrive(1), do.Run(), do.RestoreVersion(1), do.AppendForeign(), do.CleanLog(), name="restored-and-cleaned"),
        # An overwrite under an open intent, and a decision about it that dies once it has ended the intent
        _holds(
            do.Arrive(2), do.Run(), do.Arrive(1), do.Run(do.Kill("after", "intents")), do.Overwrite("half"), do.Adopt(do.Kill("after", "entries")),
            name="overwritten-and-given-up",
        ),
        _holds(
            do.Arrive(2), do.Run(), do.Arrive(1), do.Run(do.Kill("during", "commit")), do.Overwrite("half"), do.Land(), do.Adopt(do.Kill("after", "entries")),
            name="overwritten-and-landed",
        ),
        # A table that comes while the first slice of a state is written, or given up
        _holds(
            do.Arrive(2), do.Run(), do.Arrive(1), do.RemoveTable(), do.LoseState(), do.Run(do.Meanwhile("after", "intents", do.RestoreTable(4))),
            name="restored-under-a-first-run",
        ),
        _holds(
            do.Arrive(2), do.Run(), do.Arrive(1), do.RemoveTable(), do.Reset(), do.Run(do.Meanwhile("after", "intents", do.RestoreTable(4))),
            name="restored-under-the-first-run-after-a-reset",
        ),
        # A table that was made after the reset that saw none
        _holds(do.Arrive(1), do.Run(), do.Arrive(2), do.RemoveTable(), do.Reset(), do.CopyRuns(4), name="reset-then-made"),
        # State and table as they were when a rewind was decided
        _holds(
            do.Arrive(1), do.Run(), do.Rewind(4), do.Arrive(4), do.Run(), do.RestoreTable(3), do.RestoreState(2), name="both-restored-to-a-rewind"
        ),
        # Follow what a run says
        _holds(do.Arrive(2), do.Run(), do.LoseState(), do.Follow(0), do.Arrive(1), do.Run(), name="lost-followed"),
    ]
)  # fmt: skip
