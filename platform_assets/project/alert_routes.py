"""Check the routes of alerts against the owners and tags of all dataflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.dataflow import Dataflow
from partitions.spelling import nearest_name
from platform_assets.project.checked_file import Checked
from platform_assets.project.document import value_at
from platform_assets.project.settings import Settings

_MAX_NAMED = 5


def check_alert_routes(settings: Checked[Settings], flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse a route for an owner or a tag that no dataflow has: its alerts would go elsewhere, unnoticed.

    They are not checked if a file cannot be read at all, since it may have the owner or the tag.
    """
    routes = value_at(settings.value, ("alerts", "routes"), [])
    if not isinstance(routes, list) or any(not flow.value for flow in flows):
        return
    owners = {str(owner) for flow in flows for owner in _list(flow.value.get("owners"))}
    tags = {f"{name}: {value}" for flow in flows for name, value in _mapping(flow.value.get("tags")).items()}
    for index, route in enumerate(routes):
        owner = value_at(route, ("owner",))
        if isinstance(owner, str) and owner and owner not in owners:
            _refuse(settings, ("alerts", "routes", index, "owner"), owner, "an owner", owners)
        for name, value in _mapping(value_at(route, ("tags",))).items():
            if f"{name}: {value}" not in tags:
                _refuse(
                    settings, ("alerts", "routes", index, "tags", name), f"{name}: {value}", "a tag", tags
                )


def _refuse(
    settings: Checked[Settings], key: tuple[str | int, ...], text: str, word: str, known_texts: set[str]
) -> None:
    names = sorted(known_texts)
    more = ", …" if len(names) > _MAX_NAMED else ""
    such_as = f" ({', '.join(names[:_MAX_NAMED])}{more})" if names else "; no dataflow has one"
    settings.refuse(key, text, f"{word} of a dataflow{such_as}", nearest_name(text, names))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
