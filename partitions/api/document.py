"""The records of an answer, as the API wrote them: JSON is walked down to them, and each stays the text that it is.

So a number reaches Spark with all its digits, and only a page is in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs; the same function that json itself uses
from typing import Any, NamedTuple

from partitions.json_types import json_type

_BLANK = re.compile(r"[ \t\n\r]*")
_SCAN: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # as above
_MISSING = object()
_SHOWN = 10


class DocumentError(ValueError):
    """An answer that does not hold what was expected.

    Attributes:
        broken: whether the text itself is not whole, as of an answer that was cut off; asked again it may be.
    """

    def __init__(self, expected: str, found: str, *, broken: bool = False) -> None:
        """Keep whether it is broken; the text has the rest."""
        super().__init__(f"expected {expected}, found {found}")
        self.broken = broken


class Record(NamedTuple):
    """One record.

    Attributes:
        text: as it was sent, in one line.
        value: of its fields.
    """

    text: str
    value: Mapping[str, Any]


@dataclass(frozen=True)
class Document:
    """An answer.

    Attributes:
        records: in their order.
        rest: everything else of it.
    """

    records: Sequence[Record]
    rest: Any

    def at(self, path: str) -> Any:
        """Return the value at a dotted path beside the records; None if there is none."""
        value = self.rest
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value


def parsed(text: str, path: str | None) -> Document:
    """Return the records of an answer, and what stands beside them.

    Args:
        text: JSON.
        path: dotted, of the records: an array of objects, one object, or null for no record. None: the document itself.

    Raises:
        DocumentError: it is no JSON, nothing is at the path, or something else than records.
    """
    names = tuple(path.split(".")) if path else ()
    walk = _Walk(text, names)
    try:
        rest, end = walk.value(_after_blank(text, 0), names)
    except (StopIteration, json.JSONDecodeError, IndexError, RecursionError, ValueError) as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError("JSON", _why(text, error), broken=True) from None
    if _after_blank(text, end) != len(text):
        raise DocumentError("one JSON document", f"more behind its end, at character {end}", broken=True)
    if walk.records is None:
        raise DocumentError(f"records at {path}", _what_is_there(rest, names))
    return Document(walk.records, rest)


def parsed_lines(text: str) -> Document:
    """Return the records of an answer in lines, each a JSON object.

    Raises:
        DocumentError: a line is none.
    """
    records: list[Record] = []
    for line in text.splitlines():
        if line.strip():
            records += parsed(line, None).records
    return Document(records, {})


class _Walk:
    """The way down to the records; what lies beside it is parsed as it is passed."""

    def __init__(self, text: str, path: Sequence[str]) -> None:
        self._text, self._path = text, path
        self.records: list[Record] | None = None

    def value(self, start: int, names: Sequence[str]) -> tuple[Any, int]:
        """The value that begins there, without records, and where it ends."""
        if not names:
            return self._records(start)
        if self._text[start] != "{":
            return _scanned(self._text, start)
        return self._object(start, names)

    def _object(self, start: int, names: Sequence[str]) -> tuple[dict[str, Any], int]:
        text, members = self._text, dict[str, Any]()
        end = _after_blank(text, start + 1)
        if text[end] == "}":
            return members, end + 1
        while True:
            if text[end] != '"':
                raise IndexError(end)
            name, end = scanstring(text, end + 1, True)
            end = _after_blank(text, end)
            if text[end] != ":":
                raise IndexError(end)
            end = _after_blank(text, end + 1)
            members[name], end = self.value(end, names[1:]) if name == names[0] else _scanned(text, end)
            end = _after_blank(text, end)
            if text[end] == "}":
                return members, end + 1
            if text[end] != ",":
                raise IndexError(end)
            end = _after_blank(text, end + 1)

    def _records(self, start: int) -> tuple[Any, int]:
        text = self._text
        self.records = []
        if text[start] != "[":
            value, end = _scanned(text, start)
            if value is not None:
                self._add(start, end, value)
            return value, end
        end = _after_blank(text, start + 1)
        if text[end] == "]":
            return [], end + 1
        while True:
            value, after = _SCAN(text, end)
            self._add(end, after, value)
            end = after if text[after] in "],{" else _after_blank(text, after)
            if text[end] == "]":
                return [], end + 1
            if text[end] != ",":
                raise IndexError(end)
            end = end + 1 if text[end + 1] == "{" else _after_blank(text, end + 1)

    def _add(self, start: int, end: int, value: Any) -> None:
        records = self.records if self.records is not None else []
        if not isinstance(value, dict):
            where = f" at {'.'.join(self._path)}" if self._path else ""
            raise DocumentError(
                f"objects as records{where}", f"{json_type(value)} as record {len(records) + 1}"
            )
        line = self._text[start:end]
        if "\n" in line or "\r" in line:  # between the fields: in a text they are escaped
            line = line.replace("\n", " ").replace("\r", " ")
        records.append(Record(line, value))


def _scanned(text: str, start: int) -> tuple[Any, int]:
    value: tuple[Any, int] = _SCAN(text, start)
    return value


def _after_blank(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


def _why(text: str, error: Exception) -> str:
    if not text.strip():
        return "an empty answer"
    match error:
        case RecursionError():
            return "values nested too deeply"
        case json.JSONDecodeError():
            return f"{error.msg.lower()} at character {error.pos}"
        case StopIteration():
            return f"no value at character {error.value} of {len(text)}"
        case IndexError() if error.args and isinstance(error.args[0], int):
            return f"something else at character {error.args[0]} of {len(text)}"
        case IndexError():
            return f"its end at character {len(text)}"
    return str(error)


def _what_is_there(rest: Any, names: Sequence[str]) -> str:
    """How far the path goes, and what is there."""
    value, passed = rest, list[str]()
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            break
        passed.append(name)
        value = value[name]
    where = f"at {'.'.join(passed)} " if passed else ""
    if not isinstance(value, Mapping):
        return f"{where}{json_type(value)}"
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return f"{where}only {', '.join(list(value)[:_SHOWN]) or 'an empty object'}{more}"
