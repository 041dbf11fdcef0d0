"""One project file as plain values: the value at a key, its line, and errors that name both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from platform_assets.project.errors import ProjectError
from platform_assets.project.yaml_text import Key, TextPosition, Unreadable, parse

__all__ = ["Key", "ProjectDocument", "dotted", "leaves", "value_at", "within"]

_ABSENT = object()


@dataclass
class ProjectDocument:
    """One project file, or a dataflow of one, as plain values with the positions of its keys.

    Attributes:
        file: its path relative to the project folder.
        value: the root mapping; empty if the file is empty or cannot be read.
        positions: the positions of all keys and list items.
        files: the files of the positions that stand in another file.
        errors: its mistakes as YAML.
        readable: False if the text is not YAML at all, so that no key can be checked.
        inlined: a key whose parts a user writes at the top instead: ``source`` of a Python file.
        first_line: the line of what is missing.
    """

    file: str
    value: dict[str, Any] = field(default_factory=dict, repr=False)
    positions: dict[Key, TextPosition] = field(default_factory=dict, repr=False)
    files: dict[Key, str] = field(default_factory=dict, repr=False)
    errors: list[ProjectError] = field(default_factory=list)
    readable: bool = True
    inlined: str | None = None
    first_line: int = 1

    @classmethod
    def read(cls, file: str, content: bytes) -> ProjectDocument:
        """Return the document of a file's bytes; its ``errors`` hold the mistakes."""
        document = cls(file)
        try:
            parsed = parse(content)
        except Unreadable as error:
            document.refuse(error.line, error.actual, error.expected)
            return document
        document.value, document.positions = parsed.value, parsed.positions
        for key, line in parsed.repeated:
            problem = f"the key again (first in line {document.line(key)})"
            document.errors.append(ProjectError(file, line, dotted(key), problem, "each key once"))
        return document

    def refuse(self, line: int, actual: str, expected: str) -> None:
        """Record that the file as a whole cannot be read."""
        self.errors.append(ProjectError(self.file, line, None, actual, expected))
        self.readable = False

    def line(self, key: Key) -> int:
        """Return the line of a key, or of the nearest key above it."""
        key = self._written_key(key)
        return self.positions[key].line if key else self.first_line

    def file_of(self, key: Key) -> str:
        """Return the file that a key, or the nearest key above it, stands in."""
        return self.files.get(self._written_key(key), self.file)

    def _written_key(self, key: Key) -> Key:
        while key and key not in self.positions:
            key = key[:-1]
        return key

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the value at a key."""
        return value_at(self.value, key, default)

    def has(self, key: Key) -> bool:
        """Return whether a user wrote the key."""
        return self.get(key, _ABSENT) is not _ABSENT

    def error(self, key: Key, actual: str, expected: str, nearest: str | None = None) -> ProjectError:
        """Return an error at a key."""
        user_key = key[1:] if key[:1] == (self.inlined,) else key
        return ProjectError(self.file_of(key), self.line(key), dotted(user_key), actual, expected, nearest)


def leaves(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield all values that are neither mappings nor lists, each with its key."""
    if isinstance(value, dict | list):
        for part in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[part], (*key, part))
    else:
        yield key, value


def dotted(key: Key) -> str | None:
    """Return a key as text, such as ``watermark.checkpoint.interval_files``; None for the root."""
    return ".".join(str(part) for part in key) or None


def value_at(value: Any, key: Key, default: Any = None) -> Any:
    """Return the value at a key in plain values."""
    for part in key:
        inside = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and part in range(len(value))
        )
        if not inside:
            return default
        value = value[part]
    return value


def within(key: Key, part: Key) -> bool:
    """Return whether a key is ``part`` itself or lies below it."""
    return key[: len(part)] == part
