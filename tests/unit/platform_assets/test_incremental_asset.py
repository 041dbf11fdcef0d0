"""`@incremental_asset`: its keys are those of a YAML file, and the function can still be called."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, Definitions
from dagster.components.testing import create_defs_folder_sandbox
from pydantic import BaseModel

from partitions.checks import CheckSettings
from partitions.column.definition import ColumnWatermark, RowCheckpoint
from partitions.column.lookback import LookBack
from partitions.column.predicates import ColumnRange
from partitions.dataflow import Dataflow, Freshness
from partitions.errors import ConfigurationError
from partitions.maintenance_periods import Maintenance
from partitions.retention import Retention
from partitions.run_settings import OnCron, Retry
from partitions.sources import PythonSource
from partitions.target import Target
from partitions.window.dagster_units import Buckets
from partitions.window.definition import WindowCheckpoint, WindowWatermark
from partitions.window.entries import DatetimeEntry, Range, UnitEntry
from partitions.window.incomplete import LoadAfter
from partitions.window.secondary_input import SecondaryInput
from platform_assets import asset_keys, public
from platform_assets.build import build_definitions
from platform_assets.component import StrandlineProject
from platform_assets.project import load_project
from platform_assets.public import Request, incremental_asset
from tests.support.python_projects import load, write

BY_TIME: asset_keys.ColumnKeys = {"type": "column", "columns": ["at"]}
MODELS: Mapping[str, type[BaseModel]] = {
    "ColumnKeys": ColumnWatermark,
    "RowCheckpointKeys": RowCheckpoint,
    "LookBackKeys": LookBack,
    "WindowKeys": WindowWatermark,
    "WindowCheckpointKeys": WindowCheckpoint,
    "DatetimeEntryKeys": DatetimeEntry,
    "UnitEntryKeys": UnitEntry,
    "TimeRange": Range,
    "SecondaryInputKeys": SecondaryInput,
    "LoadAfterKeys": LoadAfter,
    "BucketsKeys": Buckets,
    "TargetKeys": Target,
    "RetentionKeys": Retention,
    "FreshnessKeys": Freshness,
    "MaintenanceKeys": Maintenance,
    "RetryKeys": Retry,
    "OnCronKeys": OnCron,
    "CheckKeys": CheckSettings,
}
OF_FILES = {
    "late_files",
    "on_bad_file",
    "max_bad_files",
    "max_bad_records",
    "show_bad_records",
    "operators",
}
"""Keys that mean nothing to a dataflow of a function."""


def _keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_type_of_the_keys_names_what_the_model_reads(name: str) -> None:
    assert set(getattr(asset_keys, name).__annotations__) == _keys(MODELS[name])


def test_the_decorator_takes_every_key_of_a_dataflow_and_of_its_source() -> None:
    assert set(asset_keys.SOURCE_KEYS) == _keys(PythonSource) - {"type", "function"}
    assert set(asset_keys.ASSET_KEYS) == (_keys(Dataflow) - {"source"} - OF_FILES) | asset_keys.SOURCE_KEYS


def test_a_decorated_function_is_called_as_before() -> None:
    @incremental_asset(watermark=BY_TIME, params={"pages": 2, "names": ("a", "b")})
    def orders(request: Request) -> list[Any]:
        """Orders."""
        return [
            request.lower,
            request.upper,
            request.lower_inclusive,
            request.upper_inclusive,
            request.params,
        ]

    request = orders.request(lower=datetime(2026, 1, 1, tzinfo=UTC), upper=datetime(2026, 1, 2, tzinfo=UTC))
    assert orders(request) == [
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 2, tzinfo=UTC),
        False,
        True,
        {"pages": 2, "names": ["a", "b"]},
    ]
    assert request.dataflow == "orders"
    assert orders.__doc__ == "Orders."
    assert orders(orders.request(params={}))[:2] == [None, None]


def test_a_request_of_a_test_may_have_several_columns_or_a_window() -> None:
    @incremental_asset(name="sales", watermark={"type": "column", "columns": ["a", "b"]})
    def orders(request: Request) -> list[dict[str, object]]:
        return [{"a": request.bounds}]

    request = orders.request(bounds={"a": (1, None), "b": (None, 2)}, connection={"token": "x"})
    assert request == Request(
        "sales", {"a": ColumnRange("a", 1, None), "b": ColumnRange("b", None, 2)}, connection={"token": "x"}
    )
    with pytest.raises(
        ConfigurationError, match="lower and upper are bounds of a watermark of one column, found a, b"
    ):
        orders.request(lower=1)
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    window = orders.request(start=start, end=end, unit={"region": "eu"})
    assert (window.time_range, window.unit) == ((start, end), {"region": "eu"})
    with pytest.raises(ConfigurationError, match="expected a request of a window, found one without bounds"):
        _ = orders.request().time_range


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function, found type"):
        incremental_asset(watermark=BY_TIME)(dict)  # type: ignore[arg-type, type-var]


def test_an_async_function_is_refused_with_what_to_do() -> None:
    async def orders(request: Request) -> list[dict[str, object]]:
        return []

    with pytest.raises(
        TypeError, match=r"found async def orders\. Nothing awaits it: call asyncio\.run in a plain"
    ):
        incremental_asset(watermark=BY_TIME)(orders)  # type: ignore[type-var]


def test_the_examples_of_the_page_load_and_their_test_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).resolve().parents[3] / "docs/how-to/incremental-assets.md"
    files = re.findall(r"```python\n# (\S+)\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.setitem(sys.modules, "strandline", public)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    write(tmp_path, "my_platform/__init__.py", "")
    write(tmp_path, "my_platform/orders.py", RETURNS)
    for file, text in files:
        write(
            tmp_path,
            file,
            text.replace("my_platform.orders import orders, returns", "my_platform.orders import returns"),
            head="",
        )
    project = load_project(tmp_path, environment={})
    assert project.errors == []
    assert list(project.dataflows) == ["orders", "returns", "visits"]
    names = dict[str, Any]()
    exec((tmp_path / "tests/test_visits.py").read_text(), names)
    names["test_a_day_has_one_row_per_region"]()
    for name in [name for name in sys.modules if name.startswith(("dataflows", "my_platform"))]:
        del sys.modules[name]


RETURNS = """
@incremental_asset(watermark=BY_TIME)
def returns(request): ...
"""
PROJECT = """
@incremental_asset(
    watermark={
        "type": "window",
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-03"}}],
        "window": "daily",
    },
    schema="id long, day date",
    window_column="day",
    schedule="@daily",
    owners=["team:shop"],
)
def orders(request): ...

@incremental_asset(watermark=BY_TIME, inputs={"orders": "bronze/orders"}, sql="SELECT * FROM input", automation_condition="eager")
def returns(request): ...
"""


def test_dagster_shows_a_function_as_any_other_dataflow(tmp_path: Path) -> None:
    write(tmp_path, "platform.yaml", "{state: ./state, lake: ./lake}", head="")
    defs = build_definitions(load(tmp_path, shop=PROJECT, bad="import nothing_here\n"))
    Definitions.validate_loadable(defs)
    assets = {key: spec for spec in defs.resolve_all_asset_specs() for key in [spec.key.to_user_string()]}
    assert sorted(assets) == [
        "bronze/bad",
        "bronze/orders",
        "bronze/returns",
        "watermark/orders",
        "watermark/returns",
    ]
    orders, returns = assets["bronze/orders"], assets["bronze/returns"]
    assert orders.partitions_def is not None
    assert orders.partitions_def.get_partition_keys() == ["2026-01-01", "2026-01-02"]
    assert orders.owners == ["team:shop"]
    (reference,) = orders.metadata["dagster/code_references"].code_references
    path = tmp_path / "dataflows/shop.py"
    decorators = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line[:1] == "@"]
    assert (Path(reference.file_path), reference.line_number) == (path, decorators[0])
    assert [dep.asset_key for dep in returns.deps] == [AssetKey(["bronze", "orders"])]
    assert returns.automation_condition is not None
    assert "No module named 'nothing_here'" in (assets["bronze/bad"].description or "")
    repository = defs.get_repository_def()
    assert {"orders_windows", "returns_upstream"} <= {sensor.name for sensor in repository.sensor_defs}
    assert "orders_schedule" in {schedule.name for schedule in repository.schedule_defs}
    assert repository.has_job("load_orders")


def test_the_component_loads_python_files() -> None:
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=StrandlineProject,
            defs_path="loads",
            defs_yaml_contents={"type": "platform_assets.component.StrandlineProject"},
        )
        write(folder, "platform.yaml", "{state: ./state, lake: ./lake}", head="")
        write(folder, "dataflows/shop.py", PROJECT)
        with sandbox.load_component_and_build_defs(defs_path=folder) as (_, defs):
            assert AssetKey(["bronze", "orders"]) in {spec.key for spec in defs.resolve_all_asset_specs()}
