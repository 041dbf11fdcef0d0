"""Names of datasets follow the rules of OpenLineage's specification."""

from __future__ import annotations

import pytest

from partitions.sources import ApiSource, JdbcSource
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.open_lineage.datasets import name_of_place, names_of_source

POSTGRES, MARIADB = "jdbc:postgresql://db.example/shop", "jdbc:mariadb://db.example:3307/shop?sslMode=trust"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("/data/landing", ("file", "/data/landing")),
        ("s3://lake/bronze/orders", ("s3://lake", "bronze/orders")),
        ("s3://lake", ("s3://lake", "/")),
        ("gs://lake/a", ("gs://lake", "a")),
        ("az://box/a", ("abfss://box@shop.dfs.core.windows.net", "a")),
    ],
)
def test_a_place_has_its_store_as_namespace(
    url: str, name: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "shop")
    assert name_of_place(Place(url)) == name


@pytest.mark.parametrize(
    ("url", "source", "names"),
    [
        (POSTGRES, {"table": "orders"}, [("postgres://db.example:5432", "shop.public.orders")]),
        (POSTGRES, {"table": "sales.orders"}, [("postgres://db.example:5432", "shop.sales.orders")]),
        (MARIADB, {"table": "orders"}, [("mysql://db.example:3307", "shop.orders")]),
        (
            POSTGRES,
            {"query": "select * from sales.orders join items using (id) where at >= {start}"},
            [("postgres://db.example:5432", f"shop.{name}") for name in ("sales.orders", "public.items")],
        ),
    ],
)
def test_a_database_names_its_tables_in_full(
    url: str, source: dict[str, str], names: list[tuple[str, str]]
) -> None:
    jdbc = JdbcSource(type="jdbc", connection="erp", **source)
    assert list(names_of_source(jdbc, JdbcConnection.parse(url, "reader", "secret"))) == names


def test_an_api_is_named_by_its_address() -> None:
    source = ApiSource(type="api", connection="shop", path="/v1/orders")
    connection = ApiConnection("https://api.example/base", token="secret")
    assert list(names_of_source(source, connection)) == [("https://api.example", "/base/v1/orders")]
