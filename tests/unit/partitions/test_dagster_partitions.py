"""Windows and units as Dagster's partitions; whatever Dagster resolves is resolved by Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    MonthlyPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionKeyRange,
    PartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)
from dagster._core.definitions.partitions.context import partition_loading_context
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.dagster_partitions import END_TAG, NEW_KEYS, START_TAG, PartitionRange, WindowPartitions
from partitions.errors import ConfigurationError
from partitions.instants import DAY, milliseconds
from partitions.request import Due, Forced, WorkUnitSelection
from partitions.window.listed_units import SelectedUnits
from partitions.window.partition_ranges import RequestedRange
from partitions.window.partition_request import request_of_keys
from partitions.window.plan import plan
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT, distinct_identities
from partitions.window.work_unit import WorkUnit
from tests.support.windows import windowed

NOW = datetime(2020, 1, 8, 12, tzinfo=UTC)
FROM = milliseconds(datetime(2020, 1, 1, tzinfo=UTC))
SURVEYS = [{"table": "silver/surveys", "fields": ["id"]}]


@pytest.fixture(scope="module")
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def flow(*args: Any, **more: Any) -> WindowPartitions:
    return WindowPartitions.of("flow", windowed(*args, **more))


def identities(partitions: WindowPartitions) -> list[str]:
    return list(distinct_identities(partitions.watermark.units or ()))


def work(start: int | None, unit: str = NO_UNIT) -> WorkUnit:
    return WorkUnit(start, None if start is None else start + DAY, unit, start, "new")


def day(number: int) -> int:
    return FROM + number * DAY


def resolve(
    definition: PartitionsDefinition[Any], asked: PartitionRange, instance: DagsterInstance
) -> list[str]:
    """The partitions that Dagster makes of a range."""
    assert asked.start is not None
    assert asked.end is not None
    with partition_loading_context(effective_dt=NOW, dynamic_partitions_store=instance):
        return list(definition.get_partition_keys_in_range(PartitionKeyRange(asked.start, asked.end)))


def known(instance: DagsterInstance, name: str | None, keys: Sequence[str]) -> Sequence[str]:
    """Add dynamic keys; what Dagster knows then."""
    if name is None:
        return []
    instance.add_dynamic_partitions(name, keys)
    return instance.get_dynamic_partitions(name)


class TestDefinition:
    @pytest.mark.parametrize(
        ("partitions", "shown"),
        [
            (flow(), None),
            (flow("2020-01-01", window="none"), None),
            (flow("2020-01-01", window="none", units=["a"]), ["unit"]),
            (flow(units=["a", "b"]), ["unit"]),
            (flow("2020-01-01"), ["window"]),
            (flow("2020-01-01", units=["a"]), ["unit", "window"]),
            (flow("2020-01-01", units=range(100)), ["unit", "window"]),
            (flow("2020-01-01", units=range(101)), ["window"]),
            (flow("2020-01-01", units=range(101), dagster_units="partitions"), ["unit", "window"]),
            (flow("2020-01-01", units=["a"], dagster_units="ledger"), ["window"]),
            (flow(units=["a"], dagster_units="ledger"), None),
            (flow("2020-01-01", secondary_input=SURVEYS), ["window"]),
            (flow("2020-01-01", secondary_input=SURVEYS, dagster_units="partitions"), ["unit", "window"]),
            (flow(secondary_input=SURVEYS, dagster_units="partitions"), ["unit"]),
            (flow(secondary_input=SURVEYS, dagster_units={"buckets": 4}), ["unit"]),
            (flow("2020-01-01", secondary_input=SURVEYS, dagster_units={"buckets": 4}), ["unit", "window"]),
            (flow("2020-01-01", units=["a"], dagster_units={"buckets": 4}), ["unit", "window"]),
        ],
    )
    def test_more_than_one_key_is_a_dimension_that_dagster_bears(
        self, partitions: WindowPartitions, shown: list[str] | None
    ) -> None:
        definition = partitions.definition
        if isinstance(definition, MultiPartitionsDefinition):
            assert definition.partition_dimension_names == shown
        elif isinstance(definition, TimeWindowPartitionsDefinition):
            assert shown == ["window"]
        else:
            assert shown == (None if definition is None else ["unit"])

    @pytest.mark.parametrize(
        ("partitions", "written"),
        [
            (
                flow("2026-01-04", "2026-01-11"),
                DailyPartitionsDefinition("2026-01-04", end_date="2026-01-11", end_offset=1),
            ),
            (
                flow("2026-01-04", timezone="Europe/Berlin"),
                DailyPartitionsDefinition("2026-01-04", timezone="Europe/Berlin", end_offset=1),
            ),
            (flow("2026-01-04", partial=False), DailyPartitionsDefinition("2026-01-04")),
            (
                flow("2026-01-01", window="monthly"),
                MonthlyPartitionsDefinition("2026-01-01", end_offset=1),
            ),
        ],
    )
    def test_a_definition_of_the_user_s_with_the_offset_is_equal(
        self, partitions: WindowPartitions, written: PartitionsDefinition[Any]
    ) -> None:
        assert partitions.definition == written

    def test_listed_units_are_fixed_keys_and_secondary_ones_dynamic(self) -> None:
        assert flow(units=["b", "a", 1]).definition == StaticPartitionsDefinition(["b", "a", '{"id":1}'])
        dynamic = flow(secondary_input=SURVEYS, dagster_units="partitions")
        assert dynamic.definition == DynamicPartitionsDefinition(name="flow_units")

    def test_buckets_have_fixed_keys_that_sort_by_number_however_many_units_there_are(self) -> None:
        few = flow(secondary_input=SURVEYS, dagster_units={"buckets": 2})
        assert few.definition == StaticPartitionsDefinition(["bucket-0", "bucket-1"])
        many = flow(units=range(20_000), dagster_units={"buckets": 1000})
        assert (len(many.unit_keys), *many.unit_keys[:2]) == (1000, "bucket-000", "bucket-001")
        assert list(many.unit_keys) == sorted(many.unit_keys)
        assert {many.unit_key(one) for one in identities(many)} == set(many.unit_keys)

    def test_a_unit_stays_in_its_bucket(self) -> None:
        """Dagster's history names these keys: another hash would move all units."""
        found = flow(secondary_input=SURVEYS, dagster_units={"buckets": 16})
        assert [found.unit_key(f'{{"id":"id{number}"}}') for number in range(1, 5)] == [
            "bucket-05",
            "bucket-12",
            "bucket-11",
            "bucket-14",
        ]

    @pytest.mark.parametrize("count", [0, 10_001, "4"])
    def test_a_number_of_buckets_that_dagster_does_not_bear_is_refused(self, count: object) -> None:
        with pytest.raises(ConfigurationError, match=r"dagster_units.*buckets"):
            windowed(units=["a"], dagster_units={"buckets": count})

    def test_more_listed_units_than_dagster_bears_are_refused_as_partitions(self) -> None:
        with pytest.raises(
            ConfigurationError,
            match=r"at most 10,000 units .* found 10,001\. Set dagster_units: \{buckets: 64\}",
        ):
            windowed(units=range(10_001), dagster_units="partitions")
        assert windowed(units=range(10_001)).dagster_units == "auto"

    def test_units_that_are_not_there_cannot_be_partitions(self) -> None:
        for shown in ("partitions", {"buckets": 4}):
            with pytest.raises(
                ConfigurationError, match="expected a unit entry or a secondary_input to show, found none"
            ):
                windowed("2020-01-01", dagster_units=shown)


def _of_spelling(request: Any) -> Any:
    """A request with its units as they were asked for, without the list that tells their spellings."""
    assert isinstance(request.of.units, SelectedUnits)
    return replace(request, of=replace(request.of, units=request.of.units.selected))


class TestRequest:
    @pytest.mark.parametrize("forced", [True, False])
    def test_keys_in_any_order_are_stretches_of_time_and_units(self, forced: bool) -> None:
        partitions = flow("2020-01-01", units=["a", "b", "c"])
        keys = [
            "c|2020-01-03",
            "a|2020-01-02",
            "a|2020-01-05",
            "c|2020-01-05",
            "c|2020-01-02",
            "a|2020-01-03",
        ]
        request = request_of_keys(partitions, keys, partitions.watermark.windows(NOW), forced=forced)
        units = frozenset({'{"id":"a"}', '{"id":"c"}'})
        assert _of_spelling(request) == (Forced if forced else Due)(
            WorkUnitSelection(((day(1), day(3)), (day(4), day(5))), units)
        )

    def test_where_the_ledger_alone_sees_units_a_window_means_all_of_them(self) -> None:
        partitions = flow("2020-01-01", units=["a"], dagster_units="ledger")
        request = request_of_keys(partitions, ["2020-01-02"], partitions.watermark.windows(NOW), forced=True)
        assert request == Forced(WorkUnitSelection(((day(1), day(2)),), None))

    def test_buckets_mean_the_units_in_them_whichever_these_are(self) -> None:
        units = [f'{{"id":{number}}}' for number in range(50)]
        partitions = flow(secondary_input=SURVEYS, dagster_units={"buckets": 4})
        request = request_of_keys(partitions, ["bucket-2", "bucket-0"], None, forced=True)
        made = plan(
            partitions.watermark, WindowState(), units, NOW, dataflow="flow", state_number=0, request=request
        )
        asked = [one for one in units if partitions.unit_key(one) in ("bucket-0", "bucket-2")]
        assert 0 < len(asked) < len(units)
        assert [one.unit for piece in made.slices for one in piece.works] == asked
        with pytest.raises(ConfigurationError, match=r"one of 4 buckets \(bucket-0, .*found the bucket 'x'"):
            request_of_keys(partitions, ["x"], None, forced=True)

    def test_without_time_keys_are_units_and_without_both_everything(self) -> None:
        request = request_of_keys(flow(units=["a", "b"]), ["b"], None, forced=True)
        assert _of_spelling(request) == Forced(WorkUnitSelection(None, frozenset({'{"id":"b"}'})))
        assert request_of_keys(flow(), [], None, forced=False) == Due(WorkUnitSelection())

    def test_the_window_that_holds_now_ends_at_now(self) -> None:
        partitions = flow("2020-01-01")
        request = request_of_keys(partitions, ["2020-01-08"], partitions.watermark.windows(NOW), forced=True)
        assert request.of == WorkUnitSelection(((day(7), milliseconds(NOW)),))

    @pytest.mark.parametrize(
        ("partial", "key"),
        [(True, "2020-01-09"), (False, "2020-01-08"), (True, "2019-12-31"), (True, "2020-02-01")],
    )
    def test_a_key_of_no_window_names_those_there_are(self, partial: bool, key: str) -> None:
        partitions = flow("2020-01-01", partial=partial)
        last = (
            "8 windows from 2020-01-01 to 2020-01-08"
            if partial
            else "7 windows from 2020-01-01 to 2020-01-07"
        )
        with pytest.raises(
            ConfigurationError, match=f"dataflow flow: expected one of {last}.*found the partition {key}"
        ):
            request_of_keys(partitions, ["2020-01-02", key], partitions.watermark.windows(NOW), forced=True)

    def test_where_no_window_is_there_yet_the_error_says_so(self) -> None:
        partitions = flow("2030-01-01")
        with pytest.raises(ConfigurationError, match="expected a window, but no window exists yet"):
            request_of_keys(partitions, ["2030-01-01"], partitions.watermark.windows(NOW), forced=True)

    @pytest.mark.parametrize(
        ("keys", "why"),
        [
            ([], "found none"),
            (["a|2020-01-01", "b|2020-01-02"], "expected every combination of some windows and some units"),
            (["2020-01-01"], "a partition such as unit"),
            (["a|2020-01-01|x"], "a partition such as unit"),
            (["z|2020-01-01"], r"expected one of 2 units \(a, b, …\), found the unit 'z'"),
            (["a|x"], "expected the start of a window, such as 2020-01-01, found the key 'x'"),
        ],
    )
    def test_no_key_or_odd_keys_are_refused(self, keys: list[str], why: str) -> None:
        partitions = flow("2020-01-01", units=["a", "b"])
        with pytest.raises(ConfigurationError, match=why):
            request_of_keys(partitions, keys, partitions.watermark.windows(NOW), forced=True)

    def test_what_is_planned_for_a_selection_is_what_its_keys_name(self) -> None:
        partitions = flow("2020-01-01", units=["a", "b"])
        keys = ["a|2020-01-02", "a|2020-01-03"]
        request = request_of_keys(partitions, keys, partitions.watermark.windows(NOW), forced=True)
        made = plan(
            partitions.watermark,
            WindowState(),
            identities(partitions),
            NOW,
            dataflow="flow",
            state_number=0,
            request=request,
        )
        works = [one for piece in made.slices for one in piece.works]
        assert [partitions.key(one.start, one.unit) for one in works] == keys


class TestMissingKeys:
    def test_the_oldest_windows_come_first_and_at_most_so_many_a_tick(self) -> None:
        partitions = flow("2020-01-01T00:00:01", window="hourly")
        windows = partitions.watermark.windows(datetime(2020, 2, 1, tzinfo=UTC))
        (request,) = partitions.missing_keys([], [], windows, [])
        assert (request.partitions_def_name, len(request.partition_keys)) == ("flow_windows", NEW_KEYS)
        assert request.partition_keys[:2] == ["2020-01-01T00:00:01+00:00", "2020-01-01T01:00:01+00:00"]
        (rest,) = partitions.missing_keys(request.partition_keys, [], windows, [])
        assert [*request.partition_keys, *rest.partition_keys] == [
            partitions.window_key(one) for one in windows.starts
        ]
        assert partitions.missing_keys([*request.partition_keys, *rest.partition_keys], [], windows, []) == []

    def test_units_keep_their_order_and_neither_dimension_starves_the_other(self) -> None:
        partitions = flow("P900D", window="daily", secondary_input=SURVEYS, dagster_units="partitions")
        units = distinct_identities({"id": f"u{number}"} for number in range(900))
        of_units, of_windows = partitions.missing_keys([], [], partitions.watermark.windows(NOW), units)
        assert (of_units.partitions_def_name, of_units.partition_keys[:2]) == ("flow_units", ["u0", "u1"])
        assert (len(of_units.partition_keys), len(of_windows.partition_keys)) == (250, 250)

    def test_windows_of_cron_and_listed_units_need_no_keys(self) -> None:
        partitions = flow("2020-01-01", units=["a"])
        assert (
            partitions.missing_keys([], [], partitions.watermark.windows(NOW), identities(partitions)) == []
        )

    def test_more_units_than_dagster_bears_are_refused(self) -> None:
        partitions = flow(secondary_input=SURVEYS, dagster_units="partitions")
        with pytest.raises(
            ConfigurationError, match=r"at most 10,000 units .* found 10,001\. Set dagster_units: .buckets"
        ):
            partitions.missing_keys(
                [], [], None, distinct_identities({"id": number} for number in range(10_001))
            )


_SOME = flow("2020-01-01", units=["a", "b|c", 1, "d"])
_ROLLING = flow("P6D", units=["a"], dagster_units="ledger")
_NAMED = flow(secondary_input=SURVEYS, dagster_units="partitions")
_BOTH = flow("P6D", secondary_input=SURVEYS, dagster_units="partitions")
_BUCKETS = flow("2020-01-01", secondary_input=SURVEYS, dagster_units={"buckets": 3})
_NUMBERS = count()
_UNITS = distinct_identities([{"id": "a"}, {"id": "b|c"}, {"id": 1}, {"id": "d"}])


class TestRanges:
    @pytest.mark.parametrize(
        "partitions",
        [_SOME, _ROLLING, _NAMED, _BOTH, _BUCKETS, flow("2020-01-01"), flow(units=["a", "b", "c"])],
    )
    @settings(max_examples=30, deadline=None)
    @given(data=st.data())
    def test_dagster_makes_of_all_ranges_together_exactly_the_due_work_units_each_once(
        self, partitions: WindowPartitions, instance: DagsterInstance, data: st.DataObject
    ) -> None:
        partitions = replace(partitions, name=f"flow{next(_NUMBERS)}")
        windows = partitions.watermark.windows(NOW) if partitions.watermark.time_entry else None
        units: Sequence[str] = _UNITS if partitions.units else (NO_UNIT,)
        units = identities(partitions) if partitions.units == "static" else units
        starts: Sequence[int | None] = windows.starts if windows else [None]
        every = [work(start, unit) for start in starts for unit in units]
        due = data.draw(st.lists(st.sampled_from(every), unique=True))
        order_w = data.draw(
            st.permutations([partitions.window_key(one) for one in starts if one is not None])
        )
        order_u = data.draw(st.permutations([partitions.unit_key(one) for one in units if one != NO_UNIT]))
        known_windows = known(instance, partitions.windows_name, ["2019-12-01T00:00:00+00:00", *order_w])
        known_units = known(instance, partitions.units_name, order_u)
        ranges = partitions.ranges(due, windows, known_windows=known_windows, known_units=known_units)
        assert partitions.definition is not None
        found = [resolve(partitions.definition, one.partitions, instance) for one in ranges]
        assert all(found)
        assert sum(one.works for one in ranges) == len(due)
        keys = {partitions.key(one.start, one.unit) or "" for one in due}
        assert partitions.units == "buckets" or len(keys) == len(due)
        assert sorted(key for of_range in found for key in of_range) == sorted(keys)

    def test_a_whole_backlog_is_one_range_of_both_dimensions(self, instance: DagsterInstance) -> None:
        windows = _SOME.watermark.windows(NOW)
        due = [work(start, unit) for start in windows.starts for unit in _UNITS]
        ((one, works, units),) = _SOME.ranges(due, windows)
        assert (works, units) == (32, "a to d")
        assert one.tags == {START_TAG: "a|2020-01-01", END_TAG: "d|2020-01-08"}
        assert one.partition_key is None
        assert _SOME.definition is not None
        assert len(resolve(_SOME.definition, one, instance)) == 32

    def test_a_backlog_that_is_too_large_for_a_run_is_several_ranges_the_oldest_first(self) -> None:
        due = [work(day(number), unit) for number in range(8) for unit in _UNITS]
        assert _SOME.ranges(due, _SOME.watermark.windows(NOW), max_partitions=15) == [
            (PartitionRange("a|2020-01-01", "d|2020-01-03"), 12, "a to d"),
            (PartitionRange("a|2020-01-04", "d|2020-01-06"), 12, "a to d"),
            (PartitionRange("a|2020-01-07", "d|2020-01-08"), 8, "a to d"),
        ]

    def test_one_partition_is_asked_for_by_its_key(self) -> None:
        ((one, _, units),) = _SOME.ranges([work(day(2), _UNITS[1])], _SOME.watermark.windows(NOW))
        assert units == "b|c"
        assert (one.partition_key, one.tags) == ("b%7Cc|2020-01-03", {})

    def test_where_the_ledger_alone_sees_units_a_window_is_asked_for_once(self) -> None:
        partitions = flow("2020-01-01", units=["a", "b"], dagster_units="ledger")
        due = [work(day(number), unit) for number in (0, 1) for unit in identities(partitions)]
        (one,) = partitions.ranges(due, partitions.watermark.windows(NOW))
        assert one == (PartitionRange("2020-01-01", "2020-01-02"), 4, "")

    def test_neighbours_of_dynamic_keys_are_those_in_the_order_in_which_they_were_added(self) -> None:
        windows = _ROLLING.watermark.windows(NOW)
        keys = [_ROLLING.window_key(start) for start in windows.starts[:3]]
        due = [work(start) for start in windows.starts[:3]]
        assert _ROLLING.ranges(due, windows, known_windows=keys) == [
            (PartitionRange(keys[0], keys[2]), 3, "")
        ]
        assert _ROLLING.ranges(due, windows, known_windows=[keys[2], keys[0], keys[1]]) == [
            (PartitionRange(keys[2], keys[1]), 3, "")
        ]
        assert _ROLLING.ranges(due, windows, known_windows=[keys[0], "stale", keys[1]]) == [
            (PartitionRange(keys[0], keys[0]), 1, ""),
            (PartitionRange(keys[1], keys[1]), 1, ""),
        ]

    def test_without_partitions_what_is_due_is_one_run_without_a_key(self) -> None:
        assert flow().ranges([work(None)], None) == [(PartitionRange(None, None), 1, "")]
        assert (PartitionRange(None, None).tags, PartitionRange(None, None).partition_key) == ({}, None)
        assert flow().ranges([], None) == []


@pytest.mark.parametrize(
    ("units", "works", "of", "text"),
    [
        ("EWR", 356, 1068, "EWR, 356 of 1,068 work units"),
        ("EWR to LGA", 500, 1068, "EWR to LGA, 500 of 1,068 work units"),
        ("", 1068, 1068, "1,068 work units"),
        ("EWR", 1, 1, "EWR, 1 work unit"),
    ],
)
def test_a_run_says_whose_work_units_it_loads_and_of_how_many(
    units: str, works: int, of: int, text: str
) -> None:
    assert RequestedRange(PartitionRange("a", "b"), works, units).in_words(of) == text


class TestMaterialisation:
    def test_the_event_of_a_partition_has_the_tags_of_both_dimensions(self) -> None:
        event = _SOME.materialisation(AssetKey(["bronze", "flow"]), "b%7Cc|2020-01-02", {"rows": 3})
        assert event.partition == MultiPartitionKey({"unit": "b%7Cc", "window": "2020-01-02"})
        assert event.tags == {"dagster/partition/unit": "b%7Cc", "dagster/partition/window": "2020-01-02"}
        assert event.metadata["rows"].value == 3

    def test_the_event_of_one_dimension_has_its_key_and_that_of_none_has_none(self) -> None:
        assert flow("2020-01-01").materialisation(AssetKey("a"), "2020-01-02") == AssetMaterialization(
            "a", partition="2020-01-02"
        )
        assert flow().materialisation(AssetKey("a"), None) == AssetMaterialization("a")


def test_dynamic_partitions_of_projects_that_share_an_instance_have_names_of_their_own() -> None:
    north, south = (
        WindowPartitions.of("flow", windowed("P7D"), f"{name}__flow") for name in ("north", "south")
    )
    assert (north.windows_name, south.windows_name) == ("north__flow_windows", "south__flow_windows")
    assert flow("P7D").windows_name == "flow_windows"
