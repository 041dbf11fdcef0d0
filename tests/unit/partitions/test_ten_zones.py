"""Each row once, in ten zones, around the changes of their clocks: whoever reads a text takes it for either pass, or compares local times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.api.parameters import Exclusive, Format
from partitions.api.requests import request_for, requests_above
from partitions.column.definition import ColumnWatermark
from partitions.column.plan import plan, ranges_to_read
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, next_state
from partitions.dataflow_parts import DataflowParts
from partitions.instants import as_datetime, milliseconds, zone_of
from partitions.local_time import earliest_instant, latest_instant, offset_changes
from partitions.predicate import matches
from partitions.sources import ApiSource, FilesSource
from partitions.target import Target
from partitions.unit_values import ValueType
from partitions.window.definition import WindowWatermark
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate
from partitions.window.refusals import refusals
from partitions.window.window_names import belongs_to_later_window, place_name

ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
    "Africa/Casablanca",
    # Midnight occurs twice; two hours are put back; the first pass of an hour belongs to the next day.
    "America/Havana",
    "Antarctica/Troll",
    "America/St_Johns",
    # Midnight is skipped; it occurs twice; winter is an hour back; quarters of an hour.
    "America/Santiago",
    "Atlantic/Azores",
    "Europe/Dublin",
    "Pacific/Chatham",
)
FORMS = (
    "%Y-%m-%d",
    "%Y%j",
    "%Y-%m-%dT%H",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H%z",
    "%Y-%m-%d%z",
)
KINDS: tuple[ValueType, ...] = ("instant", "local", "day")
ANSWERED = 1_000_000
Read = Callable[[datetime, str, tzinfo], Any]


def first_pass(at: datetime, text: str, zone: tzinfo) -> tuple[Any, Any]:
    """The server takes a local time for its first instant."""
    said = parsed(text)
    return at, said if said.tzinfo else earliest_instant(said, zone)


def second_pass(at: datetime, text: str, zone: tzinfo) -> tuple[Any, Any]:
    """The server takes a local time for its last instant."""
    said = parsed(text)
    return at, said if said.tzinfo else latest_instant(said, zone)


def as_local(at: datetime, text: str, zone: tzinfo) -> tuple[Any, Any]:
    """The server compares local times with a text that has no offset."""
    said = parsed(text)
    return (at, said) if said.tzinfo else (at.astimezone(zone).replace(tzinfo=None, fold=0), said)


READERS = st.sampled_from([first_pass, second_pass, as_local])


def parsed(text: str) -> datetime:
    for form in (*FORMS, "%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%dT%H:%M:%S%z"):
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - local times
        except ValueError:
            continue
    return datetime.fromtimestamp(float(text) / (1000 if float(text) > 1e11 else 1), UTC)


@st.composite
def changes(draw: st.DrawFn) -> tuple[tzinfo, datetime]:
    """A zone, and a moment at which its clocks are put forward or back, if there is one after 1990."""
    zone = zone_of(draw(st.sampled_from(ZONES)))
    found = [change.at for change in offset_changes(zone) if 1990 < change.at.year < 2040]
    return zone, draw(st.sampled_from(found)) if found else datetime(2026, 10, 25, 1, tzinfo=UTC)


def moments(change: datetime, hours: int = 30) -> st.SearchStrategy[datetime]:
    """Instants around a change, often close to it."""
    near = st.integers(-240, 240).map(lambda minutes: change + timedelta(minutes=minutes))
    far = st.integers(-hours * 3600, hours * 3600).map(lambda seconds: change + timedelta(seconds=seconds))
    return st.one_of(near, far)


def value(at: datetime, kind: ValueType, zone: tzinfo) -> Any:
    """What a column holds of a row."""
    local = at.astimezone(zone).replace(tzinfo=None, fold=0)
    return {"instant": at, "local": local, "day": local.date()}[kind]


def answered(params: Any, rows: Iterable[datetime], read: Read, zone: tzinfo) -> Iterator[datetime]:
    """What a server answers."""
    for at in rows:
        asked = {name: read(at, text, zone) for name, text in params.items()}
        begins = "since" not in asked or asked["since"][0] >= asked["since"][1]
        if begins and ("until" not in asked or asked["until"][0] < asked["until"][1]):
            yield at


def api(**given: Any) -> ApiSource:
    return ApiSource.model_validate({"type": "api", "connection": "shop", "path": "/rows", **given})


def zone_name(zone: tzinfo) -> str:
    return getattr(zone, "key", "UTC")


def stretches(change: datetime, cuts: Sequence[datetime]) -> list[Extent]:
    """All time around a change, cut at any instants."""
    ends = sorted({change - timedelta(days=5), *cuts, change + timedelta(days=5)})
    return [Extent(milliseconds(lower), milliseconds(upper), ({},)) for lower, upper in pairwise(ends)]


WAYS = st.one_of(
    st.sampled_from(FORMS).map(
        lambda form: {"params": {"since": f"{{start:{form}}}", "until": f"{{end:{form}}}"}}
    ),
    st.just({"params": {"since": "{start}", "until": "{end}"}}),
    st.sampled_from(get_args(Format)).map(
        lambda form: {
            "watermark_param_mapping": {"at": "since"},
            "watermark_to_param": "until",
            "watermark_param_format": form,
        }
    ),
)


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(st.data(), changes(), WAYS, READERS, st.sampled_from(KINDS))
def test_stretches_that_touch_read_each_row_once_whatever_a_text_is_taken_for(
    data: Any, where: tuple[tzinfo, datetime], way: Any, read: Read, kind: ValueType
) -> None:
    zone, change = where
    rows = data.draw(st.lists(moments(change), min_size=1, max_size=8))
    source = api(**way, window_column="at", watermark_param_timezone=zone_name(zone))
    columns = ExtentColumns({"at": kind}, "at", {}, zone)
    found: Counter[int] = Counter()
    for extent in stretches(change, data.draw(st.lists(moments(change), max_size=8))):
        request, wanted = request_for(source, extent, zone, kind), extents_predicate([extent], columns)
        found.update(
            number
            for number, at in enumerate(rows)
            if list(answered(request.params, [at], read, zone))
            and matches(wanted, {"at": value(at, kind, zone)})
        )
    assert found == Counter(range(len(rows)))


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    changes(),
    st.sampled_from(get_args(Format)),
    st.sampled_from([None, *get_args(Exclusive)]),
    st.booleans(),
    READERS,
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_runs_above_a_column_read_each_row_once_whatever_instant_they_start_at(
    data: Any,
    where: tuple[tzinfo, datetime],
    form: Format,
    exclusive: Exclusive | None,
    excludes: bool,
    read: Read,
    kind: ValueType,
    both: bool,
) -> None:
    zone, change = where
    rows = data.draw(st.lists(moments(change), min_size=1, max_size=8, unique=True))
    runs = sorted(data.draw(st.lists(moments(change), max_size=8, unique=True)))
    source = api(
        watermark_param_mapping={"at": "since"},
        watermark_param_format=form,
        watermark_param_timezone=zone_name(zone),
        watermark_param_exclusive=exclusive,
        watermark_from_exclusive=excludes,
        **({"watermark_to_param": "until"} if both else {}),
    )
    definition = ColumnWatermark.model_validate(
        {"type": "column", "columns": ["at"], "timezone": zone_name(zone)}
    )
    step = source.bounds(zone).step

    def server(params: Any, at: datetime) -> bool:
        """An API whose ends lie as it says: inclusive above, exclusive below."""
        asked = {name: read(at, text, zone) for name, text in params.items()}
        row = {name: pair[0] for name, pair in asked.items()}
        if "since" in asked and not (
            row["since"] > asked["since"][1] if excludes else row["since"] >= asked["since"][1]
        ):
            return False
        if "until" not in asked:
            return True
        until = asked["until"][1]
        if exclusive is None:
            return bool(row["until"] < until)
        if form != "date" and exclusive != "1day":
            return bool(row["until"] < until + step)
        day = until.astimezone(zone) if until.tzinfo else until
        following = datetime.combine(day.date() + timedelta(days=1), time.min)
        if row["until"].tzinfo is not None:
            following = (latest_instant if read is second_pass else earliest_instant)(following, zone)
        return bool(row["until"] < following)

    state, found = ColumnState(), Counter[datetime]()
    for now in [*runs, change + timedelta(days=5)]:
        seen = SourceObservation(
            now, {"at": kind}, {}, highest_sendable=source.bounds(zone).floored if both else None
        )
        ranges = ranges_to_read(definition, state, seen, now)
        for slice_ in plan(definition, state, ranges, seen, now, dataflow="d", state_number=0).slices:
            written = set()
            for request, _ in requests_above(source, slice_.ranges, zone):
                for at in rows:
                    visible = at <= now and server(request.params, at)
                    if visible and matches(slice_.rows, {"at": value(at, kind, zone)}):
                        written.add(at)
            found.update(written)
            if both:
                state = ColumnState.of(slice_.advance(state.watermark()))
            elif written:
                highest = {"at": max(value(at, kind, zone) for at in written)}
                reached = ColumnState.of(next_state(state.watermark(), highest) or {})
                state = reached.cap_at(ColumnState.of(slice_.upper))
    assert found == Counter(rows)


GRAINS = ("hourly", "daily", "weekly", "monthly")
PLACES = ("%Y", "%Y-%m", "%Y-%m-%d", "%d", "%m/%d", "%Y-%m-%dT%H", "%H", "%Y-%m-%dT%H%z", "%Y/%m/%d/%H%M")


def windows(
    zone: tzinfo, change: datetime, grain: str, *, partial: bool = False, days: int = 3
) -> WindowWatermark:
    first = (change - timedelta(days=days)).astimezone(zone).date().isoformat()
    entry = {"name": "t", "type": "datetime", "range": {"from": first, "to": "-"}}
    return WindowWatermark.model_validate(
        {
            "type": "window",
            "definition": [entry],
            "window": grain,
            "timezone": zone_name(zone),
            "partial": partial,
        }
    )


TARGET = Target.model_validate({"load": "merge_overwrite", "replace_by_watermark": True})


@settings(max_examples=150, deadline=None)
@given(changes(), st.sampled_from(GRAINS), st.sampled_from(PLACES))
def test_each_folder_is_of_one_window(where: tuple[tzinfo, datetime], grain: str, form: str) -> None:
    zone, change = where
    watermark = windows(zone, change, grain, days=40)
    source = FilesSource.model_validate(
        {"type": "files", "path": f"./in/{{start:{form}}}", "format": "ndjson"}
    )
    template = source.folder_template
    all_windows = list(watermark.windows(change + timedelta(days=40)))
    refused = list(refusals(DataflowParts(source, watermark, TARGET)))
    read = Counter(
        place_name(template, start, end, zone, str)
        for start, end in all_windows
        if not belongs_to_later_window(template, start, end, watermark)
    )
    named = {place_name(template, start, end, zone, str) for start, end in all_windows}
    assert refused or read == Counter(named)
    if refused:
        assert refused[0].key == ("source", "path")
        assert not form.startswith("%Y-%m-%dT")


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    changes(),
    st.sampled_from(GRAINS),
    st.sampled_from((*FORMS, "%Y-%m", "%H", "%d", *get_args(Format))),
    READERS,
    st.booleans(),
    st.booleans(),
)
def test_an_api_without_times_is_asked_exactly_or_refused(
    data: Any, where: tuple[tzinfo, datetime], grain: str, form: str, read: Read, alone: bool, partial: bool
) -> None:
    zone, change = where
    watermark = windows(zone, change, grain, partial=partial, days=40)
    params = {"since": f"{{start:{form}}}"} | ({} if alone else {"until": f"{{end:{form}}}"})
    source = api(params=params)
    if form in get_args(Format):
        alone = False
        source = api(
            watermark_param_mapping={"at": "since"},
            watermark_to_param="until",
            watermark_param_format=form,
            watermark_param_timezone=zone_name(zone),
        )
    if list(refusals(DataflowParts(source, watermark, TARGET))):
        return
    now = data.draw(moments(change)) + timedelta(hours=36)
    all_windows = list(watermark.windows(now))
    rows = data.draw(st.lists(moments(change, 20), min_size=1, max_size=5, unique=True))
    within = [at for at in rows if all_windows and milliseconds(at) < all_windows[-1][1]]
    found: Counter[datetime] = Counter()
    near = [
        each
        for each in all_windows
        if any(each[0] <= milliseconds(at) + 2**28 and milliseconds(at) - 2**28 < each[1] for at in rows)
    ]
    for start, end in near:
        request = request_for(source, Extent(start, end, ({},)), zone)
        if alone:  # the server answers with all rows of the place that it is told
            text = request.params["since"]
            found.update(at for at in within if _starts(all_windows, at, zone, form) == text)
        else:
            found.update(answered(request.params, within, read, zone))
    assert found == Counter(within)


def _starts(all_windows: Sequence[tuple[int, int]], at: datetime, zone: tzinfo, form: str) -> str:
    """The text of the window that holds an instant."""
    start = max(start for start, _ in all_windows if start <= milliseconds(at))
    return as_datetime(start, zone).strftime(form)


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"params": {"a": "{start:%Y-%m-%dT%H:%M:%S}", "b": "{end:%Y-%m-%dT%H:%M:%S}"}}, "path", "%z"),
        ({"params": {"a": "{start:%Y-%m-%dT%H}"}}, "path", "{end} beside it"),
        ({"params": {"a": "{start:%Y-%m-%dT%H}"}, "window_column": "at"}, "path", "{end} beside it"),
        ({"params": {"a": "{start:%H}"}}, "path", "each field from the year"),
        (
            {
                "watermark_param_mapping": {"at": "a"},
                "watermark_to_param": "b",
                "watermark_param_format": "datetime",
                "watermark_param_timezone": "America/New_York",
            },
            "watermark_param_format",
            "iso, timestamp or timestamp_ms",
        ),
        ({"params": {"a": "{start}", "b": "{end}"}}, None, ""),
        ({"params": {"a": "{start:%Y-%m-%dT%H%z}", "b": "{end:%Y-%m-%dT%H%z}"}}, None, ""),
        (
            {"params": {"a": "{start:%Y-%m-%dT%H}", "b": "{end:%Y-%m-%dT%H}"}, "window_column": "at"},
            None,
            "",
        ),
    ],
)
def test_hours_without_offset_need_their_time(given: dict[str, Any], key: str | None, words: str) -> None:
    change = datetime(2026, 11, 1, 6, tzinfo=UTC)
    watermark = windows(zone_of("America/New_York"), change, "hourly")
    found = list(refusals(DataflowParts(api(**given), watermark, TARGET)))
    assert [each.key for each in found] == ([("source", key)] if key else [])
    assert all(words in each.expected for each in found)
    utc = windows(UTC, change, "hourly")
    needs = [each.key for each in refusals(DataflowParts(api(**given), utc, TARGET))]
    assert needs == (
        [("source", "path")]
        if "year" in words
        else [("source", "watermark_param_format")]
        if "iso" in words
        else []
    )


TWO_CENTURIES = "windows before 1970 or after 2068"


@pytest.mark.parametrize(
    ("given", "range_", "found"),
    [
        ({"a": "{start:%y%m%d}"}, ("1900-01-01", "-"), TWO_CENTURIES),
        ({"a": "{start:%y%m%d}"}, ("2000-01-01", "2100-01-01"), TWO_CENTURIES),
        ({"a": "{start:%y%m%d}"}, ("1990-01-01", "-"), None),
        ({"a": "{start:%y%m%d}"}, ("P30D", "-"), None),
        ({"a": "{start:%Y/%y%m%d}"}, ("1900-01-01", "-"), None),
        # A coarse end beside a fine one: rows below the fine one lie beyond it.
        ({"a": "{start}", "b": "{end}", "day": "{end:%Y-%m-%d}"}, ("2026-01-01", "-"), "true beside {end:%Y-%m-%d}"),
        ({"a": "{start}", "b": "{end}", "day": "{start:%Y-%m-%d}"}, ("2026-01-01", "-"), None),
        ({"a": "{start}", "day": "{end:%Y-%m-%d}", "hour": "{end:%H:%M}"}, ("2026-01-01", "-"), None),
        # A constant end that a form cannot say.
        ({"a": "{start}", "b": "{end:%Y-%m-%d}"}, ("2026-01-01", "2026-02-01T12:00:00"), "the end of the last window"),
        ({"a": "{start}", "b": "{end:%Y-%m-%d}"}, ("2026-01-01", "2026-02-01"), None),
    ],
)  # fmt: skip
def test_a_text_that_cannot_say_a_bound_is_refused_at_load(
    given: dict[str, str], range_: tuple[str, str], found: str | None
) -> None:
    entry = {"name": "t", "type": "datetime", "range": dict(zip(("from", "to"), range_, strict=True))}
    partial = "b" in given or "day" in given
    watermark = WindowWatermark.of({"definition": [entry], "window": "daily", "partial": partial})
    refused = [each.actual for each in refusals(DataflowParts(api(params=given), watermark, TARGET))]
    assert len(refused) == (found is not None)
    assert all(found in text for text in refused if found)


def test_hours_before_1970_are_repeated_too() -> None:
    entry = {"name": "t", "type": "datetime", "range": {"from": "1960-01-01", "to": "1961-01-01"}}
    watermark = WindowWatermark.of(
        {"definition": [entry], "window": "hourly", "timezone": "America/New_York"}
    )
    params = {"a": "{start:%Y-%m-%dT%H}", "b": "{end:%Y-%m-%dT%H}"}
    assert (
        "1960-10-30T01:00:00" in next(refusals(DataflowParts(api(params=params), watermark, TARGET))).actual
    )


def test_a_folder_of_a_day_that_occurs_twice_is_read_once() -> None:
    entry = {"name": "t", "type": "datetime", "range": {"from": "1969-09-29", "to": "1969-10-03"}}
    watermark = WindowWatermark.of(
        {"definition": [entry], "window": "hourly", "timezone": "Pacific/Kwajalein"}
    )
    template = FilesSource(type="files", path="./in/{start:%Y-%m-%dT%H}", format="csv").folder_template
    all_windows = list(watermark.windows(None))
    read = Counter(
        place_name(template, *window, watermark.zone, str)
        for window in all_windows
        if not belongs_to_later_window(template, *window, watermark)
    )
    assert len(read) < len(all_windows)
    assert set(read.values()) == {1}


def test_days_are_said_by_their_date_unless_a_midnight_occurs_twice() -> None:
    params = {"a": "{start:%Y-%m-%d}", "b": "{end:%Y-%m-%d}"}
    change = datetime(2026, 11, 1, 6, tzinfo=UTC)
    found = {
        name: [
            each.key
            for each in refusals(
                DataflowParts(api(params=params), windows(zone_of(name), change, "daily"), TARGET)
            )
        ]
        for name in ZONES
    }
    assert {name for name, keys in found.items() if keys} == {"America/Havana", "Atlantic/Azores"}
