"""YAML text as plain values, each key with its line.

Only what JSON has too becomes a value: mappings, lists, text, whole and decimal numbers, ``true``, ``false``,
null. YAML 1.1's surprises stay text: ``on``, ``no``, ``2017-01-02``, ``12:30``, ``0777``, ``0x1f``,
``1_000``.
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
"""Where a value stands: the keys and list indexes that lead to it."""

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ("~", "n", "N", "")),
    "bool": (r"true|True|TRUE|false|False|FALSE", tuple("tTfF")),
    "int": (r"[-+]?(0|[1-9][0-9]*)", tuple("-+0123456789")),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?", tuple("-+.0123456789")),
}


class TextPosition(NamedTuple):
    """Both count from 1."""

    line: int
    column: int


class Unreadable(Exception):
    """Raised if the text cannot be read any further.

    Attributes:
        line: counts from 1.
        found: in words.
        expected: in words.
    """

    def __init__(self, line: int, found: str, expected: str) -> None:
        """Keep the parts that an error of a project file is made of."""
        super().__init__(f"line {line}: found {found}, expected {expected}")
        self.line, self.found, self.expected = line, found, expected


@dataclass
class Parsed:
    """The contents of a YAML text.

    Attributes:
        value: the root mapping; empty for an empty text.
        positions: of every key, and of every item of a list.
        repeated: keys that occur again, with the line of the repetition; their first value counts.
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
        parsed.value = _Reader(parsed).mapping(node, ())
    return parsed


class _Loader(_Base):
    """The parser with a shorter list of what is not text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML declares it so
        first: [
            (_TAG + name, re.compile(rf"(?:{pattern})\Z"))
            for name, (pattern, firsts) in _SCALARS.items()
            if first in firsts
        ]
        for first in {first for _, firsts in _SCALARS.values() for first in firsts}
    }


class _Reader:
    """Makes plain values of YAML's nodes, and notes positions and repeated keys."""

    def __init__(self, into: Parsed) -> None:
        self._into = into
        self._open: list[yaml.Node] = []

    def mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        _expect_tag(node, "map")
        values: dict[str, Any] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise Unreadable(_line(name), "a key that is a mapping or a list", "a key that is text")
            here = (*key, name.value)
            if name.value in values:
                self._into.repeated.append((here, _line(name)))
                continue
            self._into.positions[here] = _position(name)
            values[name.value] = self._value(value, here)
        return values

    def _value(self, node: yaml.Node, key: Key) -> Any:
        if any(node is other for other in self._open):
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
            self._into.positions[(*key, index)] = _position(item)
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
        line = _blamed(error)
        raise Unreadable(line, *_syntax(text, line, error)) from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise Unreadable(line, "a control character", "text without control characters") from None


def _syntax(text: str, line: int, error: yaml.MarkedYAMLError) -> tuple[str, str]:
    written = text.splitlines()[line - 1 : line] or [""]
    if "\t" in written[0][: len(written[0]) - len(written[0].lstrip())]:
        return "a tab in front of the first word", "spaces"
    if "single document" in str(error):
        return "a second document (---)", "one document a file"
    return f"broken YAML: {(error.problem or str(error)).removeprefix('found ')}", "valid YAML"


def _blamed(error: yaml.MarkedYAMLError) -> int:
    """Return the line of the mistake; for a text or key that does not end, the line of its start."""
    scanning = (error.context or "").startswith("while scanning")
    mark = error.context_mark if scanning and error.context_mark else error.problem_mark
    return mark.line + 1 if mark else 1


def _position(node: yaml.Node) -> TextPosition:
    return TextPosition(node.start_mark.line + 1, node.start_mark.column + 1)


def _line(node: yaml.Node) -> int:
    return _position(node).line
