"""What changed between two JSON objects, so that a long state is not written whole for each small step (docs/reference/state.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Difference = dict[str, list[Any]]
"""``{"set": [[path, value], …], "unset": [path, …]}``; a path is the list of names that leads to a value."""


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """What makes ``new`` of ``old``. Objects are compared name by name, everything else as a whole."""
    return {"set": list(_set(old, new, [])), "unset": list(_unset(old, new, []))}


def applied(old: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``new`` again; ``old`` stays as it is.

    Raises:
        ValueError: if the difference is not one of ``old``.
    """
    made: dict[str, Any] = json.loads(json.dumps(old))
    try:
        for path in change["unset"]:
            del _at(made, path)[path[-1]]
        for path, value in change["set"]:
            _at(made, path)[path[-1]] = value
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"expected a difference of this state, found one of another: {error!r}") from error
    return made


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


def _at(made: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for name in path[:-1]:
        made = made[name]
    return made
