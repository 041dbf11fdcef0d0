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

from partitions.api.values import SentNumber
from partitions.errors import in_one_line
from partitions.json_faults import in_plain_words
from partitions.json_types import json_type
from partitions.spelling import first_few

_BLANK = re.compile(r"[ \t\n\r]*")
_SHOWN = 10
_BESIDE = ("errors", "error")
"""Where an API says that it has failed, although its status says otherwise."""
_IGNORED = "ignore"
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_ESCAPE = 6
"""Characters of an escape such as ``\\u00e9``."""
_QUOTED = 300
_NO_RECORDS = "correct source.records, or set records_optional: true if this says that there are no records"


class DocumentError(ValueError):
    """An answer that does not hold what was expected.

    Attributes:
        broken: whether the text ends in the middle, as that of an answer that was cut off; asked again it may be whole.
        remedy: what to do.
    """

    def __init__(
        self,
        expected: str,
        found: str,
        *,
        broken: bool = False,
        remedy: str = "correct source.records or the other paths in the definition",
    ) -> None:
        """Keep whether it is broken, and what to do; the text has the rest."""
        super().__init__(f"expected {expected}, found {found}")
        self.broken, self.remedy = broken, remedy


class _Twice(Exception):
    """A name that an object has twice."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, each of which has a name of its own: of two, one would be lost without a word."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return members


_SCAN: Any = json.JSONDecoder(object_pairs_hook=_members, parse_float=SentNumber).scan_once  # type: ignore[attr-defined]  # as above


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


def parsed(text: str, path: str | None, *, errors: str | None = None, is_optional: bool = False) -> Document:
    """Return the records of an answer, and what stands beside them.

    Args:
        text: JSON.
        path: dotted, of the records: an array of objects, or one object. None: the document itself.
        errors: dotted, where the answer says that it has failed; ``ignore``: nowhere. None: at ``errors`` or ``error`` beside the records.
        is_optional: whether null at the path, or nothing, says that there are no records.

    Raises:
        DocumentError: it is no JSON, says that it has failed, has a name twice, nothing is at the path, or something else than records.
    """
    names = tuple(path.split(".")) if path else ()
    walk = _Walk(text, names)
    try:
        rest, end = walk.value(_after_blank(text, 0), names)
    except (_Twice, StopIteration, json.JSONDecodeError, IndexError, RecursionError, ValueError) as error:
        if isinstance(error, DocumentError):
            raise
        raise _unparsed(text, error, walk) from None
    if _after_blank(text, end) != len(text):
        raise DocumentError("one JSON document", f"more behind its end, at character {end}", remedy=_MEND)
    document = Document(walk.records or (), rest)
    _check_errors(document, names, errors)
    if walk.records is None and not (is_optional and _is_missing(rest, names)):
        raise DocumentError(
            f"records at {path}" if path else "records", _what_is_there(rest, names), remedy=_NO_RECORDS
        )
    return document


def parsed_lines(text: str, *, errors: str | None = None) -> Document:
    """Return the records of an answer in lines, each a JSON object.

    Args:
        text: of the lines.
        errors: dotted, where a line says that the request has failed; None or ``ignore``: nowhere.

    Raises:
        DocumentError: a line is no object, or says so.
    """
    records: list[Record] = []
    for line in text.split("\n"):  # other ends of lines stand in texts
        if line.strip():
            records += parsed(line, None, errors=errors or _IGNORED).records
    return Document(records, {})


def _check_errors(document: Document, names: Sequence[str], path: str | None) -> None:
    """Raise DocumentError if an answer says beside its records that it has failed."""
    if path == _IGNORED:
        return
    above = [".".join(names[:depth]) for depth in range(max(1, len(names)))]
    paths = [path] if path else [f"{before}.{name}".lstrip(".") for before in above for name in _BESIDE]
    for each in paths:
        value = document.at(each)
        if value:
            raise DocumentError(
                "an answer without errors",
                f"at {each} {in_one_line(json.dumps(value, ensure_ascii=False), _QUOTED)}",
                remedy="the API has failed although its status says otherwise: mend what it names; if this field is no error, name the field that"
                " is as source.errors, or set errors: ignore",
            )


class _Walk:
    """The way down to the records; what lies beside it is parsed as it is passed."""

    def __init__(self, text: str, path: Sequence[str]) -> None:
        self._text, self._path = text, path
        self.records: list[Record] | None = None
        self.is_in_records = False

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
            if name in members:
                raise _Twice(name)
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
        self.records, self.is_in_records = [], True
        found = self._found_records(start)
        self.is_in_records = False
        return found

    def _found_records(self, start: int) -> tuple[Any, int]:
        text = self._text
        if text[start] != "[":
            value, end = _scanned(text, start)
            if value is None:
                self.records = None
            else:
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


_MEND = "the API has to send one whole JSON document; strandline doctor asks it for a page"


def _unparsed(text: str, error: Exception, walk: _Walk) -> DocumentError:
    """The error for an answer that is no JSON, or not to be read as it is meant."""
    where = f" in record {len(walk.records) + 1}" if walk.is_in_records and walk.records is not None else ""
    if isinstance(error, _Twice):
        return DocumentError("each name once in an object", f"{error} twice{where}", remedy=_MEND)
    if not text.strip():
        return DocumentError("JSON", "an empty answer", broken=True, remedy=_MEND)
    found, position = _fault(text, error)
    return DocumentError("JSON", found, broken=_is_cut(text, position), remedy=_MEND)


def _fault(text: str, error: Exception) -> tuple[str, int]:
    """What is wrong with a text, and where; its end for what is missing there, its beginning for what is nowhere."""
    match error:
        case RecursionError():
            return "values nested too deeply", 0
        case json.JSONDecodeError():
            is_open = error.msg.startswith("Unterminated") or (
                error.msg.startswith(r"Invalid \u") and len(text) - error.pos < _ESCAPE - 1
            )
            position = len(text) if is_open else error.pos
            return in_plain_words(error), position
        case StopIteration():
            return f"no value at character {error.value} of {len(text)}", int(error.value)
        case IndexError() if error.args and isinstance(error.args[0], int):
            return f"something else at character {error.args[0]} of {len(text)}", error.args[0]
        case IndexError():
            return f"its end at character {len(text)}", len(text)
    return "a number of more digits than can be read", 0


def _is_cut(text: str, position: int) -> bool:
    """Whether a text is JSON up to its end, which comes too early."""
    rest = text[position:].rstrip()
    return any(literal.startswith(rest) for literal in _LITERALS)


def _is_missing(rest: Any, names: Sequence[str]) -> bool:
    """Whether there is null or nothing at a path, and no other value on the way."""
    value = rest
    for name in names:
        if not isinstance(value, Mapping):
            break
        value = value.get(name)
    return value is None


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
    return f"{where}only {first_few(list(value), _SHOWN) or 'an empty object'}"
