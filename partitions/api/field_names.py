"""The names of the fields that records have, and whether a schema knows them all.

Belongs here: what can be told of records as they are fetched. Does not belong here: which record has an unknown field, and what becomes of it
(``resources.sources.files.fields``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.schema_types import Schema, Type

_MOST = 10_000
"""Names that are kept: a map from ids, say, has ever more."""

_Names = dict[Any, Any]
"""Each name to the names in the objects that stand there, in arrays or not; and ``_VALUE`` if some record has a value there."""

_VALUE = object()
_NO_TYPE = "void"


class FieldNames:
    """The names of all fields that records have, at any depth."""

    def __init__(self) -> None:
        """Begin without a record."""
        self._names: _Names = {}
        self._count = 0
        self._is_complete = True

    def add(self, record: Mapping[str, Any]) -> None:
        """Add those of a record, plain values of JSON."""
        if not self._is_complete:
            return
        try:
            self._add(record, self._names)
        except RecursionError:
            self._is_complete = False
        if self._count > _MOST:
            self._names, self._is_complete = {}, False

    def _add(self, value: Mapping[str, Any], names: _Names) -> None:
        for name, inner in value.items():
            below = names.get(name)
            if below is None:
                below = names[name] = {}
                self._count += 1
            if inner.__class__ is dict:
                self._add(inner, below)
            elif inner.__class__ is list:
                self._add_items(inner, below)
            elif inner is not None:
                below[_VALUE] = True

    def _add_items(self, items: list[Any], names: _Names) -> None:
        for item in items:
            if item.__class__ is dict:
                self._add(item, names)
            elif item.__class__ is list:
                self._add_items(item, names)
            elif item is not None:
                names[_VALUE] = True

    def lack(self, column: str) -> bool:
        """Return whether surely no record has a field of this name, in upper or lower case."""
        return self._is_complete and all(name.casefold() != column.casefold() for name in self._names)

    def are_known(self, schema: Schema) -> bool:
        """Return whether each name is surely one of the schema's, spelt alike; False also if that cannot be told.

        Args:
            schema: of a record. What is inside a column without fields of its own is no field.
        """
        return self._is_complete and _are_known(self._names, schema)


def _are_known(names: _Names, kind: Type) -> bool:
    while isinstance(kind, Mapping) and kind["type"] == "array":
        kind = kind["elementType"]
    if kind == _NO_TYPE:
        return not names  # where nothing has a value
    if not isinstance(kind, Mapping):
        return True
    if kind["type"] == "map":
        return all(
            _are_known(below, kind["valueType"]) for name, below in names.items() if name is not _VALUE
        )
    if kind["type"] != "struct":
        return True
    types = {field["name"]: field["type"] for field in kind["fields"]}
    inner = ((name, below) for name, below in names.items() if name is not _VALUE)
    return all(name in types and _are_known(below, types[name]) for name, below in inner)
