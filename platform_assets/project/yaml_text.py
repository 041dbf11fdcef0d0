"""YAML text as plain values, each key with its line.

Only values that JSON has, too, are read as such: mappings, lists, text, whole and decimal numbers,
``true``, ``false``, null. YAML 1.1's surprises stay text: ``on``, ``no``, ``2017-01-02``, ``12:30``,
``0777``, ``0x1f``, ``1_000``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML without libyaml is several times slower, and otherwise the same
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

Key = tuple[str | int, ...]
"""The path of a value: the keys and list indexes that lead to it."""

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ("~", "n", "N", "")),
    "bool": (r"true|True|TRUE|false|False|FALSE", tuple("tTfF")),
    "int": (r"[-+]?(0|[1-9][0-9]*)", tuple("-+0123456789")),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?", tuple("-+.0123456789")),
}


class TextPosition(NamedTuple):
    """Line and column of a value; both count from 1."""

    line: int
    column: int


class Unreadable(Exception):
    """Raised if the text cannot be read any further.

    Attributes:
        line: counts from 1.
        actual: what the text has, in words.
        expected: what it should have, in words.
    """

    def __init__(self, line: int, actual: str, expected: str) -> None:
        """Create the exception with the parts of a project file's error."""
        super().__init__(f"line {line}: found {actual}, expected {expected}")
        self.line, self.actual, self.expected = line, actual, expected


@dataclass
class Parsed:
    """The contents of a YAML text.

    Attributes:
        value: the root mapping; empty for an empty text.
        positions: the positions of all keys and list items.
        repeated: keys that occur again, with the line of the repetition; the first value counts.
    """

    value: dict[str, Any] = field(default_factory=dict)
    positions: dict[Key, TextPosition] = field(default_factory=dict)
    repeated: list[tuple[Key, int]] = field(default_factory=list)


def parse(content: bytes) -> Parsed:
    """Return the contents of a file's bytes.

    Raises:
        Unreadable: if it is not one plain mapping in UTF-8.
    """
    parsed = Parsed()
    node = _compose(_decode(content))
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise Unreadable(
            _line(node), "a list" if isinstance(node, yaml.SequenceNode) else "text", "a mapping (key: value)"
        )
    if node is not None:
        parsed.value = _NodeReader(parsed).mapping(node, ())
    return parsed


class _Loader(_Base):
    """The YAML parser with fewer values that are not text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML declares it so
        first: [
            (_TAG + name, re.compile(rf"(?:{pattern})\Z"))
            for name, (pattern, firsts) in _SCALARS.items()
            if first in firsts
        ]
        for first in {first for _, firsts in _SCALARS.values() for first in firsts}
    }


class _NodeReader:
    """Converts YAML's nodes to plain values, and records positions and repeated keys."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._open: list[yaml.Node] = []

    def mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        _expect_tag(node, "map")
        values: dict[str, Any] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise Unreadable(_line(name), "a key that is a mapping or a list", "a key that is text")
            item_key = (*key, name.value)
            if name.value in values:
                self._parsed.repeated.append((item_key, _line(name)))
                continue
            self._parsed.positions[item_key] = _position(name)
            values[name.value] = self._value(value, item_key)
        return values

    def _value(self, node: yaml.Node, key: Key) -> Any:
        if any(node is ancestor for ancestor in self._open):
            raise Unreadable(_line(node), "an anchor that contains itself", "a value")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self._open.append(node)
        try:
            return self.mapping(node, key) if isinstance(node, yaml.MappingNode) else self._items(node, key)
        finally:
            self._open.pop()

    def _items(self, node: yaml.Node, key: Key) -> list[Any]:
        _expect_tag(node, "seq")
        for index, item in enumerate(node.value):
            self._parsed.positions[(*key, index)] = _position(item)
        return [self._value(item, (*key, index)) for index, item in enumerate(node.value)]


def _scalar(node: yaml.ScalarNode) -> Any:
    _expect_tag(node, "str", *_SCALARS)
    text: str = node.value
    kind = node.tag.removeprefix(_TAG)
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int":
                return int(text)
            case "float":
                return float(text)
    except (KeyError, ValueError):
        raise Unreadable(_line(node), f"!!{kind} {text}", "a value that its tag allows, or no tag") from None
    return text


def _expect_tag(node: yaml.Node, *kinds: str) -> None:
    if node.tag not in [_TAG + kind for kind in kinds]:
        raise Unreadable(_line(node), f"the tag {node.tag.replace(_TAG, '!!')}", "plain YAML without tags")


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(line, f"the byte 0x{content[error.start]:02x}", "text in UTF-8") from None


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)  # type: ignore[no-any-return,unused-ignore]
    except yaml.MarkedYAMLError as error:
        line = _error_line(error)
        raise Unreadable(line, *_describe_syntax_error(text, line, error)) from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise Unreadable(line, "a control character", "text without control characters") from None


def _describe_syntax_error(text: str, line: int, error: yaml.MarkedYAMLError) -> tuple[str, str]:
    line_text = text.splitlines()[line - 1 : line] or [""]
    if "\t" in line_text[0][: len(line_text[0]) - len(line_text[0].lstrip())]:
        return "a tab in front of the first word", "spaces"
    if "single document" in str(error):
        return "a second document (---)", "one document a file"
    return f"broken YAML: {(error.problem or str(error)).removeprefix('found ')}", "valid YAML"


def _error_line(error: yaml.MarkedYAMLError) -> int:
    """Return the line of the mistake; for a text or key that does not end, the line of its start."""
    scanning = (error.context or "").startswith("while scanning")
    mark = error.context_mark if scanning and error.context_mark else error.problem_mark
    return mark.line + 1 if mark else 1


def _position(node: yaml.Node) -> TextPosition:
    return TextPosition(node.start_mark.line + 1, node.start_mark.column + 1)


def _line(node: yaml.Node) -> int:
    return _position(node).line
