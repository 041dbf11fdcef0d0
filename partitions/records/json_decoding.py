"""Lossless JSON decoding: members keep their order and duplicates, numbers their spelling.

Also the positions at which values begin and end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from partitions.json_types import json_type

BLANK = " \t\r\n"
BESIDE_BRACKETS = r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"|[^\[\]{}"]++|"'
"""Pattern: the text between the brackets of objects and arrays, including quoted texts that hold brackets."""

MAX_LEVELS = 30
"""The most nesting levels of a record where types are inferred: Spark Connect sends no type of more than 33."""

_BESIDE_BRACKETS = re.compile(BESIDE_BRACKETS)
_IN_ONE_LINE = {ord("\r"): " ", ord("\n"): " "}
_BLANKS = re.compile(r"[ \t\r\n]*")


class MemberOrder(NamedTuple):
    """The order of an object's members; ``inner`` has the order of nested objects by name."""

    order: tuple[str, ...]
    inner: Mapping[str, MemberOrder]


class Members(list[tuple[str, Any]]):
    """The members of a JSON object in their order; a name may occur twice."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number
)
"""Decodes without loss: objects as :class:`Members`, numbers as they are written."""


_PLAIN_DECODER = json.JSONDecoder()


def records_of_document(text: str) -> Iterator[str]:
    """Yield the records of a valid JSON document, each as one line with its original characters.

    The document is an object or an array of objects.
    """
    position = value_start(text)
    if text.startswith("[", position):
        position = skip_blanks(text, position + 1)
    while position < len(text) and text[position] != "]":
        _, end = _PLAIN_DECODER.raw_decode(text, position)
        yield text[position:end].translate(_IN_ONE_LINE)
        position = skip_blanks(text, end)
        if text.startswith(",", position):
            position = skip_blanks(text, position + 1)


def first_record_names(text: str) -> MemberOrder | None:
    """Return the member order of the first record; None if it is not JSON, or a name occurs twice.

    Args:
        text: the beginning of a file of lines, or of a document.
    """
    begin = value_start(text)
    if text.startswith("[", begin):
        begin = skip_blanks(text, begin + 1)
    try:
        value, _ = DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    return _names(value) if isinstance(value, Members) else None


_NamesByCase = dict[str, tuple[str, "_NamesByCase"]]
"""By case-folded name: the first spelling, and the names inside that field."""


def depth_of(text: str) -> int:
    """Return the deepest nesting of objects and arrays in a text."""
    depth = deepest = 0
    for bracket in _BESIDE_BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether a decoded value nests objects and arrays deeper than ``levels``.

    Works without recursion, since a value may have any number of levels.
    """
    level = _containers([value])
    for _ in range(levels):
        level = _containers(part for container in level for part in _parts(container))
    return bool(level)


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, list | dict)]


def _parts(container: list[Any] | dict[str, Any]) -> Iterable[Any]:
    if isinstance(container, dict):
        return container.values()
    return (item for _, item in container) if isinstance(container, Members) else container


def find_case_conflict_in_records(text: str) -> tuple[str, str, int | None] | None:
    """Return two names in the same place of records that differ in case only; None if there are none.

    The third item is the line, from 1, of the record with the second name.
    """
    position = value_start(text)
    names_so_far: _NamesByCase = {}
    while position < len(text):
        if text[position] in "[,]":
            position = skip_blanks(text, position + 1)
            continue
        try:
            value, end = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if names := _find_case_conflict(value, names_so_far):
            return *names, line_of(text, position)
        position = skip_blanks(text, end)
    return None


class Spellings:
    """The spellings of names in the records from which one schema is inferred."""

    def __init__(self) -> None:
        """Start without names."""
        self._names_by_case: _NamesByCase = {}

    def add_record(self, text: str) -> bool:
        """Add a record's names; return whether its schema can be inferred together with the earlier records.

        It cannot if an object has a name twice, if two names at the same place differ in case only, or if
        objects and arrays nest deeper than ``MAX_LEVELS``. Text that is not JSON has no names.
        """
        try:
            value, _ = DECODER.raw_decode(text, value_start(text))
            if is_deeper(value, MAX_LEVELS) or _has_doubled_name(value):
                return False
        except ValueError:
            return True
        except RecursionError:
            return False
        if _find_case_conflict(value, {}) or _find_case_conflict(
            value, self._names_by_case, adds_names=False
        ):
            return False
        _find_case_conflict(value, self._names_by_case)
        return True


def _has_doubled_name(value: Any) -> bool:
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(_has_doubled_name(item) for _, item in value)
    return isinstance(value, list) and any(map(_has_doubled_name, value))


def _find_case_conflict(
    value: Any, spellings: _NamesByCase, *, adds_names: bool = True
) -> tuple[str, str] | None:
    """Return two names that differ in case only, in an object or one inside it; None if there are none.

    ``spellings`` has the names of earlier objects at the same place; with ``adds_names`` it receives the
    new ones.
    """
    if isinstance(value, list) and not isinstance(value, Members):
        inner = (_find_case_conflict(item, spellings, adds_names=adds_names) for item in value)
        return next((names for names in inner if names), None)
    if not isinstance(value, Members):
        return None
    for name, item in value:
        default: tuple[str, _NamesByCase] = (name, {})
        key = name.casefold()
        first_spelling, inside = (
            spellings.setdefault(key, default) if adds_names else spellings.get(key, default)
        )
        if first_spelling != name:
            return first_spelling, name
        if names := _find_case_conflict(item, inside, adds_names=adds_names):
            return names
    return None


def type_of(value: Any) -> str:
    """Return the type of a decoded value in JSON's words."""
    if isinstance(value, Number):
        return "a number"
    return json_type({}) if isinstance(value, Members) else json_type(value)


def _names(value: Members) -> MemberOrder | None:
    inner: dict[str, MemberOrder] = {}
    for name, item in value:
        if isinstance(item, Members) and (member_order := _names(item)) is not None:
            inner[name] = member_order
    order = tuple(name for name, _ in value)
    return MemberOrder(order, inner) if len(set(order)) == len(order) else None


def value_start(text: str) -> int:
    """Return the position of the first value, after a byte order mark and blanks."""
    return skip_blanks(text, 1 if text.startswith("\ufeff") else 0)


def skip_blanks(text: str, position: int) -> int:
    """Return the position of the next character that is not blank; the text's end if there is none."""
    match = _BLANKS.match(text, position)
    assert match is not None
    return match.end()


def next_item_start(text: str, position: int) -> int:
    """Return the position of an array's next item, or of its closing bracket.

    Raises:
        JSONDecodeError: neither follows.
    """
    if text.startswith(",", position):
        position = skip_blanks(text, position + 1)
        if text.startswith("]", position):
            raise json.JSONDecodeError("Expecting value", text, position)
    elif not text.startswith("]", position):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
    return position


def line_of(text: str, position: int) -> int:
    """Return the line of a character, from 1."""
    return text.count("\n", 0, position) + 1
