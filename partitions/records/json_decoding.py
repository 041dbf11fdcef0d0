"""JSON text decoded without a loss, and where its values begin and end: members of objects stay in order and doubled, numbers as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from partitions.json_types import json_type

BLANK = " \t\r\n"
BESIDE_BRACKETS = r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"|[^\[\]{}"]++|"'
"""The pattern of what stands between the brackets of objects and arrays: texts, which may hold some, and all else."""

MOST_LEVELS = 30
"""Objects and arrays of a record that may lie in each other where types are inferred: Spark Connect sends no type of more than 33."""

_BESIDE_BRACKETS = re.compile(BESIDE_BRACKETS)
_IN_ONE_LINE = {ord("\r"): " ", ord("\n"): " "}
_BLANKS = re.compile(r"[ \t\r\n]*")


class MemberOrder(NamedTuple):
    """The members of an object in the order in which a writer puts them; ``inner`` holds those of objects inside, by name."""

    order: tuple[str, ...]
    inner: Mapping[str, MemberOrder]


class Members(list[tuple[str, Any]]):
    """The members of a JSON object, in their order, also if a name stands twice."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number
)
"""Decodes without a loss: objects as :class:`Members`, numbers as they are written."""


_PLAIN_DECODER = json.JSONDecoder()


def records_of_document(text: str) -> Iterator[str]:
    """Yield the records of a sound JSON document, an object or an array of objects, in their own letters; each is one line."""
    position = begin_of(text)
    if text.startswith("[", position):
        position = skip_blanks(text, position + 1)
    while position < len(text) and text[position] != "]":
        _, end = _PLAIN_DECODER.raw_decode(text, position)
        yield text[position:end].translate(_IN_ONE_LINE)
        position = skip_blanks(text, end)
        if text.startswith(",", position):
            position = skip_blanks(text, position + 1)


def first_names(text: str) -> MemberOrder | None:
    """Return the names of the first record in their order; None if it does not read, or has one of them twice.

    Args:
        text: the beginning of a file of lines, or of a document.
    """
    begin = begin_of(text)
    if text.startswith("[", begin):
        begin = skip_blanks(text, begin + 1)
    try:
        value, _ = DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    return _names(value) if isinstance(value, Members) else None


_Spellings = dict[str, tuple[str, "_Spellings"]]
"""Names as they are first spelt, by their form without case, with those inside."""


def depth_of(text: str) -> int:
    """Return how many objects and arrays of a text lie in each other, at most."""
    depth = most = 0
    for bracket in _BESIDE_BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether more objects and arrays of a decoded value lie in each other than so many levels; without recursion, since they may be any number."""
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


def names_by_case(text: str) -> tuple[str, str, int | None] | None:
    """Return two names at one place of records that differ in upper and lower case only, and the line of the record with the second, from 1; None if there are none."""
    position = begin_of(text)
    across: _Spellings = {}
    while position < len(text):
        if text[position] in "[,]":
            position = skip_blanks(text, position + 1)
            continue
        try:
            value, end = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if names := _in_two_cases(value, across):
            return *names, line_of(text, position)
        position = skip_blanks(text, end)
    return None


class Spellings:
    """How the names of records are spelt, of which one schema is to be inferred."""

    def __init__(self) -> None:
        """Know no name yet."""
        self._spelt: _Spellings = {}

    def take(self, text: str) -> bool:
        """Learn the names of a record, and return whether a schema of it can be inferred beside those before it; text that is no JSON tells no names.

        It cannot if an object, at any depth, has a name twice, or one that differs from another at its place in upper and lower case only, or if more than
        ``MOST_LEVELS`` objects and arrays lie in each other.
        """
        try:
            value, _ = DECODER.raw_decode(text, begin_of(text))
            if is_deeper(value, MOST_LEVELS) or _has_doubled_name(value):
                return False
        except ValueError:
            return True
        except RecursionError:
            return False
        if _in_two_cases(value, {}) or _in_two_cases(value, self._spelt, learns=False):
            return False
        _in_two_cases(value, self._spelt)
        return True


def _has_doubled_name(value: Any) -> bool:
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(_has_doubled_name(item) for _, item in value)
    return isinstance(value, list) and any(map(_has_doubled_name, value))


def _in_two_cases(value: Any, spellings: _Spellings, *, learns: bool = True) -> tuple[str, str] | None:
    """Two names that differ in case only, of an object or of one inside; ``spellings`` has those of all objects at the same place, and learns these."""
    if isinstance(value, list) and not isinstance(value, Members):
        inner = (_in_two_cases(item, spellings, learns=learns) for item in value)
        return next((names for names in inner if names), None)
    if not isinstance(value, Members):
        return None
    for name, item in value:
        default: tuple[str, _Spellings] = (name, {})
        key = name.casefold()
        spelt, inside = spellings.setdefault(key, default) if learns else spellings.get(key, default)
        if spelt != name:
            return spelt, name
        if names := _in_two_cases(item, inside, learns=learns):
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
        if isinstance(item, Members) and (below := _names(item)) is not None:
            inner[name] = below
    order = tuple(name for name, _ in value)
    return MemberOrder(order, inner) if len(set(order)) == len(order) else None


def begin_of(text: str) -> int:
    """Where the first value begins: behind a byte order mark and space."""
    return skip_blanks(text, 1 if text.startswith("\ufeff") else 0)


def skip_blanks(text: str, position: int) -> int:
    """The place of the first character from here on that is no space; the text's end if there is none."""
    match = _BLANKS.match(text, position)
    assert match is not None
    return match.end()


def behind_item(text: str, position: int) -> int:
    """Return the place of the next item of an array, or of the bracket that closes it.

    Raises:
        JSONDecodeError: neither stands there.
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
