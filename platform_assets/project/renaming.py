"""The text of a dataflow's file with its table's name written into it, so that the file can have another name."""

from __future__ import annotations

from typing import Any

import yaml

from partitions.errors import ConfigurationError
from platform_assets.project.yaml_text import Unreadable, parse


def with_table(text: str, table: str) -> str:
    """Return the YAML text of a dataflow with ``target.table``; all else stays, comments and order included.

    Raises:
        ConfigurationError: the text has a form that no line can be put into, such as a target that is an alias.
    """
    before = parse(text.encode()).value
    target = before.get("target")
    if isinstance(target, dict) and "table" in target:
        return text
    changed = _insert(text, table)
    if changed is None or not _reads_as(changed, _expected(before, table)):
        raise ConfigurationError(
            f"expected a file into which `table: {table}` can be put below `target`; found another form. Write it there yourself, and rename again"
        )
    return changed


def _reads_as(text: str, document: dict[str, Any]) -> bool:
    try:
        return parse(text.encode()).value == document
    except Unreadable:
        return False


def _expected(document: dict[str, Any], table: str) -> dict[str, Any]:
    target = document.get("target") or {}
    return {**document, "target": {**target, "table": table}}


def _insert(text: str, table: str) -> str | None:
    """Return the text with the key in the first place of ``target``; None if that is no mapping of its own."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    target = next((value for key, value in root.value if key.value == "target"), None)
    if target is None:
        return f"{text.rstrip()}\ntarget: {{table: {table}}}\n"
    if not isinstance(target, yaml.MappingNode):
        return None
    place = target.start_mark.index
    if target.flow_style:
        comma = ", " if target.value else ""
        return f"{text[: place + 1]}table: {table}{comma}{text[place + 1 :]}"
    indent = " " * target.start_mark.column
    return f"{text[:place]}table: {table}\n{indent}{text[place:]}"
