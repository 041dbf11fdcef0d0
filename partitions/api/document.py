"""The records of an answer, each with its original text.

Only the JSON above the records is parsed into one value, so that numbers keep all their digits and only
one page is in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs; the same function that json itself uses
from typing import Any, NamedTuple

from partitions.api.values import SentNumber
from partitions.errors import shorten_to_line
from partitions.json_faults import explain_json_error
from partitions.json_types import json_type
from partitions.spelling import first_few

_BLANK = re.compile(r"[ \t\n\r]*")
_MAX_SHOWN_NAMES = 10
_ERROR_FIELDS = ("errors", "error")
"""The fields in which an API reports an error despite a successful status."""
_IGNORE_ERRORS = "ignore"
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_ESCAPE = 6
"""The length of an escape such as ``\\u00e9``."""
_MAX_QUOTED_LETTERS = 300
_NO_RECORDS_REMEDY = (
    "correct source.records, or set records_optional: true if the API leaves it out when there are no records"
)


class DocumentError(ValueError):
    """An answer without the expected contents.

    Attributes:
        is_truncated: whether the text ends in the middle; a repeated request may return all of it.
        remedy: what to do.
    """

    def __init__(
        self,
        expected: str,
        actual: str,
        *,
        is_truncated: bool = False,
        remedy: str = "correct source.records or the other paths in the definition",
    ) -> None:
        """Store the remedy, and whether the text is truncated; the message has the rest."""
        super().__init__(f"expected {expected}, found {actual}")
        self.is_truncated, self.remedy = is_truncated, remedy


class _RepeatedName(Exception):
    """A name that occurs twice in an object."""


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; raise _RepeatedName rather than lose one silently."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedName(next(name for name in names if names.count(name) > 1))
    return members


_SCAN: Any = json.JSONDecoder(object_pairs_hook=_unique_members, parse_float=SentNumber).scan_once  # type: ignore[attr-defined]  # as above


class JsonRecord(NamedTuple):
    """One record.

    Attributes:
        text: its original text, in one line.
        value: its fields.
    """

    text: str
    value: Mapping[str, Any]


@dataclass(frozen=True)
class Document:
    """An answer.

    Attributes:
        records: in their order.
        rest: the answer without its records.
    """

    records: Sequence[JsonRecord]
    rest: Any

    def at(self, path: str) -> Any:
        """Return the value at a dotted path beside the records; None if there is none."""
        value = self.rest
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value


def parse_document(
    text: str, path: str | None, *, errors: str | None = None, is_optional: bool = False
) -> Document:
    """Return the records of a JSON answer, and its other contents.

    Args:
        text: the answer.
        path: the dotted path of the records: an array of objects, or one object. None: the answer itself.
        errors: the dotted path of error details; ``ignore``: there are none. None: ``errors`` or ``error``
        beside the records.
        is_optional: whether null or nothing at the path means that there are no records.

    Raises:
        DocumentError: the text is not JSON, reports an error, repeats a name, or has no records at the
        path.
    """
    names = tuple(path.split(".")) if path else ()
    walk = _RecordScanner(text, names)
    try:
        rest, end = walk.value(_skip_blank(text, 0), names)
    except (
        _RepeatedName,
        StopIteration,
        json.JSONDecodeError,
        IndexError,
        RecursionError,
        ValueError,
    ) as error:
        if isinstance(error, DocumentError):
            raise
        raise _parse_error(text, error, walk) from None
    if _skip_blank(text, end) != len(text):
        raise DocumentError(
            "one JSON document", f"more behind its end, at character {end}", remedy=_WHOLE_DOCUMENT_REMEDY
        )
    document = Document(walk.records or (), rest)
    _check_errors(document, names, errors)
    if walk.records is None and not (is_optional and _is_missing(rest, names)):
        raise DocumentError(
            f"records at {path}" if path else "records",
            _describe_path_end(rest, names),
            remedy=_NO_RECORDS_REMEDY,
        )
    return document


def parse_lines(text: str, *, errors: str | None = None) -> Document:
    """Return the records of an answer with one JSON object per line.

    Args:
        text: the answer.
        errors: the dotted path of error details in a line; None or ``ignore``: there are none.

    Raises:
        DocumentError: a line is no object, or reports an error.
    """
    records: list[JsonRecord] = []
    for line in text.split("\n"):  # other line breaks may occur inside texts
        if line.strip():
            records += parse_document(line, None, errors=errors or _IGNORE_ERRORS).records
    return Document(records, {})


def _check_errors(document: Document, names: Sequence[str], path: str | None) -> None:
    """Raise DocumentError if an answer reports an error beside its records."""
    if path == _IGNORE_ERRORS:
        return
    above = [".".join(names[:depth]) for depth in range(max(1, len(names)))]
    paths = [path] if path else [f"{before}.{name}".lstrip(".") for before in above for name in _ERROR_FIELDS]
    for error_path in paths:
        value = document.at(error_path)
        if value:
            raise DocumentError(
                "an answer without errors",
                f"at {error_path} {shorten_to_line(json.dumps(value, ensure_ascii=False), _MAX_QUOTED_LETTERS)}",
                remedy="the API failed although its status reports success: correct the problem that it names. If this field "
                "is not an error, set source.errors to the field that is one, or to ignore",
            )


class _RecordScanner:
    """A scanner that descends to the records, and parses everything else on the way."""

    def __init__(self, text: str, path: Sequence[str]) -> None:
        self._text, self._path = text, path
        self.records: list[JsonRecord] | None = None
        self.is_in_records = False

    def value(self, start: int, names: Sequence[str]) -> tuple[Any, int]:
        """Return the value at a position without its records, and the position after it."""
        if not names:
            return self._records(start)
        if self._text[start] != "{":
            return _scan_value(self._text, start)
        return self._object(start, names)

    def _object(self, start: int, names: Sequence[str]) -> tuple[dict[str, Any], int]:
        text, members = self._text, dict[str, Any]()
        end = _skip_blank(text, start + 1)
        if text[end] == "}":
            return members, end + 1
        while True:
            if text[end] != '"':
                raise IndexError(end)
            name, end = scanstring(text, end + 1, True)
            if name in members:
                raise _RepeatedName(name)
            end = _skip_blank(text, end)
            if text[end] != ":":
                raise IndexError(end)
            end = _skip_blank(text, end + 1)
            members[name], end = self.value(end, names[1:]) if name == names[0] else _scan_value(text, end)
            end = _skip_blank(text, end)
            if text[end] == "}":
                return members, end + 1
            if text[end] != ",":
                raise IndexError(end)
            end = _skip_blank(text, end + 1)

    def _records(self, start: int) -> tuple[Any, int]:
        self.records, self.is_in_records = [], True
        actual = self._read_records(start)
        self.is_in_records = False
        return actual

    def _read_records(self, start: int) -> tuple[Any, int]:
        text = self._text
        if text[start] != "[":
            value, end = _scan_value(text, start)
            if value is None:
                self.records = None
            else:
                self._add(start, end, value)
            return value, end
        end = _skip_blank(text, start + 1)
        if text[end] == "]":
            return [], end + 1
        while True:
            value, after = _SCAN(text, end)
            self._add(end, after, value)
            end = after if text[after] in "],{" else _skip_blank(text, after)
            if text[end] == "]":
                return [], end + 1
            if text[end] != ",":
                raise IndexError(end)
            end = end + 1 if text[end + 1] == "{" else _skip_blank(text, end + 1)

    def _add(self, start: int, end: int, value: Any) -> None:
        records = self.records if self.records is not None else []
        if not isinstance(value, dict):
            where = f" at {'.'.join(self._path)}" if self._path else ""
            raise DocumentError(
                f"objects as records{where}", f"{json_type(value)} as record {len(records) + 1}"
            )
        line = self._text[start:end]
        if "\n" in line or "\r" in line:  # only between fields: inside texts they are escaped
            line = line.replace("\n", " ").replace("\r", " ")
        records.append(JsonRecord(line, value))


def _scan_value(text: str, start: int) -> tuple[Any, int]:
    value: tuple[Any, int] = _SCAN(text, start)
    return value


def _skip_blank(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


_WHOLE_DOCUMENT_REMEDY = (
    "the API must send one whole JSON document; `strandline doctor` requests one page from it"
)


def _parse_error(text: str, error: Exception, walk: _RecordScanner) -> DocumentError:
    """Return the error for an answer that is not JSON, or not unambiguous."""
    where = f" in record {len(walk.records) + 1}" if walk.is_in_records and walk.records is not None else ""
    if isinstance(error, _RepeatedName):
        return DocumentError(
            "each name once in an object", f"{error} twice{where}", remedy=_WHOLE_DOCUMENT_REMEDY
        )
    if not text.strip():
        return DocumentError("JSON", "an empty answer", is_truncated=True, remedy=_WHOLE_DOCUMENT_REMEDY)
    actual, position = _describe_fault(text, error)
    return DocumentError(
        "JSON", actual, is_truncated=_is_truncated(text, position), remedy=_WHOLE_DOCUMENT_REMEDY
    )


def _describe_fault(text: str, error: Exception) -> tuple[str, int]:
    """Return what is wrong with a text, and the position of the fault.

    The position is the text's end if something is missing there, and 0 if there is none.
    """
    match error:
        case RecursionError():
            return "values nested too deeply", 0
        case json.JSONDecodeError():
            is_open = error.msg.startswith("Unterminated") or (
                error.msg.startswith(r"Invalid \u") and len(text) - error.pos < _ESCAPE - 1
            )
            position = len(text) if is_open else error.pos
            return explain_json_error(error), position
        case StopIteration():
            return f"no value at character {error.value} of {len(text)}", int(error.value)
        case IndexError() if error.args and isinstance(error.args[0], int):
            return f"something else at character {error.args[0]} of {len(text)}", error.args[0]
        case IndexError():
            return f"its end at character {len(text)}", len(text)
    return "a number of more digits than can be read", 0


def _is_truncated(text: str, position: int) -> bool:
    """Return whether a text is valid JSON up to its end, which comes too early."""
    rest = text[position:].rstrip()
    return any(literal.startswith(rest) for literal in _LITERALS)


def _is_missing(rest: Any, names: Sequence[str]) -> bool:
    """Return whether a path leads to null or nothing, without another value on the way."""
    value = rest
    for name in names:
        if not isinstance(value, Mapping):
            break
        value = value.get(name)
    return value is None


def _describe_path_end(rest: Any, names: Sequence[str]) -> str:
    """Describe how far a path leads, and what is there."""
    value, path_so_far = rest, list[str]()
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            break
        path_so_far.append(name)
        value = value[name]
    where = f"at {'.'.join(path_so_far)} " if path_so_far else ""
    if not isinstance(value, Mapping):
        return f"{where}{json_type(value)}"
    return f"{where}only {first_few(list(value), _MAX_SHOWN_NAMES) or 'an empty object'}"
