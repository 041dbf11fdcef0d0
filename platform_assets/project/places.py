"""Checks of where things lie: paths, their connections, and that no dataflow loads its own output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from partitions.path.hidden import hidden
from partitions.spelling import nearest
from platform_assets.project.checked_file import Checked
from platform_assets.project.document import Key
from platform_assets.project.secret_keys import shown
from platform_assets.project.settings import Settings
from resources.connections.postgres import SCHEMES, AddressError, Database

PLACES: tuple[Literal["state", "lake"], ...] = ("state", "lake")
"""The places that the settings name."""

_WANTED = "a folder or s3://bucket/prefix"
_STATE_TOO = " or postgresql://host/database"
_OTHER_STORES = ("gs", "az", "abfs", "abfss")
_NOT_YET = " (other object stores are not there yet, see ROADMAP.md)"


def check_place(
    checked: Checked[Any], path: Key, connection: Key, connections: Mapping[str, str] | None
) -> None:
    """Refuse a path with an unknown scheme, or with a connection that does not exist or fit.

    Args:
        checked: the file.
        path: the key of the path.
        connection: the key of the connection's name.
        connections: their types by name; None if the settings are too broken to tell.
    """
    text, name = checked.text(*path), checked.text(*connection)
    scheme, remote, rest = (text or "").partition("://")
    if remote and (scheme not in ("s3", "file") or not rest.strip("/")):
        wanted = _WANTED.replace(" or", ",") + _STATE_TOO if path[0] == "state" else _WANTED
        not_yet = _NOT_YET if scheme in _OTHER_STORES else ""
        checked.refuse(path, checked.shown(*path), f"{wanted}{not_yet}", _nearest(scheme, path))
    known = connections is None or name in connections
    if name is not None and text and scheme != "s3" and known:
        checked.refuse(
            connection,
            f"the connection {checked.shown(*connection)} beside a folder",
            "no connection, or a path s3://bucket/prefix",
        )
    else:
        check_connection(checked, connection, connections, "s3")


def check_connection(
    checked: Checked[Any], key: Key, connections: Mapping[str, str] | None, wanted: str
) -> None:
    """Refuse a connection that does not exist, or is of another type.

    Args:
        checked: the file.
        key: of the connection's name.
        connections: their types by name; None if the settings are too broken to tell.
        wanted: the type.
    """
    name = checked.text(*key)
    if name is None or connections is None:
        return
    if name not in connections:
        fitting = sorted(known_name for known_name, kind in connections.items() if kind == wanted) or sorted(
            connections
        )
        known = ", ".join(fitting) or "none: platform.yaml has no connections"
        checked.refuse(
            key,
            checked.shown(*key),
            f"one of the connections of platform.yaml: {known}",
            nearest(name, fitting),
        )
    elif connections[name] != wanted:
        checked.refuse(
            key,
            f"{checked.shown(*key)}, of type {connections[name]}",
            f"a connection of type {wanted}",
        )


def check_database(checked: Checked[Any], path: Key, connection: Key) -> None:
    """Refuse an address that is no database's, and a connection beside it. Opens nothing.

    Args:
        checked: the file.
        path: the key of the address.
        connection: the key of a connection's name.
    """
    try:
        Database.parse(checked.text(*path) or "")
    except AddressError as error:
        checked.refuse(path, error.found, error.expected)
    if checked.text(*connection) is not None:
        checked.refuse(
            connection,
            f"the connection {checked.shown(*connection)} beside a database",
            "no connection: what the address leaves out comes from libpq's PG* variables",
        )


def check_apart(checked: Checked[Any], settings: Checked[Settings], folder: Path) -> None:
    """Refuse a source inside state or lake, or around them if a listing would see them.

    Args:
        checked: a dataflow's file.
        settings: the file with state and lake.
        folder: where relative paths count from.
    """
    for where in source_keys(checked):
        _check_apart(checked, settings, folder, (*where, "path"))


def source_keys(checked: Checked[Any]) -> list[Key]:
    """Return the keys of a dataflow's sources: one, or each of a list."""
    given = checked.value.get("source")
    return [("source", index) for index in range(len(given))] if isinstance(given, list) else [("source",)]


def _check_apart(checked: Checked[Any], settings: Checked[Settings], folder: Path, key: Key) -> None:
    text = checked.text(*key)
    if text is None or settings.valid is None:
        return
    own = _address(text, folder)
    for what in PLACES:
        there = _address(settings.valid.place(what).path, folder)
        other = shown(settings.document.get(place_key(settings, what), settings.valid.place(what).path))
        if _below(own, there) is not None:
            checked.refuse(
                key,
                f"{checked.shown(*key)}, inside the {what} ({other})",
                "a place outside: a run would load its own output",
            )
        inner = _below(there, own)
        if inner and not hidden(inner):
            checked.refuse(
                key,
                f"{checked.shown(*key)}, with the {what} ({other}) inside it",
                "a place beside it: a run would load its own output",
            )


def place_key(settings: Checked[Settings], what: str) -> Key:
    """Return the key of a place's path, however it is written."""
    return (what, "path") if settings.document.has((what, "path")) else (what,)


def _nearest(scheme: str, path: Key) -> str | None:
    if scheme in ("s3a", "s3n"):
        return "s3"
    return nearest(scheme, SCHEMES[:1]) if path[0] == "state" else None


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
