"""Environments: ``platform.NAME.yaml`` beside ``platform.yaml`` (docs/how-to/environments.md).

The settings of an environment are ``platform.yaml`` with the keys of its own file over it. Two environments
share neither state nor lake.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from partitions.errors import ConfigurationError
from partitions.spelling import nearest_name
from platform_assets.installation import SETTINGS
from platform_assets.project.document import Key, YamlDocument, value_at
from platform_assets.project.errors import ProjectError
from platform_assets.project.references import reference_of

ENV = "STRANDLINE_ENV"
"""The environment variable that names the environment; ``--env`` wins over it."""

STATE_AND_LAKE = ("state", "lake")

_FILE = re.compile(r"platform\.(?P<name>.+)\.yaml")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_POSTGRES = ("postgresql://", "postgres://")


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


def merge_documents(base: YamlDocument, own: YamlDocument) -> YamlDocument:
    """Return platform.yaml with the keys of an environment's own file over it.

    Mappings are merged, key by key. All else is replaced: texts, numbers, lists, references to secrets, and a
    connection of another type. A key with null in the own file is left out. Errors keep file and line.
    """
    merged = YamlDocument(base.file, errors=[*base.errors, *own.errors])
    merged.readable = base.readable and own.readable
    merged.positions = dict(base.positions)
    merged.value = _merged(base.value, own.value, (), merged, own)
    return merged


def _merged(
    base: Mapping[str, Any], own: Mapping[str, Any], key: Key, merged: YamlDocument, document: YamlDocument
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


def _take_positions(key: Key, merged: YamlDocument, document: YamlDocument) -> None:
    """Give a replaced value the positions of the file that it stands in."""
    for place in [place for place in merged.positions if place[: len(key)] == key]:
        del merged.positions[place]
    for place, position in document.positions.items():
        if place[: len(key)] == key:
            merged.positions[place] = position
            merged.files[place] = document.file


def shared_places(
    settings: YamlDocument, env: str | None, others: Mapping[str | None, YamlDocument], folder: Path
) -> Iterator[tuple[str, str, str]]:
    """Yield each place that an environment shares: its key, what is shared, and what to do.

    Places that are only known when they are looked up are not compared.

    Args:
        settings: the merged settings of the environment.
        env: its name.
        others: the merged settings of the other environments, by name.
        folder: the project's folder.
    """
    for name in STATE_AND_LAKE:
        own_place = _place(settings, name, env, folder)
        for other, document in others.items():
            other_place = _place(document, name, other, folder)
            if own_place and other_place and _overlap(own_place, other_place):
                whose = f"environment {other} has too" if other else f"{SETTINGS} has without an environment"
                own_default = default_place(name, env) if env else f"another {name} in {settings_file(other)}"
                yield (
                    name,
                    f"{_written(settings, name, env)}, which {whose}",
                    f"a place of its own, such as {own_default}: environments share neither state nor lake",
                )
                break


def _written(document: YamlDocument, name: str, env: str | None) -> str:
    return str(_text(document, name, env))


def _text(document: YamlDocument, name: str, env: str | None) -> str | None:
    """Return the address of state or lake as it is written; None for a reference, and for wrong forms."""
    value = document.get((name,), default_place(name, env))
    text = value.get("path") if isinstance(value, dict) and not reference_of(value) else value
    return text if isinstance(text, str) and text else None


def _place(document: YamlDocument, name: str, env: str | None, folder: Path) -> tuple[str, str] | None:
    """Return the store of a place and the path in it; None if only a look-up tells them."""
    text = _text(document, name, env)
    if text is None:
        return None
    if text.startswith(_POSTGRES):
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port or 5432
        except ValueError:  # of another form, which is refused elsewhere
            return None
        return (f"postgresql://{host}:{port}", parts.path) if host else None
    scheme, is_url, rest = text.partition("://")
    if is_url and scheme != "file":
        connection = document.get((name, "connection"))
        endpoint = value_at(document.value, ("connections", connection or "", "endpoint"))
        return f"{scheme} at {endpoint}", rest.strip("/")
    return "", os.path.realpath(folder / Path(rest if is_url else text).expanduser())


def _overlap(place: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two places are one, or one lies inside the other."""
    (store, path), (other_store, other_path) = place, other
    return store == other_store and (
        f"{path}/".startswith(f"{other_path}/") or f"{other_path}/".startswith(f"{path}/")
    )
