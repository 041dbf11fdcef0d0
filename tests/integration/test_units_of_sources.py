"""Units of windows from any source: an API, a function, files, databases; without Spark, whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from textwrap import dedent
from threading import Event
from typing import Any
from uuid import uuid4

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import DagsterInstance

import resources.kinds.window.units
from partitions.dagster_partitions import WindowPartitions
from partitions.errors import PlanError, SourceUnreachable
from platform_assets.factory.kinds.window.run_requests import due_runs
from resources.connections.places import Place
from resources.kinds.window.unit_lookup import units_of
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.test_window_partitions import END, START, Dagster
from tests.support.api import Api, content, reset
from tests.support.feed import NAME, Feed
from tests.support.mariadb import MariaDB
from tests.support.window_feed import (
    BY_COLUMNS,
    DatabaseTable,
    LakeTable,
    event,
    instant,
    reaching,
    watermark,
)
from tests.support.workbooks import xlsx

NOW = instant("2020-01-03")
SHOP = {"type": "api", "connection": "shop", "path": "/rows", "records": "data.items"}
PAGED = SHOP | {"paging": {"type": "page", "param": "page"}}


def flow(
    folder: Path,
    source: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    engine: SparkEngine | None = None,
    **more: Any,
) -> Feed:
    """One day of a lake's table, whose units a source lists in its field ``u``."""
    definition = {"fields": ["u"], "source": dict(source)}
    for key in ("fields", "filters"):
        if key in more:
            definition[key] = more.pop(key)
    return Feed(
        folder,
        engine or SparkEngine(),
        {
            "source": {"type": "table", "table": "raw/events", **BY_COLUMNS},
            "watermark": watermark("2020-01-01", "2020-01-02", None, secondary_input=[definition], **more),
            "target": {"load": "append"},
        },
        dict(settings or {}),
        dict(environment or {}),
    )


def units(feed: Feed) -> list[Any]:
    """The values of the units, in their order."""
    return [json.loads(unit)["u"] for unit in units_of(feed.platform, feed.dataflow)]


def refusal(feed: Feed) -> str:
    """Why the units cannot be read."""
    with pytest.raises(PlanError) as raised:
        units_of(feed.platform, feed.dataflow)
    assert (raised.value.code, raised.value.exit_code) == ("secondary_input", 1)
    assert "nothing was planned" in raised.value.message
    return raised.value.message


@pytest.fixture
def of_api(tmp_path: Path, server: Api) -> Callable[..., Feed]:
    def made(**more: Any) -> Feed:
        shop = {"type": "api", "base_url": server.url}
        return flow(tmp_path / "project", PAGED, {"connections": {"shop": shop}}, **more)

    return made


class TestAnApi:
    def test_pages_list_units_and_a_new_one_is_an_added_partition(
        self, of_api: Callable[..., Feed], server: Api, engine: SparkEngine
    ) -> None:
        server.rows = [{"u": name, "open": name != "c"} for name in "cabab"]
        feed = of_api(engine=engine, filters={"open": "true"}, dagster_units="partitions", partial=False)
        table = LakeTable(feed.folder / "lake" / "raw" / "events")
        table.put(*[event(number, "2020-01-01", unit) for number, unit in enumerate("abcd")])
        dagster = Dagster(feed, now="2020-01-03T10:00")
        request = dagster.asks()
        assert list(dagster.instance.get_dynamic_partitions(f"{NAME}_units")) == ["a", "b"]
        assert (request.tags[START], request.tags[END]) == ("a|2020-01-01", "b|2020-01-01")
        assert dagster.asked(request).success
        assert feed.ids == [0, 1]
        assert dagster.waits() == "no work unit is due"

        server.rows.append({"u": "d", "open": True})
        request = dagster.asks()
        assert list(dagster.instance.get_dynamic_partitions(f"{NAME}_units")) == ["a", "b", "d"]
        assert dagster.asked(request).success
        assert feed.ids == [0, 1, 3]

    def test_a_silent_one_is_asked_again_at_next_plan(self, of_api: Callable[..., Feed], server: Api) -> None:
        feed = of_api()
        server.rows = [{"u": "a"}]
        server.faults.append(reset)
        with pytest.raises(SourceUnreachable, match="API GET"):
            feed.platform.plan(feed.dataflow, NOW)
        (slice_,) = feed.platform.plan(feed.dataflow, NOW).slices
        assert [work.unit for work in slice_.works] == ['{"u":"a"}']

    def test_no_list_of_records_plans_nothing(self, of_api: Callable[..., Feed], server: Api) -> None:
        server.faults.append(content('{"data": {}}'))
        assert "items" in refusal(of_api())

    def test_records_without_the_field_are_no_units(self, of_api: Callable[..., Feed], server: Api) -> None:
        server.rows = [{"id": "a", "name": "x"}]
        message = refusal(of_api())
        assert (
            f"dataflow {NAME}, secondary_input 1 (/rows of shop): expected rows with u, found only id, name"
            in message
        )

    def test_no_record_plans_nothing_and_never_reads_all(self, of_api: Callable[..., Feed]) -> None:
        feed = of_api()
        LakeTable(feed.folder / "lake" / "raw" / "events").put(event(1, "2020-01-01"))
        plan = feed.platform.plan(feed.dataflow, NOW)
        assert not plan.slices

    def test_more_units_than_the_most_are_refused_while_they_come(
        self, of_api: Callable[..., Feed], server: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("partitions.window.units.MAX_UNITS", 4)
        server.rows = [{"u": number} for number in range(5)]
        assert "expected at most 4 units, found more" in refusal(of_api())


FILES: Mapping[str, Callable[[], bytes]] = {
    "ndjson": lambda: b'{"u": 1}\n\n{"u": "b", "more": [1]}\n{"u": 1}\n',
    "json": lambda: b'[{"u": 1}, {"u": "b"}]',
    "parquet": lambda: _parquet({"u": ["1", "b"], "more": [1, 2]}),
    "csv": lambda: '\ufeffu,more\n1,"x\ny"\nb,\n'.encode(),
    "excel": lambda: xlsx([["u", "more"], ["1", None], ["b", 2.0]]),
}


def _parquet(columns: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


class TestFiles:
    @staticmethod
    def _flow(tmp_path: Path, format_: str, **more: Any) -> Feed:
        return flow(tmp_path / "project", {"type": "files", "path": "./units", "format": format_}, **more)

    @pytest.mark.parametrize("format_", FILES)
    def test_each_record_of_each_file_lists_a_unit(self, tmp_path: Path, format_: str) -> None:
        feed = self._flow(tmp_path, format_)
        ending = "xlsx" if format_ == "excel" else format_
        folder = feed.folder / "units" / "day=1"
        folder.mkdir(parents=True)
        (folder / f"a.{ending}").write_bytes(FILES[format_]())
        assert units(feed) == [1 if "json" in format_ else "1", "b"]

    def test_folders_give_columns_texts_stay_texts_and_packing_goes(self, tmp_path: Path) -> None:
        feed = self._flow(tmp_path, "csv", filters={"site": "x y|z"})
        for number, site in enumerate(("x%20y", "z", "other")):
            folder = feed.folder / "units" / f"site={site}"
            folder.mkdir(parents=True)
            (folder / "a.csv.gz").write_bytes(gzip.compress(f"u\n00{number}\n".encode()))
        assert units(feed) == ["000", "001"]

    @pytest.mark.parametrize(
        ("format_", "name", "text", "said"),
        [
            ("ndjson", "a.ndjson", '{"u": 1}\n{"u"\n', "line 2: expected JSON"),
            ("ndjson", "a.ndjson", '{"u": 1}\n[2]\n', "line 2: expected an object, found list"),
            ("json", "a.json", '[{"u": 1}, 2]', "element 2: expected an object, found int"),
            ("csv", "a.csv", "u,v\n1\n", "line 2: expected 2 values, found 1"),
            ("csv", "a.csv.gz", "u\n1\n", "cannot be read as csv"),
            ("parquet", "a.parquet", "u", "cannot be read as parquet"),
        ],
    )
    def test_a_file_that_does_not_read_plans_nothing_and_is_named_with_its_line(
        self, tmp_path: Path, format_: str, name: str, text: str, said: str
    ) -> None:
        feed = self._flow(tmp_path, format_)
        (feed.folder / "units").mkdir()
        (feed.folder / "units" / name).write_text(text)
        message = refusal(feed)
        assert name in message
        assert said in message

    def test_a_folder_that_is_not_there_is_not_an_empty_one(self, tmp_path: Path) -> None:
        assert "units" in refusal(self._flow(tmp_path, "csv"))

    @pytest.mark.s3
    def test_on_an_object_store(self, tmp_path: Path, bucket: Place) -> None:
        place = bucket
        obstore.put(place.child("units").store, "a.ndjson.gz", gzip.compress(b'{"u": "a"}\n{"u": "b"}\n'))
        connection = place.connection
        assert connection is not None
        land = {
            "type": "s3",
            "endpoint": connection.endpoint,
            "region": connection.region,
            "access_key_id": {"env": "K"},
            "secret_access_key": {"env": "S"},
        }
        source = {"type": "files", "path": f"{place.url}/units", "connection": "land", "format": "ndjson"}
        known = {"K": connection.access_key_id or "", "S": connection.secret_access_key or ""}
        assert units(flow(tmp_path / "project", source, {"connections": {"land": land}}, known)) == ["a", "b"]


class TestAFunction:
    @staticmethod
    def _flow(tmp_path: Path, text: str) -> Feed:
        name = f"members_{uuid4().hex[:8]}"
        feed = flow(tmp_path / "project", {"type": "python", "function": f"{name}:members"})
        (feed.folder / f"{name}.py").write_text(dedent(text))
        return feed

    def test_whatever_it_yields_lists_units(self, tmp_path: Path) -> None:
        feed = self._flow(
            tmp_path,
            """
            import pyarrow as pa

            def members(request):
                assert not request.bounds and not request.unit
                yield {"u": "a"}
                yield pa.table({"u": ["b", "a"], "v": [1, 2]})
            """,
        )
        assert units(feed) == ["a", "b"]

    def test_values_of_numpy_and_pandas_are_those_of_python(self, tmp_path: Path) -> None:
        feed = self._flow(
            tmp_path,
            """
            import numpy as np
            import pandas as pd

            def members(request):
                yield from [{"u": np.int64(5)}, {"u": pd.NA}, {"u": 5}, {"u": None}]
            """,
        )
        assert units(feed) == [5, None]

    def test_one_that_fails_plans_nothing_and_its_line_is_said(self, tmp_path: Path) -> None:
        feed = self._flow(
            tmp_path, 'def members(request):\n    yield {"u": "a"}\n    raise ValueError("no")\n'
        )
        message = refusal(feed)
        assert "ValueError: no" in message
        assert ".py:3" in message

    def test_one_that_hangs_is_left_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        feed = self._flow(tmp_path, "def members(request):\n    yield {'u': 'a'}\n    from sys import modules\n    modules['the_gate'].wait()\n")  # fmt: skip
        gate = Event()
        monkeypatch.setitem(__import__("sys").modules, "the_gate", gate)
        monkeypatch.setattr(resources.kinds.window.units.rows_in_time, "__defaults__", (0.1,))
        with pytest.raises(
            SourceUnreachable, match=r"expected all rows within 0\.1 s, but the read did not end"
        ):
            units(feed)
        with pytest.raises(SourceUnreachable, match="an earlier read still waits for its answer"):
            units(feed)
        gate.set()
        monkeypatch.undo()
        for thread, _ in list(resources.kinds.window.units._asking.values()):
            thread.join()
        assert units(self._flow(tmp_path / "other", "def members(request):\n    return [{'u': 'b'}]\n")) == [
            "b"
        ]

    def test_all_that_ask_at_the_same_time_are_answered_in_turn(self, tmp_path: Path) -> None:
        """Such as two sensors of a dataflow, the alerts, and a run in the process of ``watch``."""
        feed = self._flow(
            tmp_path, "def members(request):\n    __import__('time').sleep(0.7)\n    return [{'u': 'a'}]\n"
        )
        with ThreadPoolExecutor(3) as asking:
            answers = [asking.submit(units, feed) for _ in range(3)]
            assert [answer.result() for answer in answers] == [["a"]] * 3

    def test_a_tick_that_adds_partitions_asks_it_once(self, tmp_path: Path) -> None:
        calls = tmp_path / "calls"
        feed = self._flow(
            tmp_path,
            f"""
            def members(request):
                with open({str(calls)!r}, "a") as file:
                    file.write(".")
                return [{{"u": "a"}}, {{"u": "b"}}]
            """,
        )
        feed.define(watermark={"dagster_units": "partitions"})
        of = feed.dataflow
        with DagsterInstance.ephemeral() as instance:
            partitions = WindowPartitions.of(of.name, of.window)
            due = due_runs(of, feed.platform, partitions, instance, NOW, everything=False)
        assert [key for request in due.new_keys for key in request.partition_keys] == ["a", "b"]
        assert len(due.works) == 2
        assert calls.read_text() == "."


class TestDatabases:
    @pytest.mark.postgres
    def test_any_postgresql_lists_units_by_a_query(self, tmp_path: Path, postgres: Postgres) -> None:
        table = DatabaseTable(postgres)
        table.ask("CREATE TABLE {s}.members (name text, open boolean)")
        table.ask("INSERT INTO {s}.members VALUES ('b', true), ('a', true), ('c', false), ('a', true)")
        query = f"SELECT name AS u FROM {table.schema}.members WHERE open"
        source = {"type": "jdbc", "connection": "erp", "query": query}
        feed = flow(tmp_path / "project", source, *reaching(postgres))
        assert units(feed) == ["a", "b"]
        table.ask("INSERT INTO {s}.members VALUES ('aa', true)")
        assert units(feed) == ["a", "aa", "b"]

    def test_mariadb_lists_units_and_a_gone_table_none(self, tmp_path: Path, mariadb: MariaDB) -> None:
        name = f"members_{uuid4().hex[:8]}"
        mariadb.ask(f"CREATE TABLE {name} (u bigint, more text)")
        mariadb.ask(f"INSERT INTO {name} VALUES (2, 'x'), (1, 'y'), (2, 'z')")
        erp = {"type": "jdbc", "url": mariadb.url, "user": "tests", "password": {"env": "P"}}
        source = {"type": "jdbc", "connection": "erp", "table": f"shop.{name}"}
        feed = flow(tmp_path / "project", source, {"connections": {"erp": erp}}, {"P": mariadb.password})
        assert units(feed) == [1, 2]
        mariadb.ask(f"DROP TABLE {name}")
        message = refusal(feed)
        assert name in message
        assert mariadb.password not in message


def test_one_dataflows_units_stop_no_other(tmp_path: Path, of_api: Callable[..., Feed], server: Api) -> None:
    feed = of_api()
    other = Feed(feed.folder, feed.engine, {}, feed.settings, name="other")
    other.put("a.ndjson", 1)
    server.faults.extend([reset] * 4)
    answer = feed.cli("plan")
    assert [each["dataflow"] for each in answer.json] == [NAME, "other"]
    assert answer.json[1]["due"] is True
    assert "secondary_input" in json.dumps(answer.json[0]) or "API GET" in json.dumps(answer.json[0])


def test_doctor_looks_at_what_lists_the_units(of_api: Callable[..., Feed], server: Api) -> None:
    server.rows = [{"u": "a"}]
    checks = {each["check"]: each["ok"] for each in of_api().cli("doctor", "--no-spark").json["checks"]}
    assert checks[f"units {NAME}"] is True
