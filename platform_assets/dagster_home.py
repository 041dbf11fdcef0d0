"""Where a project's Dagster keeps its runs: below the project, unless the user has set DAGSTER_HOME."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platform_assets.installation import ROOT

HOME = "DAGSTER_HOME"

_SETTINGS = "dagster.yaml"
_NOTE = f"# Written again by each start of `strandline dev`. For settings of your own set {HOME}.\n\n"


def dagster_home(project: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of a project's runs, with settings in it.

    Args:
        project: its folder.
        environment: its DAGSTER_HOME wins over the project's own folder.
    """
    if given := environment.get(HOME):
        return Path(given)
    home = project_home(project)
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f".{_SETTINGS}.{os.getpid()}"
    draft.write_text(_NOTE + (ROOT / _SETTINGS).read_text())
    draft.replace(home / _SETTINGS)
    return home


def project_home(project: Path) -> Path:
    """Return a project's own folder of runs, which may not exist yet. The checkout's project has it beside its state."""
    folder = project.resolve()
    return (ROOT if folder == ROOT / "platform_assets" else folder) / ".strandline" / "dagster"
