"""The assets of dataflows that share a table."""

from __future__ import annotations

from pathlib import Path

from dagster import AssetKey, AssetsDefinition, Definitions, asset
from dagster._core.definitions.utils import DISALLOWED_NAMES

from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from tests.support.names import assets_of

SHARED = (
    "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\n"
    "target: {load: append, table: bronze/both, shared: true}\n"
)
READER = (
    "layer: silver\nsource: {type: table, table: bronze/both}\nwatermark: {type: column, columns: [at]}\n"
)


def test_dataflows_of_a_shared_table_are_assets_upstream_of_readers(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    for name, text in {"a": SHARED, "b": SHARED, "reader": READER}.items():
        (tmp_path / f"dataflows/{name}.yaml").write_text(text)
    project = load_project(tmp_path)
    assert project.errors == []
    platform = build_platform(project)
    assets = {name: assets_of(flow, platform) for name, flow in project.dataflows.items()}

    def shown(definition: AssetsDefinition, key: str) -> dict[str, str]:
        metadata = definition.specs_by_key[AssetKey(key.split("/"))].metadata
        return {name: metadata[name] for name in ("table", "shared_with") if name in metadata}

    assert shown(assets["a"], "bronze/a") == {"table": "bronze/both", "shared_with": "b"}
    assert shown(assets["b"], "bronze/b") == {"table": "bronze/both", "shared_with": "a"}
    assert shown(assets["reader"], "silver/reader") == {}
    above = {dep.asset_key for spec in assets["reader"].specs for dep in spec.deps}
    assert {AssetKey(["bronze", "a"]), AssetKey(["bronze", "b"])} <= above


def test_dagster_s_own_pages_show_a_table_s_name_place_format_and_file(tmp_path: Path) -> None:
    text = SHARED.replace(", table: bronze/both, shared: true", "")
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/events.yaml").write_text(f"# why\n{text}")
    (tmp_path / "dataflows/wrong.yaml").write_text(
        "layer: silver\nsource: {type: files, pth: x, path: y, format: csv}\nwatermark: {type: path}\n"
    )
    definitions = build_definitions(tmp_path)
    specs = {
        spec.key.to_user_string(): spec
        for each in definitions.assets or ()
        if isinstance(each, AssetsDefinition)
        for spec in each.specs
    }
    table = specs["bronze/events"]
    assert {name: table.metadata[f"dagster/{name}"] for name in ("table_name", "uri", "storage_kind")} == {
        "table_name": "bronze.events",
        "uri": str(tmp_path / ".strandline/lake/bronze/events"),
        "storage_kind": "delta",
    }
    assert table.kinds == {"deltalake", "spark"}

    def opened(name: str) -> list[tuple[str, int]]:
        references = specs[name].metadata["dagster/code_references"].code_references
        return [(reference.file_path, reference.line_number) for reference in references]

    file = str(tmp_path / "dataflows/events.yaml")
    assert opened("bronze/events") == opened("watermark/events") == [(file, 2)]
    assert opened("silver/wrong") == [(str(tmp_path / "dataflows/wrong.yaml"), 2)]


def test_a_stream_is_one_step_with_its_late_rows_unless_none_are_kept(tmp_path: Path) -> None:
    stream = "layer: silver\nsource: {type: table, table: bronze/events}\ntarget: {load: append}\n"
    watermark = "watermark: {type: stream, event_time: ts, split: device, timeout: PT5M"
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/kept.yaml").write_text(f"{stream}{watermark}}}\n")
    (tmp_path / "dataflows/dropped.yaml").write_text(f"{stream}{watermark}, late: drop}}\n")
    late = "layer: gold\nsource: {type: table, table: silver/kept__late}\nwatermark: {type: column, columns: [_epoch]}\n"
    (tmp_path / "dataflows/again.yaml").write_text(late)
    definitions = build_definitions(project := load_project(tmp_path))
    assert project.errors == []
    found = {
        name: definitions.resolve_job_def(f"load_{name}").asset_layer.executable_asset_keys
        for name in ("kept", "dropped")
    }
    assert found == {
        "kept": {AssetKey(["silver", "kept"]), AssetKey(["silver", "kept__late"]), AssetKey(["watermark", "kept"])},
        "dropped": {AssetKey(["silver", "dropped"]), AssetKey(["watermark", "dropped"])},
    }  # fmt: skip
    graph = definitions.resolve_asset_graph()
    assert graph.get(AssetKey(["gold", "again"])).parent_keys == {AssetKey(["silver", "kept__late"])}


def test_a_dataflow_may_have_any_name_also_that_of_an_asset_of_the_user(tmp_path: Path) -> None:
    """Its step is named by its key, as Dagster names the steps of assets."""
    (tmp_path / "dataflows").mkdir()
    names = {"orders", "wrong", *(name for name in DISALLOWED_NAMES if name.islower())}
    text = SHARED.replace(", table: bronze/both, shared: true", "")
    for name in names:
        (tmp_path / f"dataflows/{name}.yaml").write_text("source: {}\n" if name == "wrong" else text)

    @asset(deps=[AssetKey(["bronze", "orders"])])
    def orders() -> None: ...

    @asset
    def wrong() -> None: ...

    location = Definitions.merge(build_definitions(tmp_path), Definitions(assets=[orders, wrong]))
    jobs = {job.name for job in location.resolve_all_job_defs()}
    assert jobs >= {f"load_{name}" for name in names - {"wrong"}}
