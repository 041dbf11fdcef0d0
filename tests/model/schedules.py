"""Schedules as hypothesis draws them: something comes, something runs, and then whatever may come."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.model import actions as do
from tests.model.world import Config

_PUT = ("files", "quarantine", "schemas", "intents", "commit", "entries")
_AGO = st.integers(1, 8)

deaths = st.none() | st.builds(
    do.Kill, st.sampled_from(["before", "after"]), st.sampled_from(_PUT), st.integers(1, 2)
) | st.just(do.Kill("during", "commit"))  # fmt: skip

arrivals = st.builds(do.Arrive, st.integers(1, 3))

beside = st.builds(
    do.Meanwhile,
    st.sampled_from(["before", "after"]),
    st.sampled_from(_PUT),
    st.sampled_from(
        [
            do.Run(), do.Sweep(), do.Arrive(), do.Late(), do.Set(), do.Rewind(1, replace=True), do.Rewind(0), do.Reset(), do.Reset(replace=True), do.Adopt(), do.Accept(),
            do.Release(),
        ]
    ),
    st.integers(1, 2),
)  # fmt: skip
kills = deaths | beside
runs = st.builds(do.Run, kills)

decided = st.one_of(
    st.builds(do.Set, st.integers(1, 2), kills),
    st.builds(do.Rewind, st.integers(0, 4), st.booleans(), kills),
    st.builds(do.Reset, st.booleans(), kills),
    st.builds(do.Adopt, kills),
    st.builds(do.Accept, kills),
    st.builds(do.Import, _AGO, kills),
    st.builds(do.Release, kills),
    st.builds(do.Unprocess, kills),
)

damage = st.one_of(
    st.just(do.LoseState()),
    st.builds(do.RestoreState, _AGO),
    st.just(do.RemoveTable()),
    st.builds(do.RestoreTable, _AGO),
    st.builds(do.RestoreVersion, st.integers(1, 3)),
    st.builds(do.RecreateTable, st.integers(0, 2), st.integers(1, 4)),
    st.just(do.AppendForeign()),
    st.builds(do.Overwrite, st.sampled_from(["others", "part", "half", "project"])),
    st.just(do.CleanLog()),
    st.builds(do.CopyRuns, _AGO),
    st.just(do.ChangeDefinition()),
)

loads = st.one_of(
    arrivals,
    runs,
    st.just(do.Late()),
    st.builds(do.Sweep, kills),
    st.just(do.Land()),
    st.builds(do.Follow, st.integers(0, 3), kills),
)

configs = st.sampled_from([Config(), Config(late_files="quarantine"), Config(tracking="set")])


def schedules(most: int) -> st.SearchStrategy[list[do.Action]]:
    """Lists of at most so many actions after the first two."""
    more = st.lists(st.one_of(loads, loads, damage, decided), min_size=1, max_size=most)
    return st.tuples(arrivals, runs, more).map(lambda parts: [parts[0], parts[1], *parts[2]])
