"""Where this code lies: a checkout with its three folders side by side, or the one package ``strandline`` of a wheel (docs/explanation/adr/0026-a-wheel-of-one-package.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PACKAGE = __name__.rpartition(".")[0]
"""The name under which this layer is imported: ``platform_assets``, or ``strandline.platform_assets``."""

SETTINGS, DATAFLOWS = "platform.yaml", "dataflows"
"""What a project's folder holds: one of them, or both."""

INSTALLED = PACKAGE != "platform_assets"
"""Whether the code comes from a wheel, and not from a checkout."""

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the three packages: the checkout, or the installed package."""


def default_project() -> Path:
    """Return the project of calls that name none: the working folder; in a checkout its own, if the working folder is none."""
    here = Path.cwd()
    return here if INSTALLED or is_project(here) else ROOT / "platform_assets"


def is_project(folder: Path) -> bool:
    """Return whether a folder holds a project's settings or dataflows."""
    return any((folder / name).exists() for name in (SETTINGS, "platform.yml", DATAFLOWS))


def working_folder(project: Path) -> Path:
    """Return the folder in which Dagster's processes start, so that they find this code and a project's own modules."""
    return project if INSTALLED else ROOT


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the class-data archive and the list of jars: they are of this installation, not of a project."""
    if not INSTALLED:
        return ROOT / ".strandline" / "cache"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strandline"
