"""Compute and apply differences of two JSON objects (docs/reference/state.md).

With them small steps of a long state stay small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Difference = dict[str, list[Any]]
"""``{"set": [[path, value], …], "unset": [path, …]}``; a path is the list of names that leads to a value."""


def json_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """Return the changes that turn ``old`` into ``new``.

    Objects are compared name by name, all other values as a whole.
    """
    return {"set": list(_set(old, new, [])), "unset": list(_unset(old, new, []))}


def apply_difference(old: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Apply changes to a copy of ``old``.

    Raises:
        ValueError: the changes do not belong to ``old``.
    """
    patched: dict[str, Any] = json.loads(json.dumps(old))
    try:
        for path in change["unset"]:
            del _parent_of(patched, path)[path[-1]]
        for path, value in change["set"]:
            _parent_of(patched, path)[path[-1]] = value
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"expected changes to this state, found changes to another: {error!r}") from error
    return patched


def _set(old: Mapping[str, Any], new: Mapping[str, Any], above: list[str]) -> Iterator[list[Any]]:
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            yield from _set(before, value, [*above, name])
        elif name not in old or json.dumps(before, sort_keys=True) != json.dumps(value, sort_keys=True):
            yield [[*above, name], value]


def _unset(old: Mapping[str, Any], new: Mapping[str, Any], above: list[str]) -> Iterator[list[str]]:
    for name, value in old.items():
        if name not in new:
            yield [*above, name]
        elif isinstance(value, dict) and isinstance(new[name], dict):
            yield from _unset(value, new[name], [*above, name])


def _parent_of(parent: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for name in path[:-1]:
        parent = parent[name]
    return parent
