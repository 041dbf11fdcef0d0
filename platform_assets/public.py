"""The names that a user's own code imports from ``strandline`` (docs/how-to/own-project.md).

In the wheel this module is the package itself. Names are imported on first use: ``strandline validate``
does not wait for Dagster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from platform_assets.asset_keys import ColumnKeys as ColumnKeys
    from platform_assets.asset_keys import IncrementalAssetKeys as IncrementalAssetKeys
    from platform_assets.asset_keys import TargetKeys as TargetKeys
    from platform_assets.asset_keys import WindowKeys as WindowKeys
    from platform_assets.build import build_definitions as build_definitions
    from platform_assets.component import StrandlineProject as StrandlineProject
    from platform_assets.incremental_asset import IncrementalAsset as IncrementalAsset
    from platform_assets.incremental_asset import incremental_asset as incremental_asset
    from platform_assets.platform import packages as packages
    from platform_assets.platform import spark_conf as spark_conf
    from platform_assets.project import load_project as load_project
    from platform_assets.project_resources import SparkResource as SparkResource
    from platform_assets.project_resources import WatermarkResource as WatermarkResource
    from platform_assets.translator import StrandlineAsset as StrandlineAsset
    from platform_assets.translator import StrandlineTranslator as StrandlineTranslator
    from resources.sources.python.request import Request as Request

    __version__: str

__all__ = [
    "ColumnKeys",
    "IncrementalAsset",
    "IncrementalAssetKeys",
    "Request",
    "SparkResource",
    "StrandlineAsset",
    "StrandlineProject",
    "StrandlineTranslator",
    "TargetKeys",
    "WatermarkResource",
    "WindowKeys",
    "__version__",
    "build_definitions",
    "incremental_asset",
    "load_project",
    "packages",
    "spark_conf",
]

_MODULES = {
    "ColumnKeys": "asset_keys",
    "IncrementalAsset": "incremental_asset",
    "IncrementalAssetKeys": "asset_keys",
    "Request": "incremental_asset",
    "SparkResource": "project_resources",
    "StrandlineAsset": "translator",
    "StrandlineProject": "component",
    "StrandlineTranslator": "translator",
    "TargetKeys": "asset_keys",
    "WatermarkResource": "project_resources",
    "WindowKeys": "asset_keys",
    "build_definitions": "build",
    "incremental_asset": "incremental_asset",
    "load_project": "project",
    "packages": "platform",
    "spark_conf": "platform",
}


def __getattr__(name: str) -> Any:
    from platform_assets.installation import PACKAGE, installed_version

    if name == "__version__":
        return installed_version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{PACKAGE}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, so that ``dg`` finds the component."""
    return [*globals(), *__all__]
