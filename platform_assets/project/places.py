"""Checks of places: paths, their connections, and that no dataflow loads its own output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from partitions.path.hidden import is_hidden_path
from partitions.spelling import nearest_name
from platform_assets.project.checked_file import Checked
from platform_assets.project.document import Key
from platform_assets.project.secret_keys import display_value
from platform_assets.project.settings import Settings
from resources.connections.postgres import SCHEMES, AddressError, Database

PLACES: tuple[Literal["state", "lake"], ...] = ("state", "lake")
"""The keys of places in the settings."""

PASSED = "dagster"
"""The type of a connection that is passed to ``build_definitions``; what it is tells only Dagster."""

_EXPECTED = "a folder or s3://bucket/prefix"
_STATE_TOO = " or postgresql://host/database"
_OTHER_STORES = ("gs", "az", "abfs", "abfss")
_NOT_SUPPORTED = " (other object stores are not supported yet, see ROADMAP.md)"


def check_place(
    checked: Checked[Any], path: Key, connection: Key, connections: Mapping[str, str] | None
) -> None:
    """Refuse a path with an unknown scheme, or a connection that does not exist or fit.

    Args:
        checked: the file.
        path: the key of the path.
        connection: the key of the connection's name.
        connections: their types by name; None if the settings cannot be read.
    """
    text, name = checked.text(*path), checked.text(*connection)
    scheme, remote, rest = (text or "").partition("://")
    if remote and (scheme not in ("s3", "file") or not rest.strip("/")):
        expected = _EXPECTED.replace(" or", ",") + _STATE_TOO if path[0] == "state" else _EXPECTED
        not_yet = _NOT_SUPPORTED if scheme in _OTHER_STORES else ""
        checked.refuse(path, checked.written_text(*path), f"{expected}{not_yet}", _nearest(scheme, path))
    is_known = connections is None or name in connections
    if name is not None and text and scheme != "s3" and is_known:
        checked.refuse(
            connection,
            f"the connection {checked.written_text(*connection)} with a folder",
            "no connection, or a path s3://bucket/prefix",
        )
    else:
        check_connection(checked, connection, connections, "s3")


def check_connection(
    checked: Checked[Any], key: Key, connections: Mapping[str, str] | None, connection_type: str
) -> None:
    """Refuse a connection that does not exist or has another type.

    Args:
        checked: the file.
        key: the key of the connection's name.
        connections: their types by name; None if the settings cannot be read.
        connection_type: the required type.
    """
    name = checked.text(*key)
    if name is None or connections is None:
        return
    if name not in connections:
        candidates = sorted(
            known_name for known_name, kind in connections.items() if kind == connection_type
        ) or sorted(connections)
        names = ", ".join(candidates) or "none: platform.yaml has no connections"
        checked.refuse(
            key,
            checked.written_text(*key),
            f"one of the connections of platform.yaml: {names}",
            nearest_name(name, candidates),
        )
    elif connections[name] not in (connection_type, PASSED):
        checked.refuse(
            key,
            f"{checked.written_text(*key)}, of type {connections[name]}",
            f"a connection of type {connection_type}",
        )


def check_database(checked: Checked[Any], path: Key, connection: Key) -> None:
    """Refuse an address that is no database's, or a connection beside it. Opens nothing.

    Args:
        checked: the file.
        path: the key of the address.
        connection: the key of a connection's name.
    """
    try:
        Database.parse(checked.text(*path) or "")
    except AddressError as error:
        checked.refuse(path, error.actual, error.expected)
    if checked.text(*connection) is not None:
        checked.refuse(
            connection,
            f"the connection {checked.written_text(*connection)} with a database",
            "no connection: libpq's PG* variables complete the address",
        )


def check_not_own_output(checked: Checked[Any], settings: Checked[Settings], folder: Path) -> None:
    """Refuse a source inside state or lake, or around them if its listing would include them.

    Args:
        checked: a dataflow's file.
        settings: the file with state and lake.
        folder: the base of relative paths.
    """
    for where in source_keys(checked):
        _check_source_place(checked, settings, folder, (*where, "path"))


def source_keys(checked: Checked[Any]) -> list[Key]:
    """Return the keys of a dataflow's sources: one, or one for each item of a list."""
    sources = checked.value.get("source")
    return (
        [("source", index) for index in range(len(sources))] if isinstance(sources, list) else [("source",)]
    )


def _check_source_place(checked: Checked[Any], settings: Checked[Settings], folder: Path, key: Key) -> None:
    text = checked.text(*key)
    if text is None or settings.valid is None:
        return
    source_address = _address(text, folder)
    for name in PLACES:
        address = _address(settings.valid.place(name).path, folder)
        written = display_value(
            settings.document.get(place_key(settings, name), settings.valid.place(name).path)
        )
        if _below(source_address, address) is not None:
            checked.refuse(
                key,
                f"{checked.written_text(*key)}, inside the {name} ({written})",
                "a place outside: a run would load its own output",
            )
        inner = _below(address, source_address)
        if inner and not is_hidden_path(inner):
            checked.refuse(
                key,
                f"{checked.written_text(*key)}, with the {name} ({written}) inside it",
                "a place beside it: a run would load its own output",
            )


def place_key(settings: Checked[Settings], name: str) -> Key:
    """Return the key of a place's path, which may stand alone or in a mapping."""
    return (name, "path") if settings.document.has((name, "path")) else (name,)


def _nearest(scheme: str, path: Key) -> str | None:
    if scheme in ("s3a", "s3n"):
        return "s3"
    return nearest_name(scheme, SCHEMES[:1]) if path[0] == "state" else None


def _address(text: str, folder: Path) -> str:
    """Return an address that can be compared: links followed, no dots."""
    scheme, remote, rest = text.partition("://")
    if remote and scheme != "file":
        return text.rstrip("/")
    return os.path.realpath(folder / Path(rest if remote else text).expanduser())


def _below(inner: str, outer: str) -> str | None:
    """Return the path from outer to inner, "" if they are the same; None if inner lies elsewhere."""
    if inner == outer:
        return ""
    base = outer.rstrip("/") + "/"
    return inner.removeprefix(base) if inner.startswith(base) else None
