"""Rows of a user's function: bounds reach it, its rows go through the loop, and whatever goes wrong leaves nothing half committed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.columns import BY_TIME, Columns, at
from tests.support.crash_runner import crash
from tests.support.feed import Feed, answer_of

SCHEMA = "id long, at timestamp, value long"
DAYS = {"name": "t", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-04"}}
WINDOWS = {"type": "window", "definition": [DAYS], "window": "daily"}
REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}
ROWS = """
    import json
    from datetime import datetime, timezone
    from pathlib import Path

    HERE = Path(__file__).parent

    def given():
        for line in (HERE / "rows.jsonl").read_text().splitlines():
            row = json.loads(line)
            yield {**row, "at": datetime.fromisoformat(row["at"])}

    def asked(request):
        with (HERE / "calls.txt").open("a") as calls:
            calls.write(request.words + chr(10))
"""
YIELDS_ALL = """
    def rows(request):
        asked(request)
        yield from given()
"""


class Code:
    """A module of the user beside a file with the rows that it yields."""

    def __init__(self, feed: Feed, name: str) -> None:
        self.feed, self.file = feed, feed.folder / f"{name}.py"

    def write(self, text: str) -> None:
        """The functions; ``given()`` has all rows, ``asked(request)`` notes a call."""
        self.file.write_text(dedent(ROWS) + dedent(text))

    def renamed(self) -> None:
        """Give the module a name that no process has imported yet."""
        self.file = self.file.rename(self.file.with_name(f"code_{uuid4().hex[:8]}.py"))
        self.feed.define(source={"function": f"{self.file.stem}:rows"})

    def put(self, *rows: dict[str, Any]) -> None:
        """Rows come."""
        with (self.feed.folder / "rows.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    @property
    def calls(self) -> list[str]:
        """What was asked for since the last look."""
        file = self.feed.folder / "calls.txt"
        found = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return found


def row(number: int, day: int) -> dict[str, Any]:
    return {"id": number, "at": f"2026-01-{day:02d}T12:00:00+00:00", "value": number}


def make(
    folder: Path,
    engine: SparkEngine,
    text: str = YIELDS_ALL,
    source: dict[str, Any] | None = None,
    **definition: Any,
) -> tuple[Columns, Code]:
    """A dataflow of a function named ``rows``, in a module of its own."""
    name = f"code_{uuid4().hex[:8]}"
    given = {"type": "python", "function": f"{name}:rows", "schema": SCHEMA, **(source or {})}
    given = {key: value for key, value in given.items() if value is not None}
    settings = definition.pop("settings", {})
    environment = definition.pop("environment", {})
    feed = Feed(folder, engine, {"watermark": BY_TIME, **definition, "source": given}, settings, environment)
    code = Code(feed, name)
    code.write(text)
    (folder / "rows.jsonl").touch()
    return Columns(feed), code


def test_a_run_reads_above_the_value_and_calls_once(tmp_path: Path, engine: SparkEngine) -> None:
    """The function ignores its bounds: its rows are filtered by the same predicate."""
    flow, code = make(tmp_path, engine)
    assert (flow.run().status, code.calls) == ("nothing", ["at <= 2026-06-01 00:00:00+00:00"])
    code.put(row(1, 1), row(2, 2))
    assert (flow.run().rows, len(code.calls)) == (2, 1)
    assert (flow.run().status, flow.watermark) == ("nothing", {"at": at(2)})
    assert code.calls == ["at > 2026-01-02 12:00:00+00:00 and at <= 2026-06-01 00:00:00+00:00"]
    code.put(row(3, 3))
    assert (flow.run().rows, len(code.calls)) == (1, 1)
    assert (flow.ids, flow.watermark) == ([1, 2, 3], {"at": at(3)})


def test_rows_within_settle_wait_and_look_backs_read_again(tmp_path: Path, engine: SparkEngine) -> None:
    back = BY_TIME | {"settle": "P1D", "backward": {"days": 1}}
    flow, code = make(tmp_path, engine, watermark=back, target=REPLACED)
    code.put(row(1, 1), row(2, 2), row(3, 3))
    flow.run("2026-01-03T18:00")
    assert flow.ids == [1, 2]
    code.put(row(4, 2))
    flow.run("2026-01-03T19:00")
    assert flow.ids == [1, 2, 4]
    assert code.calls[-1] == "at > 2026-01-01 12:00:00+00:00 and at <= 2026-01-02 19:00:00+00:00"


@pytest.mark.parametrize("has_highest", [False, True])
def test_a_number_is_bounded_before_the_read(tmp_path: Path, engine: SparkEngine, has_highest: bool) -> None:
    """A row that comes between the look of ``highest`` and the read is the next run's, and none is lost."""
    text = """
        def rows(request):
            asked(request)
            yield from given()
            if request.upper is not None:
                yield {"id": request.upper + 1, "at": datetime(2026, 1, 9, tzinfo=timezone.utc), "value": 0}

        def highest(request, column):
            return max((row[column] for row in given()), default=None)
    """
    flow, code = make(tmp_path, engine, text, watermark={"type": "column", "columns": ["id"]})
    if has_highest:
        name = flow.feed.definition["source"]["function"].replace(":rows", ":highest")
        flow.feed.define(source={"highest": name})
    code.put(row(1, 1), row(3, 2))
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 3], {"id": 3})
    assert code.calls == ["id <= 3" if has_highest else "without bounds"]
    assert flow.run().status == "nothing"
    code.put(row(4, 1))
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 3, 4], {"id": 4})


def test_plan_calls_to_the_first_row_and_list_not_at_all(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            asked(request)
            yield list(given())
            raise AssertionError("a look has no use for more")
    """
    flow, code = make(tmp_path, engine, text)
    code.put(row(1, 1))
    (listed,) = flow.feed.cli("list").json
    assert (code.calls, listed["waiting"]["new_rows"]) == ([], None)
    assert listed["waiting"]["why"].startswith("only a run reads function code_")
    (planned,) = flow.feed.cli("--now", "2026-06-01", "plan", "flow").json
    assert (planned["due"], code.calls) == (True, ["at <= 2026-06-01 00:00:00+00:00"])


@pytest.mark.full
def test_a_bound_in_the_intent_keeps_recovery_to_its_rows(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = make(tmp_path, engine, watermark={"type": "column", "columns": ["id"]})
    code.put(row(1, 1), row(2, 2))
    crash(flow.feed, Step.INTENT_PUT)
    code.put(row(3, 3))
    outcome = flow.run()
    assert (outcome.status, [committed.rows for committed in outcome.committed]) == ("recovered", [2, 1])
    assert (flow.ids, flow.watermark) == ([1, 2, 3], {"id": 3})
    assert code.calls[-2:] == ["id <= 2", "id > 2"]


def test_rows_without_a_value_are_read_by_the_first_run_only(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            yield from given()
            yield {"id": 100, "value": 0}
    """
    flow, code = make(tmp_path, engine, text)
    for number in (1, 2):
        code.put(row(number, number))
        flow.run()
    assert flow.ids == [1, 2, 100]


def test_the_first_rows_tell_the_schema_and_pin_it(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = make(tmp_path, engine, source={"schema": None})
    code.put(row(1, 1))
    flow.run()
    assert code.calls == ["without bounds", "at <= 2026-06-01 00:00:00+00:00"]
    code.put(row(2, 2) | {"value": "two"})
    error = flow.fail()
    assert error.code == "incompatible_schema"
    assert "column value: expected values of type bigint, found others" in error.message
    assert (flow.ids, flow.feed.open_intent) == ([1], None)


@pytest.mark.parametrize(
    ("yielded", "code", "said"),
    [
        ("yield 7", "function_yield", "expected Arrow tables or record batches, frames of pandas or Polars, dict rows or lists of them, found int"),
        ("return None", "function_yield", "found None"),
        ("yield [1, 2]", "function_yield", "expected a list of dict rows, found int in it"),
        ("yield {'id': 1, 'at': NOW, 'value': 1, 'more': 2}", "unknown_field", "found also more"),
        ("yield pa.table({'id': [1]})", "missing_column", "expected the columns at, found no at"),
        ("yield {'id': 'one', 'at': NOW, 'value': 1}", "incompatible_schema", "column id: expected values of type bigint"),
        ("yield {'id': 1.5, 'at': NOW, 'value': 1}", "incompatible_schema", "column id: expected values of type bigint"),
        ("yield {'id': True, 'at': NOW, 'value': 1}", "incompatible_schema", "column id: expected values of type bigint"),
        ("raise ValueError('bad day')", "function_failed", "ValueError: bad day ({file}:"),
        ("yield {'id': 1, 'at': NOW, 'value': 1}; raise KeyError('x')", "function_failed", "KeyError: 'x' ({file}:"),
    ],
)  # fmt: skip
def test_a_wrong_function_is_named_with_its_bounds_and_nothing_is_committed(
    tmp_path: Path, engine: SparkEngine, yielded: str, code: str, said: str
) -> None:
    text = f"""
        import pyarrow as pa
        NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)

        def rows(request):
            {yielded}
    """
    flow, written = make(tmp_path, engine, text)
    error = flow.fail()
    assert (error.code, error.transient) == (code, False)
    name = flow.feed.definition["source"]["function"]
    assert error.message.startswith(
        f"dataflow flow: function {name}, called for at <= 2026-06-01 00:00:00+00:00: "
    )
    assert said.format(file=written.file) in error.message
    assert (flow.feed.entries, flow.feed.open_intent, flow.feed.table.exists()) == ([], None, False)
    written.write(YIELDS_ALL)
    written.put(row(1, 1))
    written.renamed()
    flow.run()
    assert flow.ids == [1]


def test_a_broken_connection_is_retried_and_all_is_read(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            yield list(given())[:1]
            if (HERE / "broken").exists():
                raise ConnectionError("reset by peer")
            yield list(given())[1:]
    """
    flow, code = make(tmp_path, engine, text)
    code.put(row(1, 1), row(2, 2))
    (tmp_path / "broken").touch()
    error = flow.fail()
    assert (error.code, error.transient, flow.feed.entries) == ("function_failed", True, [])
    (tmp_path / "broken").unlink()
    flow.run()
    assert flow.ids == [1, 2]
    assert list((tmp_path / "lake/_staging").rglob("*.parquet")) == []


def test_what_functions_print_is_not_in_the_document(tmp_path: Path, engine: SparkEngine) -> None:
    yields = """
    import os

    print("from the module")

    def rows(request):
        print("from the function")
        os.system("echo from a command")
        row = {}
        for number in range(3):
            row["id"] = number
            yield row
    """
    by_id = {"type": "column", "columns": ["id"]}
    flow, _ = make(tmp_path, engine, yields, {"schema": "id long"}, watermark=by_id)
    answer = answer_of(flow.feed.start("run", "flow"))
    assert (answer.code, answer.json[0]["rows"]) == (0, 3)
    assert flow.ids == [0, 1, 2], "although the function fills the same object for each row"
    for said in ("from the module", "from the function", "from a command"):
        assert said in answer.err
    assert flow.feed.cli("plan", "flow").json[0]["due"] is False


def test_a_function_that_ends_the_process_fails_in_a_line(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = make(tmp_path, engine, "def rows(request):\n    raise SystemExit(3)\n")
    answer = flow.feed.cli("run", "flow")
    assert answer.code == 1
    assert f"SystemExit: 3 ({code.file}:" in answer.json[0]["error"]["message"]


def test_a_watermark_is_compared_as_its_column_holds_it(tmp_path: Path, engine: SparkEngine) -> None:
    """Floats, whole numbers and decimals for a decimal; times with and without a zone, and days, for an instant."""
    yields = """
    from datetime import date
    from decimal import Decimal

    PRICES = [0.1, 1, Decimal("1.10"), 1.2]
    TIMES = [
        datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 12, tzinfo=timezone.utc), date(2026, 1, 2), "2026-01-02T00:00:01"
    ]

    def rows(request):
        count = len((HERE / "rows.jsonl").read_text().splitlines())
        for number, (price, time) in enumerate(zip(PRICES, TIMES)):
            if number < count:
                yield {"id": number, "price": price, "at": time}
    """
    schema = {"schema": "id int, price decimal(10,2), at timestamp"}
    berlin = {"type": "column", "columns": ["at", "price"], "timezone": "Europe/Berlin"}
    upsert = {"load": "merge_upsert", "merge_keys": ["id"]}
    flow, code = make(tmp_path, engine, yields, schema, watermark=berlin, target=upsert)
    code.put({}, {}, {})
    assert flow.run().rows == 3
    instants = [at(1).replace(hour=11), at(1), at(1).replace(hour=23)]
    assert flow.feed.rows("id", "at") == list(enumerate(instants))
    assert flow.watermark == {"at": instants[2], "price": Decimal("1.10")}
    assert flow.run().status == "nothing"
    code.put({})
    assert flow.run().rows == 1
    assert flow.watermark == {"at": instants[2].replace(second=1), "price": Decimal("1.20")}
    assert flow.run().status == "nothing"


def test_windows_and_units_reach_functions_and_fail_alone(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            asked(request)
            if request.unit["shop"] == "b" and (HERE / "broken").exists():
                raise ValueError("no such shop")
            for row in given():
                if request.start <= row["at"] < request.end:
                    yield row
    """
    units = {"name": "shop", "type": "unit", "units": "a,b"}
    watermark = WINDOWS | {"definition": [DAYS, units]}
    flow, code = make(tmp_path, engine, text, watermark=watermark, target=REPLACED)
    code.put(row(1, 1), row(2, 3))
    (tmp_path / "broken").touch()
    error = flow.fail()
    assert error.code == "failed_units"
    assert "ValueError: no such shop" in error.message
    days = "2026-01-01T00:00:00+00:00 .. 2026-01-02T00:00:00+00:00"
    assert f"{days}, shop = 'a'" in code.calls
    assert flow.feed.rows("id", "_unit") == [(1, '{"shop":"a"}'), (2, '{"shop":"a"}')]
    (tmp_path / "broken").unlink()
    flow.run("2026-06-02")
    assert [number for (number,) in flow.feed.rows("id")] == [1, 1, 2, 2]


def test_a_function_without_windows_doubles_no_row_by_columns(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"window_column": "at", "unit_columns": {"shop": "value"}}
    watermark = WINDOWS | {"definition": [DAYS, {"name": "shop", "type": "unit", "units": [1, "1", 2]}]}
    flow, code = make(tmp_path, engine, source=source, watermark=watermark, target=REPLACED)
    code.put(row(1, 1), row(2, 2), row(3, 3), row(1, 9))
    flow.run()
    assert flow.ids == [1, 2]


def test_windows_without_a_schema_learn_it_from_the_first_rows(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"schema": None, "window_column": "at"}
    flow, code = make(tmp_path, engine, source=source, watermark=WINDOWS, target=REPLACED)
    code.put(row(1, 1), row(2, 3))
    flow.run()
    assert flow.ids == [1, 2]


def test_a_call_whose_rows_all_lie_outside_of_it_is_named(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"window_column": "at", "unit_columns": {"shop": "value"}}
    watermark = WINDOWS | {"definition": [DAYS, {"name": "shop", "type": "unit", "units": [1, 2]}]}
    flow, code = make(tmp_path, engine, source=source, watermark=watermark, target=REPLACED)
    code.put(row(1, 1), row(2, 9))
    outcome = flow.run()
    assert (flow.ids, outcome.status) == ([1], "committed")
    (warning,) = [warning for warning in outcome.warnings if "left out" in warning]
    assert warning == (
        f"function {code.file.stem}:rows: 1 of 2 calls returned rows, but none of what they were called for, such as 2"
        " rows for 2026-01-01T00:00:00+00:00 .. 2026-01-04T00:00:00+00:00, shop = 2. These rows were left out, and the"
        " windows count as loaded: compare the times, zones and units of the rows with the request"
    )


def test_params_and_settings_reach_functions_and_no_secret_shows(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            if request.connection["token"] != "s3cr3t-token":
                raise ValueError(request.connection["token"])
            if (HERE / "broken").exists():
                raise ValueError(f"refused {request.connection['token']}")
            yield {"id": request.params["number"], "at": datetime(2026, 1, 1, tzinfo=timezone.utc), "value": len(request.params["tags"])}
    """
    settings = {"connections": {"crm": {"type": "python", "settings": {"token": {"env": "CRM_TOKEN"}}}}}
    flow, _ = make(
        tmp_path,
        engine,
        text,
        {"connection": "crm", "params": {"number": 7, "tags": ["a", "b"]}},
        settings=settings,
        environment={"CRM_TOKEN": "s3cr3t-token"},
    )
    (tmp_path / "broken").touch()
    error = flow.fail()
    assert "refused <token>" in error.message
    assert error.__cause__ is None
    answer = flow.feed.cli("run", "flow")
    assert (answer.code, "refused <token>" in answer.out) == (1, True)
    (tmp_path / "broken").unlink()
    flow.run()
    assert flow.feed.rows("id", "value") == [(7, 2)]
    assert "s3cr3t" not in answer.out + answer.err + repr(flow.feed.platform.source_of(flow.feed.dataflow))
    for file in (tmp_path / "state").rglob("*"):
        assert file.is_dir() or b"s3cr3t" not in file.read_bytes()


@pytest.mark.parametrize("when", [Step.PLANNED, Step.INTENT_PUT, "while staging"])
def test_a_killed_run_leaves_rows_once_and_rereads(tmp_path: Path, engine: SparkEngine, when: str) -> None:
    text = """
        import os, signal

        def rows(request):
            yield list(given())[:1]
            if (HERE / "dies").exists() and request.dataflow:
                os.kill(os.getpid(), signal.SIGKILL)
            yield list(given())[1:]
    """
    flow, code = make(tmp_path, engine, text)
    code.put(row(1, 1), row(2, 2))
    if when == "while staging":
        (tmp_path / "dies").touch()
    crash(flow.feed, Step.APPENDED if when == "while staging" else when)
    (tmp_path / "dies").unlink(missing_ok=True)
    code.put(row(3, 2) | {"at": "2026-01-02T13:00:00+00:00"})
    outcome = flow.run()
    assert outcome.status == ("recovered" if when == Step.INTENT_PUT else "committed")
    assert flow.ids == [1, 2, 3]
    assert flow.run().status == "nothing"
    assert list((tmp_path / "lake/_staging").rglob("*.parquet")) == []


BY_VALUE = {"type": "column", "columns": ["value"]}


def test_rows_without_any_value_wait_for_a_first(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = make(tmp_path, engine, watermark=BY_VALUE)
    code.put(row(1, 1) | {"value": None})
    assert flow.run().status == "nothing"
    code.put(row(2, 2))
    flow.run()
    assert flow.run().status == "nothing"
    assert flow.ids == [1, 2]


def test_batches_before_the_first_value_are_loaded(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            yield [{"id": 1, "at": None, "value": 1}]
            yield from given()
    """
    flow, code = make(tmp_path, engine, text)
    code.put(row(2, 2))
    flow.run()
    assert flow.ids == [1, 2]


def test_a_row_with_a_value_in_any_column_is_loaded(tmp_path: Path, engine: SparkEngine) -> None:
    """First no column has one; then, beside a time that has, numbers come for the first time."""
    text = """
        def rows(request):
            for line in (HERE / "rows.jsonl").read_text().splitlines():
                row = json.loads(line)
                yield {**row, "at": row["at"] and datetime.fromisoformat(row["at"])}
    """
    several = {"type": "column", "columns": ["at", "value", "other"], "backward": {"days": 1}}
    source = {"schema": "id long, at timestamp, value long, other long"}
    flow, code = make(tmp_path, engine, text, source, watermark=several, target=REPLACED)
    code.put(row(1, 20) | {"value": 9}, {"id": 2, "at": None, "value": 7})
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(20), "value": 9})
    code.put({"id": 3, "at": "2026-01-03T12:00:00+00:00", "value": 1, "other": 5})
    flow.run()
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 2, 3], {"at": at(20), "value": 9, "other": 5})


def test_infinity_and_nan_of_a_function_bound_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    text = """
        def rows(request):
            for number, value in enumerate([1.5, float("nan"), float("inf"), *([2.5] if request.bounds else [])]):
                yield [{"id": number, "value": value}]
    """
    flow, _ = make(tmp_path, engine, text, {"schema": "id long, value double"}, watermark=BY_VALUE)
    flow.run()
    flow.run()
    assert (flow.ids, flow.watermark) == ([0, 3], {"value": 2.5})
