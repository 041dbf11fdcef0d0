"""Tables that random rows change the columns of, compared with a plain reading of the rule (docs/reference/schemas.md)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitions.errors import RowsRefused
from partitions.loads import Append, Upsert
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.contract.table import FollowsUp
from resources.tables.registry import open_table

VALUES: dict[str, Any] = {
    "int": 1,
    "bigint": 2**40,
    "float": 1.5,
    "double": 0.1,
    "string": "x",
    "date": date(2026, 1, 2),
}
"""A value of each type, which no narrower type holds."""
WIDER = {("int", "bigint"), ("float", "double")}

batches = st.lists(
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(sorted(VALUES))), min_size=2, max_size=4
)


def _merged(table: dict[str, str], columns: dict[str, str]) -> dict[str, str] | None:
    """The columns after a batch; None if it is refused."""
    merged = dict(table)
    for name, kind in columns.items():
        known = merged.setdefault(name, kind)
        if (known, kind) in WIDER:
            merged[name] = kind
        elif known != kind and (kind, known) not in WIDER:
            return None
    return merged


@pytest.mark.full
@pytest.mark.parametrize(
    ("form", "load"),
    [
        pytest.param("delta", Append(), id="delta append"),
        pytest.param("delta", Upsert(("id",), ()), id="delta upsert"),
        pytest.param("iceberg", Append(), id="iceberg append"),
        pytest.param("iceberg", Upsert(("id",), ()), id="iceberg upsert"),
        pytest.param("parquet", Append(), id="parquet append"),
    ],
)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=batches)
def test_each_batch_is_in_the_table_with_its_columns_or_refused_as_a_whole(
    engine: SparkEngine,
    tmp_path_factory: pytest.TempPathFactory,
    form: str,
    load: Append | Upsert,
    drawn: list[dict[str, str]],
) -> None:
    spark, place = engine.session(), Place(str(tmp_path_factory.mktemp("merge") / "lake" / "t"))
    columns: dict[str, str] = {"id": "bigint"}
    expected: list[dict[str, Any]] = []
    for number, batch in enumerate(drawn, 1):
        table = open_table(form, place, schema_mode="merge")
        row = {"id": number, **{name: VALUES[kind] for name, kind in batch.items()}}
        ddl = ", ".join(["id bigint", *(f"{name} {kind}" for name, kind in batch.items())])
        rows = spark.createDataFrame([tuple(row.values())], ddl)
        tag, base = Tag("app", number, "o"), table.tip("app").version
        merged = _merged(columns, batch)
        if merged is None:
            with pytest.raises(RowsRefused):
                table.write(rows, load, tag, "s", base=base)
            continue
        table.write(rows, load, tag, "s", base=base)
        columns, expected = merged, [*expected, row]
        if isinstance(table, FollowsUp) and (newest := table.tip("app").newest):
            table.after_append(newest, "flow")
        found = table.contents.read(spark, table.contents.newest_version())
        assert dict(found.dtypes) == columns
        wanted = [{name: each.get(name) for name in found.columns} for each in expected]
        assert sorted((each.asDict() for each in found.collect()), key=lambda each: each["id"]) == wanted
