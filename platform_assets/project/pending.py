"""What the specification describes and the product does not have yet.

One table. A row names a key and its values; what is there instead the model says, unless the row does. When a feature
lands, its row is deleted; nothing else here changes. Without the table a user would read a cascade of unknown keys for a whole
part of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from platform_assets.project.document import Document, Key, within
from platform_assets.project.errors import ProjectError
from platform_assets.project.secrets import shown
from platform_assets.project.shapes import in_words, shapes_at

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Pending:
    """Values of a key that are refused by name.

    Attributes:
        key: dotted; ``*`` is any name.
        test: which values.
        missing: the feature and its verb, ``column watermarks are``.
        there: what is expected today; None: the values that the model takes at the key.
        part: the keys for which no other error is reported, since it would follow from this row; by default the
            key itself.
    """

    key: str
    test: Test
    missing: str
    there: str | None = None
    part: str | None = None

    def expected(self, model: type[BaseModel], key: Key) -> str:
        """Return what the product has at a key of a model, and what it does not have yet."""
        there = self.there or in_words(shapes_at(model, key))
        return f"{there} ({self.missing} not there yet, see ROADMAP.md)"


def scheme(*schemes: str) -> Test:
    """Return a test for a URL with one of these schemes."""
    return lambda value: isinstance(value, str) and value.partition("://")[0] in schemes and "://" in value


_STORES = ("gs", "az", "abfs", "abfss")
_PLACE = "a folder or s3://bucket/prefix"

SETTINGS: tuple[Pending, ...] = (
    *(
        Pending(f"{key}{path}", scheme(*_STORES), "other object stores are", _PLACE)
        for key in ("state", "lake")
        for path in ("", ".path")
    ),
)

DATAFLOW: tuple[Pending, ...] = (Pending("source.path", scheme(*_STORES), "other object stores are", _PLACE),)


def not_there(
    document: Document, value: dict[str, Any], model: type[BaseModel], rows: tuple[Pending, ...]
) -> tuple[list[ProjectError], list[Key]]:
    """Return the errors of a file for missing features, and the parts for which no other error must be reported.

    Args:
        document: the file as it was written.
        value: its values, with the environment's texts in them.
        model: of the file.
        rows: what is not there.
    """
    errors: list[ProjectError] = []
    parts: list[Key] = []
    for row in rows:
        for key, given in _matches(value, tuple(row.key.split("."))):
            if row.test(given) and not any(within(key, part) for part in parts):
                errors.append(document.error(key, shown(document.get(key), key), row.expected(model, key)))
                parts.append(key[: row.part.count(".") + 1] if row.part else key)
    return errors, parts


def _matches(value: Any, key: tuple[str, ...], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield every value at a dotted key with wildcards, in each item of a list."""
    if not key:
        yield above, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _matches(item, key, (*above, index))
    elif isinstance(value, dict):
        for part in value if key[0] == "*" else [key[0]]:
            if part in value:
                yield from _matches(value[part], key[1:], (*above, part))
