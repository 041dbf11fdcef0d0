"""Writes the name of a dataflow's table into its file, so that the file can be renamed."""

from __future__ import annotations

from typing import Any

import yaml

from partitions.errors import ConfigurationError
from platform_assets.project.yaml_text import Unreadable, parse


def with_table(text: str, table: str) -> str:
    """Return a dataflow's YAML text with ``target.table``; all else stays, also comments and order.

    Raises:
        ConfigurationError: if no line can be inserted into the text, such as for a target that is an
        alias.
    """
    document = parse(text.encode()).value
    target = document.get("target")
    if isinstance(target, dict) and "table" in target:
        return text
    changed = _insert(text, table)
    if changed is None or not _names_table(changed, document, table):
        raise ConfigurationError(
            f"expected a file into which `table: {table}` can be inserted below `target`, found another form. Add it yourself, then rename again"
        )
    return changed


def with_other_table(text: str, table: str) -> str:
    """Return a dataflow's YAML text with another ``target.table``, if it names one; all else stays.

    Raises:
        ConfigurationError: if the name cannot be replaced in the text, such as for a target that is an
        alias.
    """
    document = parse(text.encode()).value
    target = document.get("target")
    if not isinstance(target, dict) or "table" not in target:
        return text
    changed = _replace(text, table)
    if changed is None or not _names_table(changed, document, table):
        raise ConfigurationError(
            f"expected a file in which `table: {target['table']}` can be replaced below `target`, found another form. Write {table} there yourself,"
            " then rename again"
        )
    return changed


def _replace(text: str, table: str) -> str | None:
    """Return the text with another ``target.table``; None if ``target`` is no mapping of its own."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    target = _value(root, "target")
    node = _value(target, "table")
    if not isinstance(node, yaml.ScalarNode):
        return None
    return f"{text[: node.start_mark.index]}{table}{text[node.end_mark.index :]}"


def _value(mapping: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((value for name, value in mapping.value if name.value == key), None)


def _names_table(text: str, document: dict[str, Any], table: str) -> bool:
    """Return whether a text reads as the document with another ``target.table``, and nothing else changed."""
    target = document.get("target") or {}
    try:
        return parse(text.encode()).value == {**document, "target": {**target, "table": table}}
    except Unreadable:
        return False


def _insert(text: str, table: str) -> str | None:
    """Return the text with the key first in ``target``; None if ``target`` is no mapping of its own."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    target = _value(root, "target")
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
