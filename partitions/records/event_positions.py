"""The position of a change event in the log of its database, as a text that orders events.

Texts compare by their bytes. A row that a snapshot has read at a position is before all changes there, and a
delete before another change of the same row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


class NoPosition(ValueError):
    """An event whose position cannot be told; the text says what was found."""


def event_position(source: Mapping[str, Any], operation: str) -> str:
    """Return the position of an event.

    Args:
        source: the event's ``source``.
        operation: its ``op``.

    Raises:
        NoPosition: the connector is none of those that are known, or a part of the position is missing.
    """
    connector = str(source.get("connector"))
    place = _PLACES.get(connector)
    if place is None:
        raise NoPosition(f"connector {connector}")
    try:
        snapshot, changes = place(source)
    except (KeyError, TypeError, ValueError):
        raise NoPosition(f"connector {connector} without it") from None
    if operation == "r":
        return snapshot
    return f"{changes}:{0 if operation == 'd' else 1}"


def _postgresql(source: Mapping[str, Any]) -> tuple[str, str]:
    """Return the places of PostgreSQL, whose events come in the order of commits.

    A transaction that was open during an earlier commit has changes below it: that commit's place goes first.
    """
    lsn = _number(source["lsn"])
    last_commit, *_ = json.loads(str(source.get("sequence") or "[null]"))
    place = _log_sequence(lsn)
    if last_commit is None or _number(last_commit) <= lsn:
        return place, place
    return place, f"{_log_sequence(_number(last_commit))}:{place}"


def _log_sequence(lsn: int) -> str:
    return f"{lsn >> 32:08X}/{lsn & 0xFFFFFFFF:08X}"


def _mysql(source: Mapping[str, Any]) -> tuple[str, str]:
    name, _, number = str(source["file"]).rpartition(".")
    place = f"{name}.{_number(number):010}:{_number(source['pos']):020}"
    return place, f"{place}:{_number(source.get('row') or 0):010}"


def _sqlserver(source: Mapping[str, Any]) -> tuple[str, str]:
    commit = _text(source["commit_lsn"])
    change, number = source.get("change_lsn"), source.get("event_serial_no") or 0
    return commit, f"{commit}:{_text(change) if change else ''}:{_number(number):010}"


def _oracle(source: Mapping[str, Any]) -> tuple[str, str]:
    """Return the places of Oracle, whose events come in the order of commits: a commit's place goes first."""
    place, commit = f"{_number(source['scn']):020}", source.get("commit_scn")
    record, number = str(source.get("rs_id") or "").strip(), source.get("ssn") or 0
    change = f"{place}:{record}:{_number(number):010}"
    return place, change if commit is None else f"{_number(commit):020}:{change}"


def _number(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value.lower()


_PLACES: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
    "sqlserver": _sqlserver,
    "db2": _sqlserver,
    "oracle": _oracle,
}
"""By connector: the place of a row of a snapshot, and of a change."""

CONNECTORS = tuple(_PLACES)
"""The connectors whose positions are known, as ``source.connector`` names them."""
