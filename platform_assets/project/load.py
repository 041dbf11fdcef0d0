"""Loads a project folder: reads and checks every file; a file with errors leaves the others usable."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from partitions.dataflow import Dataflow, FilePosition
from partitions.errors import ConfigurationError
from platform_assets.installation import DATAFLOWS, SETTINGS, default_project, is_project
from platform_assets.long_lived import collection_paused
from platform_assets.project.alert_routes import check_alert_routes
from platform_assets.project.checked_file import (
    NAME,
    Checked,
    Complete,
    read_dataflow,
    read_settings,
    settings_document,
)
from platform_assets.project.cross_checks import (
    check_assets,
    check_cycles,
    check_dataflow,
    check_names,
    check_settings,
    check_tables,
    check_waiting,
)
from platform_assets.project.environments import (
    choose_environment,
    environment_names,
    wrong_names,
)
from platform_assets.project.errors import ProjectError, sorted_errors
from platform_assets.project.look_backs import look_backs_of, with_look_back
from platform_assets.project.places import place_key
from platform_assets.project.project import DataflowNames, Project
from platform_assets.project.python_calls import asset_names
from platform_assets.project.python_file import read_python_file
from platform_assets.project.references import Secrets
from platform_assets.project.settings import Settings
from platform_assets.project.shared_places import shared_places
from platform_assets.project.table_formats import with_format
from resources.user_modules import forget_changed

_READERS: Mapping[str, Callable[[Path, str, Secrets, Complete], list[Checked[Dataflow]]]] = {
    ".yaml": lambda *arguments: [read_dataflow(*arguments)],
    ".py": read_python_file,
}
"""What reads the dataflows of a file, by its ending."""

PROJECT = "STRANDLINE_PROJECT"
"""The environment variable that names the project folder."""


@collection_paused()
def load_project(
    folder: Path | None = None, *, env: str | None = None, environment: Mapping[str, str] | None = None
) -> Project:
    """Load a project; errors in its files are part of the result and are not raised.

    Args:
        folder: the project folder; None: ``STRANDLINE_PROJECT``, else the working folder. In a checkout, a
            working folder without a project means ``platform_assets``.
        env: the environment; None: ``STRANDLINE_ENV``, else none; "": none, whatever that names.
        environment: the variables that ``{env: NAME}`` refers to; None: those of the process.

    Raises:
        ConfigurationError: if the folder does not exist, holds no project, or not the environment.
    """
    environment = os.environ if environment is None else environment
    folder = _folder(folder, environment)
    env = choose_environment(folder, env, environment)
    secrets = Secrets(environment, folder)
    settings = read_settings(folder, env, secrets)
    paths, misplaced = _dataflow_files(folder)
    forget_changed(folder)
    look_backs = look_backs_of(settings.value)

    def complete(value: dict[str, Any]) -> dict[str, Any]:
        return with_look_back(look_backs, with_format(settings.value, value))

    flows = [
        flow
        for path in paths
        for flow in _READERS[path.suffix](path, _relative(path, folder), secrets, complete)
    ]
    for flow in flows:
        document = flow.document
        position = FilePosition(document.file_of(("source",)), document.line(("source",)))
        flow.model = flow.model and flow.model.declared_at(position)
    check_names(flows)
    check_settings(settings)
    _check_places_apart(settings, env, secrets)
    for flow in flows:
        check_dataflow(flow, settings, folder)
    check_tables(flows)
    check_assets(flows)
    check_cycles(flows)
    check_waiting(flows)
    check_alert_routes(settings, flows)
    settings.add(_wrong_endings([folder / "platform.yml", *sorted(folder.glob("platform.*.yml"))], folder))
    settings.add(wrong_names(folder))
    return _project(env, settings, flows, misplaced, secrets)


def _check_places_apart(settings: Checked[Settings], env: str | None, secrets: Secrets) -> None:
    """Refuse a state or lake that another environment of the project has, too."""
    names = [None, *environment_names(secrets.folder)]
    others = {name: settings_document(secrets.folder, name) for name in names if name != env}
    for key, actual, expected in shared_places(settings.document, env, others, secrets):
        settings.refuse(place_key(settings, key), actual, expected)


def _project(
    env: str | None,
    settings: Checked[Settings],
    flows: Sequence[Checked[Dataflow]],
    misplaced: Sequence[ProjectError],
    secrets: Secrets,
) -> Project:
    dataflows = {flow.valid.name: flow.valid for flow in flows if flow.valid}
    file_errors = [*misplaced, *(error for flow in flows for error in flow.errors)]
    broken: dict[str, list[ProjectError]] = {}
    for error in sorted_errors(misplaced):
        broken.setdefault(_asset_name(Path(error.file).stem), []).append(error)
    for flow in flows:
        if flow.errors:
            broken.setdefault(_asset_name(flow.name), []).extend(sorted_errors(flow.errors))
    return Project(
        folder=secrets.folder,
        env=env,
        dataflows=dict(sorted(dataflows.items())),
        broken={name: errors for name, errors in sorted(broken.items()) if name not in dataflows},
        errors=sorted_errors([*settings.errors, *file_errors]),
        _settings=settings.valid,
        _setting_files={".".join(map(str, key)): file for key, file in settings.document.files.items()},
        _names_by_dataflow={names.name: names for names in map(_names_of, flows)},
        _secrets=secrets,
    )


def _folder(folder: Path | None, environment: Mapping[str, str]) -> Path:
    chosen = folder or Path(environment.get(PROJECT) or default_project())
    root = chosen.expanduser().resolve()
    if not root.is_dir():
        raise ConfigurationError(
            f"project folder {root}: expected a folder, found {'a file' if root.exists() else 'nothing'}"
        )
    if not is_project(root):
        raise ConfigurationError(
            f"project folder {root}: expected {SETTINGS} or {DATAFLOWS}/ in it, found neither"
            f" (`strandline init DIR` makes a project; --project DIR or {PROJECT} names another)"
        )
    return root


def _dataflow_files(folder: Path) -> tuple[list[Path], list[ProjectError]]:
    """Return the files to read, and errors for files that look like dataflows but would be skipped.

    A Python file whose name begins with ``_``, or in a sub-folder, is a module that others may import.
    """
    top = folder / DATAFLOWS
    if top.exists() and not top.is_dir():
        return [], [ProjectError(DATAFLOWS, 1, None, "a file", "a folder with one file a dataflow")]
    files = sorted(
        path for path in top.rglob("*") if _looks_like_dataflows(path, top) and not _hidden(path, top)
    )
    valid_paths = [path for path in files if path.suffix in _READERS and path.parent == top]
    nested_errors = [
        ProjectError(
            _relative(path, folder), 1, None, "a file in a sub-folder", f"all files in {DATAFLOWS}/ itself"
        )
        for path in files
        if path.parent != top
    ]
    return valid_paths, nested_errors + _wrong_endings(
        (path for path in files if path.parent == top and path.suffix not in _READERS), folder
    )


def _looks_like_dataflows(path: Path, top: Path) -> bool:
    if path.suffix == ".py":
        return not path.name.startswith("_") if path.parent == top else bool(asset_names(path))
    return path.suffix.lower() in (".yaml", ".yml")


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
    """Return whether a name in the path starts with a dot, as locks and copies of editors do."""
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _asset_name(name: str) -> str:
    """Return a name that Dagster accepts, made of a dataflow's or a file's name."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"


def _names_of(flow: Checked[Dataflow]) -> DataflowNames:
    name = _asset_name(flow.name)
    asset = f"{_layer(flow)}/{name}"
    return DataflowNames(name, asset, flow.text("target", "table") or asset)


def _layer(flow: Checked[Dataflow]) -> str:
    """Return the layer that a file names, even if it has other errors."""
    layer = flow.text("layer") or ""
    return layer if NAME.fullmatch(layer) and layer != "watermark" else "bronze"
