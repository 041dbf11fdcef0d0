"""The names of the fields that records have, and whether a schema has them all.

Belongs here: facts that are known while records are fetched. Does not belong here: which record has an
unknown field, and what happens to it (``resources.sources.files.fields``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.schema_types import Schema, Type

_MAX_NAMES = 10_000
"""The most names that are collected: a map from ids, for example, would add new ones without end."""

_Names = dict[Any, Any]
"""By name, the names of the objects in that field, also in arrays; and ``_VALUE`` if a record has a value there."""

_VALUE = object()
_NO_TYPE = "void"


class FieldNames:
    """The names of all fields of the records, at any depth."""

    def __init__(self) -> None:
        """Start without records."""
        self._names: _Names = {}
        self._count = 0
        self._is_complete = True

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the names of a record of plain JSON values."""
        if not self._is_complete:
            return
        try:
            self._add(record, self._names)
        except RecursionError:
            self._is_complete = False
        if self._count > _MAX_NAMES:
            self._names, self._is_complete = {}, False

    def _add(self, value: Mapping[str, Any], names: _Names) -> None:
        for name, inner in value.items():
            nested_names = names.get(name)
            if nested_names is None:
                nested_names = names[name] = {}
                self._count += 1
            if inner.__class__ is dict:
                self._add(inner, nested_names)
            elif inner.__class__ is list:
                self._add_items(inner, nested_names)
            elif inner is not None:
                nested_names[_VALUE] = True

    def _add_items(self, items: list[Any], names: _Names) -> None:
        for item in items:
            if item.__class__ is dict:
                self._add(item, names)
            elif item.__class__ is list:
                self._add_items(item, names)
            elif item is not None:
                names[_VALUE] = True

    def lacks(self, column: str) -> bool:
        """Return whether certainly no record has a field of this name, ignoring case."""
        return self._is_complete and all(name.casefold() != column.casefold() for name in self._names)

    def are_all_in(self, schema: Schema) -> bool:
        """Return whether certainly all names are the schema's, in the same spelling.

        Args:
            schema: a record's schema. The contents of a column without fields of its own are no fields.
        """
        return self._is_complete and _are_all_in(self._names, schema)


def _are_all_in(names: _Names, data_type: Type) -> bool:
    while isinstance(data_type, Mapping) and data_type["type"] == "array":
        data_type = data_type["elementType"]
    if data_type == _NO_TYPE:
        return not names  # no record may have a value
    if not isinstance(data_type, Mapping):
        return True
    if data_type["type"] == "map":
        return all(
            _are_all_in(nested_names, data_type["valueType"])
            for name, nested_names in names.items()
            if name is not _VALUE
        )
    if data_type["type"] != "struct":
        return True
    types = {field["name"]: field["type"] for field in data_type["fields"]}
    inner = ((name, nested_names) for name, nested_names in names.items() if name is not _VALUE)
    return all(name in types and _are_all_in(nested_names, types[name]) for name, nested_names in inner)
