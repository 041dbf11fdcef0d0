"""Which dataflow reads the table of which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.dataflow import Dataflow
from partitions.inputs import Input
from partitions.lineage import Lineage, Upstream


class Flow(NamedTuple):
    name: str
    table: str
    tables_read: Sequence[Input] = ()
    tables_beside: Mapping[str, str] = {}

    @property
    def asset(self) -> str:
        return f"bronze/{self.name}"


def reading(name: str, *tables: str) -> Flow:
    """A dataflow with the usual table that reads these."""
    return Flow(name, f"bronze/{name}", [Input(("source", "table"), table) for table in tables])


@st.composite
def projects(draw: st.DrawFn) -> tuple[list[Flow], list[str]]:
    """Dataflows without cycles, and the names of some in any order."""
    count = draw(st.integers(1, 8))
    flows = []
    for number in range(count):
        earlier = st.integers(0, number - 1) if number else st.nothing()
        above = draw(st.lists(earlier, max_size=3)) if number else []
        flows.append(reading(f"f{number}", *(f"bronze/f{one}" for one in above), "bronze/not_made_here"))
    names = draw(st.permutations([flow.name for flow in flows]))
    return draw(st.permutations(flows)), names[: draw(st.integers(0, count))]


@given(projects())
def test_each_runs_after_all_that_feeds_it(given_project: tuple[list[Flow], list[str]]) -> None:
    flows, names = given_project
    lineage = Lineage(flows)
    ordered = lineage.in_order(names)
    assert sorted(ordered) == sorted(names)
    for position, name in enumerate(ordered):
        waiting, above = list(lineage.upstream_dataflows(name)), set()
        while waiting:
            above.add(one := waiting.pop())
            waiting += lineage.upstream_dataflows(one)
        assert not above & set(ordered[position:])


def test_names_stay_as_they_are_given_where_nothing_says_otherwise() -> None:
    assert Lineage([reading("a"), reading("b"), reading("c")]).in_order(["c", "a", "b"]) == ["c", "a", "b"]


def test_an_order_looks_through_dataflows_that_are_not_run() -> None:
    lineage = Lineage([reading("a", "bronze/m"), reading("m", "bronze/z"), reading("z")])
    assert lineage.in_order(["a", "z"]) == ["z", "a"]


@pytest.mark.parametrize(
    ("given_input", "above", "assets"),
    [
        (
            Input(("k",), "silver/orders"),
            ("shop",),
            ("bronze/shop",),
        ),  # the table of shop, which has another name
        (Input(("k",), "bronze/shop", is_asset=True), ("shop",), ("bronze/shop",)),
        (Input(("k",), "bronze/shop"), (), ()),  # a table that only has the name of shop's asset
        (Input(("k",), "bronze/other"), ("other",), ("bronze/other",)),
        (Input(("k",), "ref/countries"), (), ("ref/countries",)),
        (Input(("k",), "ref/countries", is_asset=True), (), ("ref/countries",)),
    ],
)
def test_an_input_is_the_table_whatever_the_asset_of_its_maker_is_called(
    given_input: Input, above: tuple[str, ...], assets: tuple[str, ...]
) -> None:
    reader = Flow("reader", "bronze/reader", [given_input, given_input])
    lineage = Lineage([Flow("shop", "silver/orders"), reading("other"), reader])
    assert lineage.upstream_dataflows("reader") == above
    assert lineage.upstream_assets(reader) == assets


def test_a_table_that_several_dataflows_share_is_made_by_all_of_them() -> None:
    reader = reading("reader", "silver/both")
    lineage = Lineage([Flow("a", "silver/both"), reader, Flow("b", "silver/both")])
    assert lineage.upstream_dataflows("reader") == ("a", "b")
    assert lineage.upstream_assets(reader) == ("bronze/a", "bronze/b")
    assert lineage.upstream_tables(reader) == {"silver/both": ("a", "b")}
    assert lineage.in_order(["reader", "b", "a"])[-1] == "reader"


def test_a_dataflow_that_reads_the_table_that_it_shares_is_circular() -> None:
    both = [Flow("a", "silver/both"), Flow("b", "silver/both", [Input(("source", "table"), "silver/both")])]
    assert [each.maker for each in Lineage(both).circular("b")] == ["b"]


def test_only_dataflows_of_a_cycle_are_circular() -> None:
    into, first, second = (
        reading("into", "bronze/first"),
        reading("first", "bronze/second"),
        reading("second", "bronze/first"),
    )
    own = reading("own", "bronze/own")
    lineage = Lineage([into, first, second, own])
    assert {name: [one.maker for one in lineage.circular(name)] for name in ("into", "first", "second", "own")} == {
        "into": [],
        "first": ["second"],
        "second": ["first"],
        "own": ["own"],
    }  # fmt: skip
    assert lineage.circular("own") == (Upstream(own.tables_read[0], "own"),)


def test_a_dataflow_reads_its_source_the_tables_of_its_units_and_its_inputs() -> None:
    flow = Dataflow.model_validate(
        {
            "name": "flow",
            "source": {"type": "table", "table": "bronze/events", "window_column": "at", "unit_columns": {"k": "k"}},
            "watermark": {
                "type": "window",
                "definition": [{"name": "t", "type": "datetime", "range": {"from": "2024-01-01", "to": "-"}}],
                "window": "daily",
                "secondary_input": [
                    {"table": "ref/kinds", "fields": ["k"]},
                    {"path": "/elsewhere", "fields": ["k"]},
                    {"asset": "silver/kinds", "fields": ["k"]},
                ],
            },
            "target": {"load": "merge_overwrite", "replace_by_watermark": True},
            "sql": "SELECT input.* FROM input JOIN planes USING (k)",
            "inputs": {"planes": "silver/planes"},
        }
    )  # fmt: skip
    assert flow.tables_read == (
        Input(("source", "table"), "bronze/events"),
        Input(("watermark", "secondary_input", 0, "table"), "ref/kinds"),
        Input(("watermark", "secondary_input", 2, "asset"), "silver/kinds", is_asset=True),
        Input(("inputs", "planes"), "silver/planes"),
    )


def test_a_table_beside_a_dataflows_own_is_an_asset_of_its_own() -> None:
    stream = Flow("readings", "silver/sorted", tables_beside={"bronze/readings__late": "silver/sorted__late"})
    reader = reading("again", "silver/sorted__late")
    lineage = Lineage([reader, stream])
    assert lineage.upstream_assets(reader) == ("bronze/readings__late",)
    assert lineage.table_of("bronze/readings__late") == "silver/sorted__late"
    assert lineage.in_order(["again", "readings"]) == ["readings", "again"]
