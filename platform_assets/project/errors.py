"""Errors in project files: where, what the file has, and what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from partitions.errors import ConfigurationError


@dataclass(frozen=True)
class ProjectError:
    """One mistake in a project file.

    Attributes:
        file: relative to the project folder.
        line: counts from 1.
        key: dotted, such as ``watermark.checkpoint.interval_files``; None for the whole file.
        actual: what the file has, in words; never a secret.
        expected: what it should have, in words.
        nearest: the known name that the user may have meant.
    """

    file: str
    line: int
    key: str | None
    actual: str
    expected: str
    nearest: str | None = None

    @property
    def message(self) -> str:
        """Return the line that people read."""
        key = f"{self.key}: " if self.key else ""
        hint = f" (did you mean {self.nearest}?)" if self.nearest else ""
        return f"{self.file}:{self.line}: {key}found {self.actual}, expected {self.expected}{hint}"

    def __str__(self) -> str:
        """Return the message."""
        return self.message

    def as_json(self) -> dict[str, Any]:
        """Return the six fields of `strandline validate --json` (docs/reference/cli.md)."""
        fields = asdict(self)
        return {"found" if name == "actual" else name: value for name, value in fields.items()}


class MissingText(ProjectError):
    """A reference that leads to no text here, and may lead to one where the project runs."""


class InvalidProject(ConfigurationError):
    """Raised if project files have errors.

    Attributes:
        errors: all of them, sorted by file and line.
    """

    code = "project"

    def __init__(self, errors: Sequence[ProjectError]) -> None:
        """Create the error with a message that has a line for each mistake."""
        super().__init__("\n".join(error.message for error in errors), choices=["strandline validate"])
        self.errors = tuple(errors)


def sorted_errors(errors: Iterable[ProjectError]) -> list[ProjectError]:
    """Return the errors sorted by file and line, each once."""
    return sorted(dict.fromkeys(errors), key=lambda error: (error.file, error.line, error.key or ""))
