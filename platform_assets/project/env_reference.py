"""``{env: NAME}``: texts that come from the environment (docs/reference/project-files.md).

A model's type chooses when a text is looked up. If the model says ``str``, that is when the project is
loaded (:func:`resolve_values`), and the model's repr then shows the variable's name (:func:`hide_texts`).
If it says :data:`Text`, the reference is kept until it is used, so that a machine without the secrets can
still check the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import PlainValidator

from partitions.errors import ConfigurationError
from platform_assets.installation import SETTINGS


@dataclass(frozen=True)
class EnvRef:
    """The name of an environment variable, without its value."""

    name: str

    def __repr__(self) -> str:
        """Return the reference as a user writes it."""
        return f"{{env: {self.name}}}"

    @classmethod
    def of(cls, value: Any) -> EnvRef | None:
        """Return the reference in ``{env: NAME}``; None for anything else."""
        if (
            isinstance(value, Mapping)
            and list(value) == ["env"]
            and isinstance(value["env"], str)
            and value["env"]
        ):
            return cls(value["env"])
        return None

    def look_up(self, environment: Mapping[str, str]) -> str | None:
        """Return the variable's value; None if it is unset or empty."""
        return environment.get(self.name) or None


def is_reference(value: Any) -> bool:
    """Return whether a value of a file stands for a text that is looked up elsewhere."""
    return EnvRef.of(value) is not None


class FromEnvironment(str):
    """A text from the environment: used like any text, never shown by repr."""

    name: str

    def __new__(cls, text: str, name: str = "") -> Self:
        """Create the text with the name of its variable."""
        value = super().__new__(cls, text)
        value.name = name
        return value

    def __repr__(self) -> str:
        """Return the variable's name, not the text."""
        return f"{{env: {self.name}}}"


def _text(value: Any) -> str | EnvRef:
    if isinstance(value, str) and value:
        return value
    reference = EnvRef.of(value)
    if reference is None:
        raise ValueError("expected text or {env: NAME}")
    return reference


Text = Annotated[str | EnvRef, PlainValidator(_text)]
"""A text that is looked up when it is used."""


def resolve_text(text: str | EnvRef | None, setting: str, environment: Mapping[str, str]) -> str | None:
    """Return the text that a setting stands for: itself, or the value of its variable.

    Args:
        text: the text or its reference.
        setting: the setting, for the error: ``connections.land.secret_access_key``.
        environment: where references are looked up.

    Raises:
        ConfigurationError: if its variable is not set.
    """
    if not isinstance(text, EnvRef):
        return text
    value = text.look_up(environment)
    if value is None:
        raise ConfigurationError(
            f"{SETTINGS}: {setting}: expected the environment variable {text.name} to be set, found it unset or empty: set it, or correct {text!r} there"
        )
    return value
