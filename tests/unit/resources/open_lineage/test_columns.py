"""Which columns a column of ``sql`` comes from, and which tables a query names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from resources.open_lineage.columns import origins, tables_of_query

VIEWS = {"input": ["Id", "name", "v", "b c"], "other": ["id", "w"]}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, name as n from input", {"id": ["input.Id IDENTITY"], "n": ["input.name IDENTITY"]}),
        ("select upper(name) n, `b c` from input", {"n": ["input.name TRANSFORMATION"], "b c": ["input.b c IDENTITY"]}),
        ("select sum(v) s, count(*) c from input", {"s": ["input.v AGGREGATION"], "c": []}),
        (
            "with a as (select id as x, v + 1 y from input) select y, o.w from a join other o on o.id = a.x",
            {"y": ["input.v TRANSFORMATION"], "w": ["other.w IDENTITY"]},
        ),
        ("select o.* from input i join other o using (id)", {"id": ["other.id IDENTITY"], "w": ["other.w IDENTITY"]}),
        ("select _source_file f, id from input", {"f": [], "id": ["input.Id IDENTITY"]}),
        ("select id from input union all select id from other", {"id": ["input.Id IDENTITY", "other.id IDENTITY"]}),
        ("select from where", {}),
    ],
)  # fmt: skip
def test_each_column_has_the_columns_that_it_is_made_of(sql: str, expected: Mapping[str, list[str]]) -> None:
    found = {
        name: sorted(f"{origin.view}.{origin.column} {origin.how}" for origin in made_of)
        for name, made_of in origins(sql, VIEWS).items()
    }
    assert found == expected


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("select * from orders", [("orders",)]),
        ('with x as (select 1) select * from "Shop".items i join x join items', [("Shop", "items"), ("items",)]),
        ("select from where", []),
    ],
)  # fmt: skip
def test_the_tables_of_a_query_are_found(query: str, tables: list[tuple[str, ...]]) -> None:
    assert list(tables_of_query(query, "postgres")) == tables
