"""References to texts elsewhere: ``{env: NAME}``, ``{file: PATH}``, ``{function: MODULE:NAME}``.

A model's type chooses when a text is looked up. If the model says ``str``, that is when the project is
loaded (:mod:`platform_assets.project.resolving`), and the model's repr then shows the reference. If it says
:data:`Text`, the reference is kept, and looked up whenever it is used. So a machine without the secrets can
check the project, and a secret that is rotated counts at the next look.

See docs/how-to/secrets.md.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import PlainValidator
from typing_extensions import override

from partitions.errors import ConfigurationError, shorten_to_line
from platform_assets.installation import SETTINGS
from resources.user_functions import USERS_ERRORS, user_error_line, user_function

FORMS = "{env: NAME}, {file: PATH} or {function: MODULE:NAME}"
"""The references, as errors name them."""

KEYS = ("env", "file", "function")
"""The key that makes a mapping a reference."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_ANSWER_SECONDS = 30.0
"""How long the answer of a function counts: a look at many sources asks a service of secrets once."""

_REMEMBERED = 8
"""The most values of one reference that are remembered, to keep a rotated one out of messages, too."""


class Unresolved(Exception):
    """Raised if a reference leads to no text.

    Attributes:
        expected: what must be there, in words.
        actual: what is there, in words; never a secret.
    """

    def __init__(self, expected: str, actual: str) -> None:
        """Create the exception with the parts of a message."""
        super().__init__(f"expected {expected}, found {actual}")
        self.expected, self.actual = expected, actual


class Reference(ABC):
    """A text that stands elsewhere; its repr is what the user wrote, and never the text."""

    needs_user_code = False
    """Whether code of the user runs to look the text up."""

    @abstractmethod
    def look_up(self, variables: Mapping[str, str], folder: Path) -> str:
        """Return the text.

        Args:
            variables: of the environment.
            folder: the project's folder, where relative paths and modules start.

        Raises:
            Unresolved: there is none.
            ConfigurationError: a function does not exist.
        """


@dataclass(frozen=True, repr=False)
class EnvRef(Reference):
    """A variable of the environment."""

    name: str

    def __repr__(self) -> str:
        """Return the reference as a user writes it."""
        return f"{{env: {self.name}}}"

    @override
    def look_up(self, variables: Mapping[str, str], folder: Path) -> str:
        """Return the variable's value."""
        value = variables.get(self.name)
        if not value:
            raise Unresolved(f"the environment variable {self.name} to be set", "it unset or empty")
        return value


@dataclass(frozen=True, repr=False)
class FileRef(Reference):
    """A file that holds the text, as Docker and Kubernetes mount them, without a newline at its end."""

    path: str

    def __repr__(self) -> str:
        """Return the reference as a user writes it."""
        return f"{{file: {self.path}}}"

    @override
    def look_up(self, variables: Mapping[str, str], folder: Path) -> str:
        """Return the file's text as it is now."""
        expected = f"a file {self.path} with a text"
        try:
            text = (folder / Path(self.path).expanduser()).read_bytes().decode()
        except UnicodeDecodeError:
            raise Unresolved(expected, "bytes that are not UTF-8") from None
        except OSError as error:
            raise Unresolved(expected, error.strerror or type(error).__name__) from None
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise Unresolved(expected, "an empty file")
        return text


@dataclass(frozen=True, repr=False)
class FunctionRef(Reference):
    """A function of the user that returns the text, for services such as AWS Secrets Manager.

    Attributes:
        function: ``package.module:name``.
        arguments: passed by name.
    """

    function: str
    arguments: tuple[tuple[str, str | int | float | bool], ...] = ()

    needs_user_code = True

    def __repr__(self) -> str:
        """Return the reference as a user writes it."""
        arguments = "".join(f", {name}: {value}" for name, value in self.arguments)
        return f"{{function: {self.function}{arguments}}}"

    @override
    def look_up(self, variables: Mapping[str, str], folder: Path) -> str:
        """Return what the function returns now."""
        function = user_function("function", self.function, folder)
        expected = f"a text of the function {self.function}"
        try:
            text = function(**dict(self.arguments))
        except USERS_ERRORS as error:
            raise Unresolved(expected, f"an error: {shorten_to_line(user_error_line(error))}") from None
        if not isinstance(text, str) or not text:
            raise Unresolved(expected, "an empty text" if text == "" else f"a {type(text).__name__}")
        return text


def reference_of(value: Any) -> Reference | None:
    """Return the reference that a value of a file is; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    keys, texts = [*value], [text for text in value.values() if isinstance(text, str) and text]
    if keys in (["env"], ["file"]) and texts:
        return EnvRef(texts[0]) if keys == ["env"] else FileRef(texts[0])
    arguments = {str(name): item for name, item in value.items() if name != "function"}
    function = value.get("function")
    if isinstance(function, str) and _FUNCTION.fullmatch(function) and _are_plain(arguments):
        return FunctionRef(function, tuple(arguments.items()))
    return None


def _are_plain(arguments: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str | int | float | bool) for value in arguments.values())


class ReferencedText(str):
    """A text that was looked up when the project was loaded: used like any text, never shown by repr."""

    written: str

    def __new__(cls, text: str, written: str = "") -> Self:
        """Create the text with its reference as the user wrote it."""
        value = super().__new__(cls, text)
        value.written = written
        return value

    def __repr__(self) -> str:
        """Return the reference, not the text."""
        return self.written


@dataclass(frozen=True)
class Secrets:
    """Looks references up, each time anew, and remembers their texts to keep them out of messages.

    Attributes:
        variables: those of the environment.
        folder: the project's folder.
        clock: returns seconds.
    """

    variables: Mapping[str, str] = field(repr=False)
    folder: Path
    clock: Callable[[], float] = time.monotonic
    _values: dict[Reference, list[str]] = field(default_factory=dict, repr=False, compare=False)
    _answers: dict[Reference, tuple[float, str]] = field(default_factory=dict, repr=False, compare=False)

    def look_up(self, reference: Reference) -> str:
        """Return a reference's text as it is now; that of a function may be 30 seconds old.

        Raises:
            Unresolved: there is none.
            ConfigurationError: a function does not exist.
        """
        if reference.needs_user_code:
            asked_at, text = self._answers.get(reference, (float("-inf"), ""))
            if self.clock() - asked_at < _ANSWER_SECONDS:
                return text
        text = reference.look_up(self.variables, self.folder)
        if reference.needs_user_code:
            self._answers[reference] = (self.clock(), text)
        values = self._values.setdefault(reference, [])
        if text not in values:
            values.append(text)
            del values[:-_REMEMBERED]
        return text

    def resolve(self, text: str | Reference | None, setting: str, file: str = SETTINGS) -> str | None:
        """Return the text that a setting stands for: itself, or what its reference leads to.

        Args:
            text: the text or its reference.
            setting: the setting, for the error: ``connections.land.secret_access_key``.
            file: the file that it stands in, for the error.

        Raises:
            ConfigurationError: the reference leads to no text.
        """
        if not isinstance(text, Reference):
            return text
        try:
            return self.look_up(text)
        except Unresolved as error:
            raise ConfigurationError(
                f"{file}: {setting}: {error}: set it, or correct {text!r} there"
            ) from None
        except ConfigurationError as error:
            raise ConfigurationError(f"{file}: {setting}: {error.message}") from error

    def values(self, text: str | Reference | None) -> list[str]:
        """Return the texts that a reference had and has, the longest first, to hide them; nothing of a text.

        No code of the user runs.
        """
        if not isinstance(text, Reference):
            return []
        if not text.needs_user_code:
            with suppress(Unresolved):
                self.look_up(text)
        return sorted(self._values.get(text, ()), key=len, reverse=True)


@dataclass(frozen=True, repr=False)
class PassedText(Reference):
    """A secret that code passes: the text is at hand, and is kept out of messages.

    Attributes:
        text: the secret.
        name: where it comes from, in words.
    """

    text: str
    name: str

    def __repr__(self) -> str:
        """Return where the text comes from."""
        return f"{{{self.name}}}"

    @override
    def look_up(self, variables: Mapping[str, str], folder: Path) -> str:
        """Return the text."""
        return self.text


def _text(value: Any) -> str | Reference:
    if isinstance(value, Reference) or (isinstance(value, str) and value):
        return value
    reference = reference_of(value)
    if reference is None:
        raise ValueError(f"expected {FORMS if isinstance(value, Mapping) else 'text or {env: NAME}'}")
    return reference


Text = Annotated[str | Reference, PlainValidator(_text)]
"""A text that is looked up when it is used."""
