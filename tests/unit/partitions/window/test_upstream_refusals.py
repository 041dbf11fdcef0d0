"""What windows with ``to: upstream`` can wait for; all else is refused, with what to use instead."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.window.upstream_refusals import input_refusal, shared_names, upstream_refusal

REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}
AIRPORTS = {"name": "airport", "type": "unit", "units": "EWR"}
HOUR = {"name": "h", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}
HOURS = {"type": "window", "window": "hourly", "definition": [HOUR, AIRPORTS]}
UNITS = {"type": "window", "definition": [AIRPORTS]}
COLUMN = {"type": "column", "columns": ["at"], "backward": {"days": 1}}
STREAM = {"type": "stream", "event_time": "at", "split": "device", "timeout": "PT5M"}


def maker(watermark: dict[str, Any] = HOURS, name: str = "flights", **more: Any) -> Dataflow:
    """The dataflow that loads ``bronze/flights``."""
    source: dict[str, Any] = {"type": "table", "table": "raw/flights"}
    if watermark["type"] == "window":
        source["unit_columns"] = {"airport": "origin"}
        if watermark is HOURS:
            source["window_column"] = "at"
    fields = {"source": source, "watermark": watermark, "target": REPLACED, **more}
    if watermark["type"] == "path":
        fields |= {"source": {"type": "files", "path": "landing", "format": "ndjson"}, "target": {"load": "append"}}  # fmt: skip
    if watermark["type"] in ("path", "stream"):
        fields["target"] = {"load": "append"}
    return Dataflow.model_validate({"name": name, **fields})


def reader(
    column: str | None = "at",
    source: dict[str, Any] | None = None,
    inputs: dict[str, str] | None = None,
    **watermark: Any,
) -> Dataflow:
    """The days of ``bronze/flights``."""
    days = {"name": "d", "type": "datetime", "range": {"from": "2026-01-01", "to": "upstream"}}
    table = {"type": "table", "table": "bronze/flights", **({"window_column": column} if column else {})}
    return Dataflow.model_validate(
        {
            "name": "daily",
            "layer": "gold",
            "source": source or table,
            "watermark": {"type": "window", "window": "daily", "definition": [days], **watermark},
            "target": REPLACED,
            **({"inputs": inputs, "sql": "SELECT * FROM input"} if inputs else {}),
        }
    )


FOLDER = {"type": "files", "path": "./in/{start:%Y-%m-%d}", "format": "ndjson"}


@pytest.mark.parametrize(
    ("days", "makers", "actual", "expected"),
    [
        (reader(source=FOLDER), [], "to: upstream beside ", "a source of type table"),
        (reader(), [], "over bronze/flights, which no dataflow of this project loads", "or to: -"),
        (reader(), [maker({"type": "path"})], "nothing tells up to which time flights (path watermark)", "to: -"),
        (reader(), [maker(STREAM)], "to: upstream over the stream flights", "to: watermark"),
        (reader(), [maker(UNITS)], "flights has no windows of time", "to: -"),
        (reader("other"), [maker()], "other", "at (flights is complete by this time)"),
        (
            reader(),
            [maker(target={"load": "merge_upsert", "merge_keys": ["id"]})],
            "flights loads by merge_upsert",
            "merge_upsert with at in merge_keys, in flights",
        ),
        (
            reader(),
            [maker(target=REPLACED | {"retention": {"column": "loaded_at", "keep": "P30D"}})],
            "whose retention by loaded_at deletes rows of any window",
            "a retention by at in flights",
        ),
        (reader(), [maker(), maker(COLUMN, "others")], "different kinds of watermarks", "of one kind"),
        (
            reader(),
            [maker(COLUMN | {"columns": ["at", "id"]})],
            "whose rows are new by any of at, id",
            "a watermark of one column",
        ),
        (
            reader(),
            [maker(COLUMN, target=REPLACED | {"retention": {"column": "loaded_at", "keep": "P30D"}})],
            "whose retention by loaded_at deletes rows of any window",
            "a retention by at in flights",
        ),
        (
            reader(),
            [maker(COLUMN, target={"load": "merge_upsert", "merge_keys": ["id"]})],
            "flights loads by merge_upsert",
            "or to: -",
        ),
        (reader("id"), [maker(COLUMN)], "id", "at (flights is complete by this time)"),
        (
            reader(incomplete="load"),
            [maker(COLUMN)],
            "another value than wait over bronze/flights, which is complete up to one time",
            "wait, or no such key",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_waited_for_is_refused(
    days: Dataflow, makers: list[Dataflow], actual: str, expected: str
) -> None:
    refusal = upstream_refusal(days, makers)
    assert refusal is not None
    assert actual in refusal.actual
    assert expected in refusal.expected


@pytest.mark.parametrize(
    ("days", "maker"),
    [
        (reader("AT"), maker()),
        (reader(), maker(target={"load": "append"})),
        (reader(), maker(target={"load": "merge_upsert", "merge_keys": ["id", "at"]})),
        (reader(), maker(COLUMN)),
        (reader(), maker(target=REPLACED | {"retention": {"column": "AT", "keep": "P30D"}})),
        (reader("_window_start"), maker(source={"type": "python", "function": "rows:hours"})),
    ],
)
def test_windows_and_one_column_can_be_waited_for(days: Dataflow, maker: Dataflow) -> None:
    assert upstream_refusal(days, [maker]) is None


def test_units_are_the_same_if_they_are_in_the_same_column() -> None:
    table = {"type": "table", "table": "bronze/flights", "window_column": "at"}
    units = {"unit_columns": {"station": "Origin", "carrier": "carrier"}}
    fields = [{"name": "d", "type": "datetime", "range": {"from": "2026-01-01", "to": "upstream"}}]
    unit = {"name": "u", "type": "unit", "units": [{"station": "EWR", "carrier": "UA"}]}
    days = reader(source={**table, **units}, definition=[*fields, unit])
    assert shared_names(days, maker()) == {"station": "airport"}


INPUT = {"weather": "bronze/weather"}


@pytest.mark.parametrize(
    ("column", "makers", "actual", "expected"),
    [
        ("at", [], "bronze/weather, which no dataflow with a window watermark loads", "without wait_for"),
        ("at", [maker(COLUMN)], "bronze/weather, which no dataflow with a window", "without wait_for"),
        ("other", [maker()], "other", "at (flights is complete by this time)"),
        ("at", [maker(UNITS)], "flights has no windows of time", "to: -"),
    ],
)
def test_an_input_that_cannot_be_waited_for_is_refused(
    column: str, makers: list[Dataflow], actual: str, expected: str
) -> None:
    refusal = input_refusal(reader(wait_for={"weather": column}, inputs=INPUT), "weather", makers)
    assert refusal is not None
    assert refusal.key == ("watermark", "wait_for", "weather")
    assert actual in refusal.actual
    assert expected in refusal.expected


def test_an_input_of_windows_can_be_waited_for_but_not_beside_a_column() -> None:
    days = reader(wait_for={"weather": "AT"}, inputs=INPUT)
    assert input_refusal(days, "weather", [maker()]) is None
    refusal = upstream_refusal(days, [maker(COLUMN)])
    assert refusal is not None
    assert refusal.key == ("watermark", "wait_for")


def test_a_name_that_is_no_input_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the name of an input, of weather, found wether"):
        reader(wait_for={"wether": "at"}, inputs=INPUT)
