"""The files of a project for production: Dagster's settings, its workspace, and how to start them."""

from __future__ import annotations

import re
from pathlib import Path

from platform_assets.installation import ROOT
from platform_assets.scaffold.new_project import dataflow_name

FOLDER = "deploy"
"""The folder of these files, in the product and in a project."""

_NAMES = ("README.md", "dagster.yaml", "workspace.yaml")
_LINK = re.compile(r"\[([^\]]*)\]\(\.\./[^)]*\)")
"""A link to a page of the product, which a project does not have."""

_ABOUT_TESTS = re.compile(r"^\[tests/[^\n]*\n", re.MULTILINE)


def deployment_files(folder: Path) -> dict[str, str]:
    """Return the texts of a project's files for production, by their paths in it.

    Args:
        folder: the project's folder.
    """
    texts = {name: (ROOT / FOLDER / name).read_text(encoding="utf-8") for name in _NAMES}
    location = dataflow_name(folder.resolve().name, "strandline")
    texts["workspace.yaml"] = texts["workspace.yaml"].replace(
        "location_name: strandline", f"location_name: {location}"
    )
    texts["README.md"] = _LINK.sub(r"\1", _ABOUT_TESTS.sub("", texts["README.md"]))
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}
