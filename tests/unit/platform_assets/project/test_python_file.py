"""A Python file of `dataflows`: which functions are dataflows, how their keys read, and what each mistake says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from partitions.dataflow import FilePosition
from platform_assets.asset_keys import ASSET_KEYS
from platform_assets.cli.main import strandline
from platform_assets.project import load_project
from resources.user_functions import user_function
from tests.support.python_projects import HEAD_LINES, errors, load, write

ORDERS = """
@incremental_asset(watermark=BY_TIME, schema="id long, at timestamp")
def orders(request):
    \"\"\"Orders of the shop.\"\"\"
    return [{"id": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}]
"""
LINE = HEAD_LINES + 2
"""The line of the first decorator in a file that begins with an empty line."""


@pytest.fixture(autouse=True)
def _without_modules_of_the_test() -> Iterator[None]:
    before, path = dict(sys.modules), list(sys.path)
    yield
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
    sys.path[:] = path


def test_a_function_is_the_dataflow_that_its_yaml_file_would_be(tmp_path: Path) -> None:
    for side in ("python", "yaml"):
        (tmp_path / side / "dataflows").mkdir(parents=True)
    asset = """
    @incremental_asset(
        watermark={
            "type": "window",
            "definition": (
                {"name": "t", "type": "datetime", "range": {"from": date(2026, 1, 1), "to": "-"}},
                {"name": "region", "type": "unit", "units": ("eu", "us")},
            ),
            "window": "daily",
            "timezone": ZoneInfo("Europe/Berlin"),
            "grace": timedelta(days=2),
            "pacing": timedelta(minutes=1.5),
        },
        target={"load": "merge_overwrite", "replace_by_watermark": True, "partition_by": ["day"]},
        layer="silver",
        schema={"region": "string", "day": "date", "odd name": "array<long>"},
        window_column="day",
        unit_columns={"region": "region"},
        params={"pages": 3, "names": ["a", "b"]},
        owners=["team:shop"],
        tags={"domain": "sales"},
        run_tags={"dagster/priority": "3"},
        op_tags={"size": "large"},
        retry={"max": 3, "delay": timedelta(seconds=30)},
        automation_condition="eager",
        freshness={"fail": timedelta(days=1)},
        maintenance={"optimize": "P1D"},
        schedule="0 6 * * *",
        unknown_fields="ignore",
        sql="SELECT * FROM input",
        run_after_upstream=False,
    )
    def orders(request):
        '''Orders of the shop.

        By day.
        '''
    """
    definition = {
        "layer": "silver",
        "description": "Orders of the shop.\n\nBy day.",
        "source": {
            "type": "python",
            "function": "dataflows.orders:orders",
            "schema": "region string, day date, `odd name` array<long>",
            "window_column": "day",
            "unit_columns": {"region": "region"},
            "params": {"pages": 3, "names": ["a", "b"]},
        },
        "watermark": {
            "type": "window",
            "definition": [
                {"name": "t", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}},
                {"name": "region", "type": "unit", "units": ["eu", "us"]},
            ],
            "window": "daily",
            "timezone": "Europe/Berlin",
            "grace": "P2D",
            "pacing": "PT90S",
        },
        "target": {"load": "merge_overwrite", "replace_by_watermark": True, "partition_by": ["day"]},
        "owners": ["team:shop"],
        "tags": {"domain": "sales"},
        "run_tags": {"dagster/priority": "3"},
        "op_tags": {"size": "large"},
        "retry": {"max": 3, "delay": "PT30S"},
        "automation_condition": "eager",
        "freshness": {"fail": "P1D"},
        "maintenance": {"optimize": "P1D"},
        "schedule": "0 6 * * *",
        "unknown_fields": "ignore",
        "sql": "SELECT * FROM input",
        "run_after_upstream": False,
    }
    (tmp_path / "yaml/dataflows/orders.yaml").write_text(yaml.safe_dump(definition))
    in_python, in_yaml = load(tmp_path / "python", orders=asset), load_project(tmp_path / "yaml")
    assert (errors(in_python), errors(in_yaml)) == ([], [])
    assert in_python.dataflows["orders"].model_dump() == in_yaml.dataflows["orders"].model_dump()


def test_every_function_of_a_file_is_a_dataflow_by_its_own_name(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        shop=ORDERS
        + """
        again = orders

        @incremental_asset(name="returned", watermark=BY_TIME, target={"table": "silver/returns"})
        def returns(request): ...

        def helper(): ...
        """.replace("\n        ", "\n"),
    )
    assert errors(project) == []
    assert {name: flow.source.label for name, flow in project.dataflows.items()} == {
        "orders": "function dataflows.shop:orders",
        "returned": "function dataflows.shop:returns",
    }
    assert project.dataflows["orders"].description == "Orders of the shop."
    assert project.dataflows["orders"].position == FilePosition("dataflows/shop.py", LINE)


def test_a_function_of_a_package_is_a_dataflow_where_a_file_imports_it(tmp_path: Path) -> None:
    write(tmp_path, "my_platform/__init__.py", "")
    write(tmp_path, "my_platform/sales.py", ORDERS)
    project = load(tmp_path, any_name="from my_platform.sales import orders as renamed")
    assert errors(project) == []
    flow = project.dataflows["orders"]
    assert flow.source.label == "function my_platform.sales:orders"
    assert flow.position == FilePosition("my_platform/sales.py", LINE)


def test_functions_made_in_a_loop_are_found_by_their_names_in_the_file(tmp_path: Path) -> None:
    text = """
    def make(region):
        @incremental_asset(name=f"orders_{region}", watermark=BY_TIME)
        def orders(request):
            return [region]
        return orders

    for region in ("eu", "us"):
        globals()[f"in_{region}"] = make(region)
    """
    project = load(tmp_path, shop=text)
    assert errors(project) == []
    labels = {name: flow.source.label.split()[1] for name, flow in project.dataflows.items()}
    assert labels == {"orders_eu": "dataflows.shop:in_eu", "orders_us": "dataflows.shop:in_us"}
    assert [user_function("source.function", label, tmp_path)(None) for label in labels.values()] == [
        ["eu"],
        ["us"],
    ]


def test_functions_as_values_are_named_by_their_modules(tmp_path: Path) -> None:
    text = """
    def highest(request, column): ...
    def clean(rows, batch): ...

    @incremental_asset(watermark=BY_TIME, highest=highest, transform=clean)
    def orders(request): ...
    """
    flow = load(tmp_path, shop=text).dataflows["orders"]
    assert (flow.source.model_dump()["highest"], flow.transform) == (
        "dataflows.shop:highest",
        "dataflows.shop:clean",
    )


def test_an_arrow_schema_counts_as_its_ddl(tmp_path: Path) -> None:
    text = """
    import pyarrow as pa

    SCHEMA = pa.schema([
        ("id", pa.uint32()), ("at", pa.timestamp("ns", "UTC")), ("local", pa.timestamp("us")), ("day", pa.date64()),
        ("amount", pa.decimal128(10, 2)), ("name", pa.dictionary(pa.int8(), pa.large_string())), ("raw", pa.binary()),
        ("tags", pa.large_list(pa.string())), ("at most", pa.map_(pa.string(), pa.int16())), ("small", pa.float16()),
        ("place", pa.struct([("x", pa.float64()), ("a b", pa.bool_())])),
    ])

    @incremental_asset(watermark=BY_TIME, schema=SCHEMA)
    def orders(request): ...

    @incremental_asset(watermark=BY_TIME, schema=pa.schema([("at", pa.time64("us"))]))
    def times(request): ...
    """
    project = load(tmp_path, shop=text)
    assert project.dataflows["orders"].source.declared_schema == (
        "id bigint, at timestamp, local timestamp_ntz, day date, amount decimal(10,2), name string, raw binary,"
        " tags array<string>, `at most` map<string, smallint>, small float, place struct<x: double, `a b`: boolean>"
    )
    (error,) = errors(project)
    assert "schema: found the column at: values of type time64[us], which no column holds" in error


def test_a_text_of_the_environment_is_a_reference_as_in_yaml(tmp_path: Path) -> None:
    text = """
    @incremental_asset(watermark=BY_TIME, params={"url": {"env": "SHOP_URL"}})
    def orders(request): ...
    """
    load(tmp_path, shop=text)
    flow = load_project(tmp_path, environment={"SHOP_URL": "https://shop.example"}).dataflows["orders"]
    assert flow.source.model_dump()["params"] == {"url": "https://shop.example"}
    assert "{env: SHOP_URL}" in repr(flow)


WRONG = [
    (
        "target={'load': 'append'},\n    watermrk=BY_TIME",
        (
            f"dataflows/shop.py:{LINE + 2}: watermrk: found an unknown keyword, expected one of {', '.join(sorted(ASSET_KEYS))}"
            " (did you mean watermark?)"
        ),
    ),
    (
        "target={\n        'lod': 'append'}",
        (
            f"dataflows/shop.py:{LINE + 2}: target.lod: found an unknown key, expected one of cluster_by, delete_when, effective_column, format, ignore, immutable, insert_only, keep_tombstones, load,"
            " max_deleted, merge_keys, missing_columns, names, on_missing, open_end, origin_columns, partition_by, replace_by_watermark, retention, schema_mode, shared, table, track (did you mean load?)"
        ),
    ),
    (
        "owners=[\n        'team:a',\n        'nobody']",
        f"dataflows/shop.py:{LINE + 3}: owners.1: found nobody, expected an e-mail address or team:NAME",
    ),
    (
        "schema='id lng'",
        (
            f"dataflows/shop.py:{LINE + 1}: schema: found the type lng, expected a type of Spark, such as string, long, double, date or"
            " timestamp (did you mean long?)"
        ),
    ),
    (
        "window_column='at'",
        f"dataflows/shop.py:{LINE + 1}: window_column: found at, expected no such key (only windows have it)",
    ),
    (
        "connection='crm'",
        (
            f"dataflows/shop.py:{LINE + 1}: connection: found crm, expected one of the connections of platform.yaml: none: platform.yaml has"
            " no connections"
        ),
    ),
    (
        "params={'token': 'abc'}",
        (
            f"dataflows/shop.py:{LINE + 1}: params.token: found the parameter token, a secret by its name, expected it in a setting of the"
            " connection, as {env: NAME}; or another name, if token is no secret"
        ),
    ),
    (
        "highest=lambda request, column: None",
        (
            f"dataflows/shop.py:{LINE + 1}: highest: found the function <lambda>, expected a function at the top level of a module, which a"
            " run imports by its name"
        ),
    ),
    (
        "retry={'max': 3, 'delay': timedelta(-1)}",
        (
            f"dataflows/shop.py:{LINE + 1}: retry.delay: found '-1 day, 0:00:00', expected an ISO 8601 duration such as PT2S, PT5M or P30D,"
            " not negative"
        ),
    ),
    (
        "name='Orders 2'",
        (
            f"dataflows/shop.py:{LINE + 1}: name: found the name Orders 2, expected a name of the letters a-z, digits and underscores that"
            " starts with a letter (did you mean orders?)"
        ),
    ),
]


@pytest.mark.parametrize(("keys", "message"), WRONG, ids=[keys.partition("=")[0] for keys, _ in WRONG])
def test_a_mistake_is_shown_at_its_keyword(tmp_path: Path, keys: str, message: str) -> None:
    text = f"\n@incremental_asset(\n    {keys},\n    watermark=BY_TIME)\ndef orders(request): ...\n"
    assert errors(load(tmp_path, shop=text)) == [message]


def test_keys_of_a_mapping_elsewhere_are_shown_at_the_function(tmp_path: Path) -> None:
    text = """
    COMMON = {"watermark": BY_TIME, "owners": ["nobody"]}

    @incremental_asset(**COMMON)
    def orders(request): ...

    @incremental_asset()
    def returns(request): ...
    """
    assert errors(load(tmp_path, shop=text)) == [
        f"dataflows/shop.py:{LINE + 2}: owners.0: found nobody, expected an e-mail address or team:NAME",
        f"dataflows/shop.py:{LINE + 5}: watermark: found nothing, expected a mapping (this key is required)",
    ]


def test_a_file_that_fails_breaks_its_own_dataflows_alone(tmp_path: Path) -> None:
    write(tmp_path, "shop_client.py", "URL = TABLE['url']\n", head="TABLE = {}\n")
    project = load(
        tmp_path,
        good=ORDERS,
        missing="import nothing_here\n" + ORDERS.replace("def orders", "def one"),
        syntax="\ndef broken(:\n",
        below="from shop_client import URL\n" + ORDERS.replace("def orders", "def two"),
        exits="raise SystemExit(3)\n",
        empty="def plain(request): ...\n",
        _helpers="raise RuntimeError('imported by nobody')\n",
    )
    assert list(project.dataflows) == ["orders"]
    first = HEAD_LINES + 1
    assert errors(project) == [
        f"dataflows/below.py:{first}: found KeyError: 'url' (shop_client.py:2), expected a module that can be imported",
        (
            "dataflows/empty.py:1: found no function with @incremental_asset, expected one, or a file name that begins with _ for a"
            " module without dataflows"
        ),
        f"dataflows/exits.py:{first}: found SystemExit: 3, expected a module that can be imported",
        (
            f"dataflows/missing.py:{first}: found ModuleNotFoundError: No module named 'nothing_here', expected a module that can be"
            " imported"
        ),
        f"dataflows/syntax.py:{first + 1}: found SyntaxError: invalid syntax, expected a module that can be imported",
    ]
    assert sorted(project.broken) == ["empty", "exits", "one", "syntax", "two"]


def test_two_dataflows_of_one_name_are_refused_with_both_files(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/orders.yaml").write_text(
        yaml.safe_dump(
            {
                "source": {"type": "python", "function": "a:b"},
                "watermark": {"type": "column", "columns": ["at"]},
            }
        )
    )
    project = load(tmp_path, shop=ORDERS)
    assert errors(project) == [
        f"dataflows/orders.yaml:1: name: found the name orders, which is also that of dataflows/shop.py:{LINE}, expected each name once",
        f"dataflows/shop.py:{LINE}: name: found the name orders, which is also that of dataflows/orders.yaml:1, expected each name once",
    ]
    assert (list(project.dataflows), list(project.broken)) == ([], ["orders"])


def test_one_function_in_two_files_is_refused_with_both(tmp_path: Path) -> None:
    write(tmp_path, "sales.py", ORDERS)
    project = load(tmp_path, one="from sales import orders", two="from sales import orders")
    assert errors(project) == [
        f"sales.py:{LINE}: name: found the name orders, imported by dataflows/{importer}.py, which is also that of sales.py:{LINE},"
        f" imported by dataflows/{other}.py, expected each name once"
        for importer, other in (("one", "two"), ("two", "one"))
    ]


def test_an_asset_in_a_sub_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "dataflows/more/shop.py", ORDERS)
    write(tmp_path, "dataflows/more/helper.py", "def plain(): ...\n")
    assert errors(load(tmp_path)) == [
        "dataflows/more/shop.py:1: found a file in a sub-folder, expected all files in dataflows/ itself"
    ]


def test_a_changed_module_counts_when_the_project_is_loaded_again(tmp_path: Path) -> None:
    """Also one that a file of dataflows imports, and one of the same size in the same second."""
    write(tmp_path, "sales.py", "LAYER = 'gold_1'\n", head="")
    text = "from sales import LAYER\n" + ORDERS.replace("watermark", "layer=LAYER, watermark")
    assert load(tmp_path, shop=text).dataflows["orders"].layer == "gold_1"
    write(tmp_path, "sales.py", "LAYER = 'gold_23'\n", head="")
    assert load_project(tmp_path).dataflows["orders"].layer == "gold_23"
    project = load(tmp_path, shop=ORDERS.replace("watermark", "layer='gold_4', watermark"))
    assert project.dataflows["orders"].layer == "gold_4"
    project = load(tmp_path, shop=ORDERS.replace("watermark", "layer='gold_5', watermark"))
    assert project.dataflows["orders"].layer == "gold_5"
    name = "dataflows.shop:orders"
    assert user_function("source.function", name, tmp_path) is sys.modules["dataflows.shop"].orders


def test_two_projects_in_one_process_may_have_files_of_one_name(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        load(tmp_path / str(number), shop=ORDERS.replace('"id": 1', f'"id": {number}'))
    rows = [
        user_function("source.function", "dataflows.shop:orders", tmp_path / str(number))(None)[0]["id"]
        for number in (1, 2, 1)
    ]
    assert rows == [1, 2, 1]


def test_commands_know_a_python_dataflow_as_any_other(tmp_path: Path) -> None:
    write(tmp_path, "platform.yaml", "{state: ./state, lake: ./lake}", head="")
    load(tmp_path, shop="print('noise')\n" + ORDERS, bad="import nothing_here\n")
    call = CliRunner().invoke
    listed = call(strandline, ["--project", str(tmp_path), "--json", "list"])
    assert [document["dataflow"] for document in json.loads(listed.stdout)] == ["orders", "bad"]
    checked = call(strandline, ["--project", str(tmp_path), "validate"])
    assert checked.exit_code == 2
    assert "1 error in 1 file; 1 dataflow without errors" in checked.output
    shown = call(strandline, ["--project", str(tmp_path), "state", "show", "orders"])
    assert shown.output.endswith(
        "no entry: nothing was loaded yet, or the state was lost (a run shows which)\n"
    )


def test_projects_of_one_process_have_modules_of_their_own(tmp_path: Path) -> None:
    modules = {
        "client.py": "WHO = '{}'",
        "dataflows/_common.py": "from client import WHO",
        "package/__init__.py": "",
        "package/part.py": "WHO = '{}'",
    }
    for side in ("a", "b"):
        for file, text in modules.items():
            (tmp_path / side / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / side / file).write_text(text.format(side))
        (tmp_path / side / "direct.py").write_text("import client\ndef who():\n    return client.WHO\n")
        (tmp_path / side / "dataflows/shop.py").write_text(
            "import client, package.part\nfrom dataflows._common import WHO\n"
            "def who():\n    import client as late\n    return client.WHO + package.part.WHO + WHO + late.WHO\n"
        )
    (tmp_path / "a/only_a.py").write_text("WHO = 'a'")
    for side in ("a", "b", "a"):
        assert user_function("function", "dataflows.shop:who", tmp_path / side)() == side * 4
        assert user_function("function", "direct:who", tmp_path / side)() == side
    kept = user_function("function", "direct:who", tmp_path / "a")
    assert user_function("function", "direct:who", tmp_path / "a") is kept
