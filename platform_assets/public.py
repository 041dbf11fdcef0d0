"""The names that a user's own code imports from ``strandline`` (docs/how-to/own-project.md).

In the wheel this module is the package itself. Names are imported on first use: ``strandline validate``
does not wait for Dagster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from platform_assets.build import build_definitions as build_definitions
    from platform_assets.component import StrandlineProject as StrandlineProject
    from platform_assets.platform import packages as packages
    from platform_assets.project import load_project as load_project

__all__ = ["StrandlineProject", "build_definitions", "load_project", "packages"]

_MODULES = {
    "StrandlineProject": "component",
    "build_definitions": "build",
    "load_project": "project",
    "packages": "platform",
}


def __getattr__(name: str) -> Any:
    from platform_assets.installation import PACKAGE

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{PACKAGE}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, so that ``dg`` finds the component."""
    return [*globals(), *__all__]
