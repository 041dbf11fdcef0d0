"""Environments: ``platform.NAME.yaml`` beside ``platform.yaml`` (docs/how-to/environments.md).

The settings of an environment are ``platform.yaml`` with the keys of its own file over it. Two environments
share neither state nor lake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from partitions.errors import ConfigurationError
from partitions.spelling import nearest_name
from platform_assets.installation import SETTINGS
from platform_assets.project.document import Key, ProjectDocument
from platform_assets.project.errors import ProjectError
from platform_assets.project.references import reference_of

ENV = "STRANDLINE_ENV"
"""The environment variable that names the environment; ``--env`` wins over it."""

STATE_AND_LAKE = ("state", "lake")

_FILE = re.compile(r"platform\.(?P<name>.+)\.yaml")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def settings_file(env: str | None) -> str:
    """Return the name of an environment's own file; that of all of them for none."""
    return f"platform.{env}.yaml" if env else SETTINGS


def default_place(name: str, env: str | None) -> str:
    """Return where state or lake lie if no file says it: each environment has its own."""
    return f"./.strandline/{env}/{name}" if env else f"./.strandline/{name}"


def environment_names(folder: Path) -> list[str]:
    """Return the names of a project's environments, sorted."""
    return sorted(name for name in _written_names(folder) if _NAME.fullmatch(name))


def wrong_names(folder: Path) -> list[ProjectError]:
    """Return an error for each file whose name no environment can have."""
    expected = "a small letter, then small letters, digits, _ and -"
    return [
        ProjectError(settings_file(name), 1, None, f"the environment {name!r}", expected)
        for name in sorted(_written_names(folder))
        if not _NAME.fullmatch(name)
    ]


def _written_names(folder: Path) -> Iterator[str]:
    for path in folder.glob("platform.*.yaml"):
        if match := _FILE.fullmatch(path.name):
            yield match["name"]


def choose_environment(folder: Path, env: str | None, variables: Mapping[str, str]) -> str | None:
    """Return the name of the environment to load; None for platform.yaml alone.

    Args:
        folder: the project's folder.
        env: its name; "" for platform.yaml alone; None: what ``STRANDLINE_ENV`` names, if it is set.
        variables: where that is looked up.

    Raises:
        ConfigurationError: the project has no such environment.
    """
    name = variables.get(ENV, "") if env is None else env
    names = environment_names(folder)
    if not name or name in names:
        return name or None
    close = nearest_name(name, names)
    hint = f" (did you mean {close}?)" if close else ""
    how = f"{ENV}={name}" if env is None else f"--env {name}"
    raise ConfigurationError(
        f"{how}: expected one of the environments of project {folder}: {', '.join(names) or 'it has none'}; found no"
        f" {settings_file(name)}{hint}"
    )


def merge_documents(base: ProjectDocument, own: ProjectDocument) -> ProjectDocument:
    """Return platform.yaml with the keys of an environment's own file over it.

    Mappings are merged, key by key. All else is replaced: texts, numbers, lists, references to secrets, and a
    connection of another type. A key with null in the own file is left out. Errors keep file and line.
    """
    merged = ProjectDocument(base.file, errors=[*base.errors, *own.errors])
    merged.readable = base.readable and own.readable
    merged.positions = dict(base.positions)
    merged.value = _merged(base.value, own.value, (), merged, own)
    return merged


def _merged(
    base: Mapping[str, Any],
    own: Mapping[str, Any],
    key: Key,
    merged: ProjectDocument,
    document: ProjectDocument,
) -> dict[str, Any]:
    values = dict(base)
    for name, value in own.items():
        inner = (*key, name)
        before = values.get(name)
        if _is_merged(before, value):
            values[name] = _merged(before, value, inner, merged, document)  # type: ignore[arg-type]  # both are mappings
        else:
            _take_positions(inner, merged, document)
            values[name] = value
        if value is None:
            del values[name]
    return values


def _is_merged(before: Any, value: Any) -> bool:
    if (
        not (isinstance(before, dict) and isinstance(value, dict))
        or reference_of(before)
        or reference_of(value)
    ):
        return False
    return "type" not in value or before.get("type") == value["type"]


def _take_positions(key: Key, merged: ProjectDocument, document: ProjectDocument) -> None:
    """Give a replaced value the positions of the file that it stands in."""
    for place in [place for place in merged.positions if place[: len(key)] == key]:
        del merged.positions[place]
    for place, position in document.positions.items():
        if place[: len(key)] == key:
            merged.positions[place] = position
            merged.files[place] = document.file
