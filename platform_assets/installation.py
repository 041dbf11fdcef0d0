"""Locate the installed code: a checkout, or the package ``strandline`` of a wheel.

A checkout has its three packages side by side (docs/explanation/adr/0026-a-wheel-of-one-package.md).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from resources.user_modules import DATAFLOWS as DATAFLOWS

PACKAGE = __name__.rpartition(".")[0]
"""The name under which this layer is imported: ``platform_assets``, or ``strandline.platform_assets``."""

SETTINGS = "platform.yaml"
"""What a project's folder holds beside or instead of :data:`DATAFLOWS`."""

INSTALLED = PACKAGE != "platform_assets"
"""Whether the code comes from a wheel, and not from a checkout."""

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the three packages: the checkout, or the installed package."""


def installed_version() -> str:
    """Return the version of the product, from the wheel's metadata or the checkout's pyproject.toml."""
    if INSTALLED:
        return version("strandline")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return f"{project['project']['version']} (checkout)"


def default_project() -> Path:
    """Return the project's folder when a call names none: the working folder if it is a project.

    In a checkout, any other working folder means the checkout's own project.
    """
    current = Path.cwd()
    return current if INSTALLED or is_project(current) else ROOT / "platform_assets"


def is_project(folder: Path) -> bool:
    """Return whether a folder holds a project's settings or dataflows."""
    return any((folder / name).exists() for name in (SETTINGS, "platform.yml", DATAFLOWS))


def working_folder(project: Path) -> Path:
    """Return the folder where Dagster's processes start, so that they can import the project's modules."""
    return project if INSTALLED else ROOT


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the class-data archive and the list of jars.

    They belong to the installation, not to a project.
    """
    if not INSTALLED:
        return ROOT / ".strandline" / "cache"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strandline"
