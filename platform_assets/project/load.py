"""Loads a project folder: every file is read and checked, and one with errors leaves the others usable."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from platform_assets.project.checks import check_circles, check_dataflow, check_settings, check_tables
from platform_assets.project.errors import ProjectError, in_order
from platform_assets.project.project import Made, Project
from platform_assets.project.reading import NAME, Checked, read_dataflow, read_settings
from platform_assets.project.settings import Settings

PROJECT = "STRANDLINE_PROJECT"
"""The variable with the project folder."""

_SETTINGS, _DATAFLOWS = "platform.yaml", "dataflows"
_DEFAULT = Path(__file__).resolve().parent.parent


def load_project(folder: Path | None = None, *, environment: Mapping[str, str] | None = None) -> Project:
    """Load a project; errors in its files are in the result, none is raised.

    Args:
        folder: by default ``STRANDLINE_PROJECT``, else the ``platform_assets`` folder of the checkout.
        environment: what ``{env: NAME}`` refers to, by default the process's.

    Raises:
        ConfigurationError: where there is no such folder, or it holds no project.
    """
    environment = os.environ if environment is None else environment
    folder = _folder(folder, environment)
    settings = read_settings(folder / _SETTINGS, environment)
    paths, misplaced = _dataflow_files(folder)
    flows = [read_dataflow(path, _relative(path, folder), environment) for path in paths]
    check_settings(settings)
    for flow in flows:
        check_dataflow(flow, settings, folder)
    check_tables(flows)
    check_circles(flows)
    settings.add(_wrong_endings([folder / "platform.yml"], folder))
    return _project(folder, settings, flows, misplaced, environment)


def _project(
    folder: Path,
    settings: Checked[Settings],
    flows: Sequence[Checked[Dataflow]],
    misplaced: Sequence[ProjectError],
    environment: Mapping[str, str],
) -> Project:
    dataflows = {flow.valid.name: flow.valid for flow in flows if flow.valid}
    found = [*misplaced, *(error for flow in flows for error in flow.errors)]
    broken: dict[str, list[ProjectError]] = {}
    for error in in_order(found):
        broken.setdefault(_asset_name(error.file), []).append(error)
    return Project(
        folder=folder,
        dataflows=dict(sorted(dataflows.items())),
        broken={name: errors for name, errors in sorted(broken.items()) if name not in dataflows},
        errors=in_order([*settings.errors, *found]),
        _settings=settings.valid,
        _made={made.name: made for made in map(_made, flows)},
        _environment=environment,
    )


def _folder(folder: Path | None, environment: Mapping[str, str]) -> Path:
    chosen = folder or Path(environment.get(PROJECT) or _DEFAULT)
    found = chosen.expanduser().resolve()
    if not found.is_dir():
        raise ConfigurationError(
            f"project folder {found}: expected a folder, found {'a file' if found.exists() else 'nothing'}"
        )
    if not any((found / name).exists() for name in (_SETTINGS, "platform.yml", _DATAFLOWS)):
        raise ConfigurationError(
            f"project folder {found}: expected {_SETTINGS} or {_DATAFLOWS}/*.yaml in it, found neither"
        )
    return found


def _dataflow_files(folder: Path) -> tuple[list[Path], list[ProjectError]]:
    """The files to read, and errors for those that would be passed over though they are meant to be read."""
    top = folder / _DATAFLOWS
    if top.exists() and not top.is_dir():
        return [], [ProjectError(_DATAFLOWS, 1, None, "a file", "a folder with one file a dataflow")]
    found = sorted(
        path for path in top.rglob("*") if path.suffix.lower() in (".yaml", ".yml") and not _hidden(path, top)
    )
    good = [path for path in found if path.suffix == ".yaml" and path.parent == top]
    deep = [
        ProjectError(
            _relative(path, folder), 1, None, "a file in a sub-folder", f"all files in {_DATAFLOWS}/ itself"
        )
        for path in found
        if path.parent != top
    ]
    return good, deep + _wrong_endings(
        (path for path in found if path.parent == top and path not in good), folder
    )


def _wrong_endings(paths: Iterable[Path], folder: Path) -> list[ProjectError]:
    return [
        ProjectError(
            _relative(path, folder),
            1,
            None,
            f"the ending {path.suffix}",
            "the ending .yaml",
            f"{path.stem}.yaml",
        )
        for path in paths
        if path.exists()
    ]


def _hidden(path: Path, top: Path) -> bool:
    """Editors leave locks and copies whose names start with a dot."""
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _asset_name(file: str) -> str:
    """A name that Dagster takes, whatever the file is called."""
    return re.sub(r"[^A-Za-z0-9_]", "_", Path(file).stem) or "_"


def _made(flow: Checked[Dataflow]) -> Made:
    name = _asset_name(flow.document.file)
    asset = f"{_layer(flow)}/{name}"
    return Made(name, asset, flow.text("target", "table") or asset)


def _layer(flow: Checked[Dataflow]) -> str:
    """The layer that a file asks for, even where it is wrong otherwise."""
    found = flow.text("layer") or ""
    return found if NAME.fullmatch(found) and found != "watermark" else "bronze"
