"""Schedules as hypothesis draws them: something comes, something runs, and then whatever may come."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.model.actions import (
    Accept,
    Action,
    Adopt,
    AppendForeign,
    Arrive,
    ChangeDefinition,
    CleanLog,
    CopyRuns,
    Follow,
    Import,
    Kill,
    Land,
    Late,
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
from tests.model.world import Config

_PUT = ("files", "quarantine", "schemas", "intents", "commit", "entries")
_AGO = st.integers(1, 8)

deaths = st.none() | st.builds(
    Kill, st.sampled_from(["before", "after"]), st.sampled_from(_PUT), st.integers(1, 2)
) | st.just(Kill("during", "commit"))  # fmt: skip

arrivals = st.builds(Arrive, st.integers(1, 3))

beside = st.builds(
    Meanwhile,
    st.sampled_from(["before", "after"]),
    st.sampled_from(_PUT),
    st.sampled_from(
        [
            Run(), Sweep(), Arrive(), Late(), Set(), Rewind(1, replace=True), Rewind(0), Reset(), Reset(replace=True), Adopt(), Accept(),
            Release(),
        ]
    ),
    st.integers(1, 2),
)  # fmt: skip
kills = deaths | beside
runs = st.builds(Run, kills)

decided = st.one_of(
    st.builds(Set, st.integers(1, 2), kills),
    st.builds(Rewind, st.integers(0, 4), st.booleans(), kills),
    st.builds(Reset, st.booleans(), kills),
    st.builds(Adopt, kills),
    st.builds(Accept, kills),
    st.builds(Import, _AGO, kills),
    st.builds(Release, kills),
    st.builds(Unprocess, kills),
)

damage = st.one_of(
    st.just(LoseState()),
    st.builds(RestoreState, _AGO),
    st.just(RemoveTable()),
    st.builds(RestoreTable, _AGO),
    st.builds(RestoreVersion, st.integers(1, 3)),
    st.builds(RecreateTable, st.integers(0, 2), st.integers(1, 4)),
    st.just(AppendForeign()),
    st.builds(Overwrite, st.sampled_from(["others", "part", "half", "project"])),
    st.just(CleanLog()),
    st.builds(CopyRuns, _AGO),
    st.just(ChangeDefinition()),
)

loads = st.one_of(
    arrivals,
    runs,
    st.just(Late()),
    st.builds(Sweep, kills),
    st.just(Land()),
    st.builds(Follow, st.integers(0, 3), kills),
)

configs = st.sampled_from([Config(), Config(late_files="quarantine"), Config(tracking="set")])


def schedules(most: int) -> st.SearchStrategy[list[Action]]:
    """Lists of at most so many actions after the first two."""
    more = st.lists(st.one_of(loads, loads, damage, decided), min_size=1, max_size=most)
    return st.tuples(arrivals, runs, more).map(lambda parts: [parts[0], parts[1], *parts[2]])
