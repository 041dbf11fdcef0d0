"""The link from an asset's page to its YAML, in an editor and at its git address (docs/reference/dagster.md)."""

from __future__ import annotations

import warnings
from pathlib import Path

from dagster import (
    AnchorBasedFilePathMapping,
    AssetKey,
    AssetsDefinition,
    BetaWarning,
    link_code_references_to_git,
)

from platform_assets.build import build_definitions

FLOW = """# Receipts.
layer: bronze
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
"""


def test_the_link_opens_the_yaml_at_its_source_also_at_its_git_address(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/receipts.yaml").write_text(FLOW)
    assets = list(build_definitions(tmp_path).get_repository_def().assets_defs_by_key.values())
    key = AssetKey(["bronze", "receipts"])
    (asset,) = {id(each): each for each in assets if key in each.keys}.values()
    (local,) = asset.metadata_by_key[key]["dagster/code_references"].code_references
    assert (local.file_path, local.line_number) == (str(tmp_path / "dataflows/receipts.yaml"), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        (linked,) = link_code_references_to_git(
            assets_defs=[asset],
            git_url="https://github.com/example/shop",
            git_branch="main",
            file_path_mapping=AnchorBasedFilePathMapping(
                local_file_anchor=tmp_path / "dataflows/receipts.yaml",
                file_anchor_path_in_repository="shop/dataflows/receipts.yaml",
            ),
        )
    assert isinstance(linked, AssetsDefinition)
    (address,) = linked.metadata_by_key[key]["dagster/code_references"].code_references
    assert address.url == "https://github.com/example/shop/tree/main/shop/dataflows/receipts.yaml#L3"
