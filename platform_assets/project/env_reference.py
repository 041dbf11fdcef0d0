"""``{env: NAME}``: texts that come from the environment (docs/reference/project-files.md).

There are two ways; the models' types choose. If a model says ``str``, the text is looked up when the project
is loaded (:func:`resolved`), and the model's repr shows the variable's name instead of it (:func:`hidden`).
If it says :data:`Text`, the reference itself is kept, and looked up when it is used, so that a machine
without the secrets can still check the project.
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
    """A variable of the environment, not its value."""

    name: str

    def __repr__(self) -> str:
        """Return the reference as a user writes it."""
        return f"{{env: {self.name}}}"

    @classmethod
    def of(cls, value: Any) -> EnvRef | None:
        """Return the reference of the form ``{env: NAME}``; None for anything else."""
        if (
            isinstance(value, Mapping)
            and list(value) == ["env"]
            and isinstance(value["env"], str)
            and value["env"]
        ):
            return cls(value["env"])
        return None

    def look_up(self, environment: Mapping[str, str]) -> str | None:
        """Return the value; None if it is not set, or empty."""
        return environment.get(self.name) or None


class FromEnvironment(str):
    """A text from the environment: used like any text, never shown by repr."""

    name: str

    def __new__(cls, text: str, name: str = "") -> Self:
        """Keep the text and the variable that it came from."""
        value = super().__new__(cls, text)
        value.name = name
        return value

    def __repr__(self) -> str:
        """Return the variable, not the text."""
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


def used(text: str | EnvRef | None, what: str, environment: Mapping[str, str]) -> str | None:
    """Return the text itself, at the moment of use.

    Args:
        text: the text or its reference.
        what: the setting, for the error: ``connections.land.secret_access_key``.
        environment: where references are looked up.

    Raises:
        ConfigurationError: if its variable is not set.
    """
    if not isinstance(text, EnvRef):
        return text
    value = text.look_up(environment)
    if value is None:
        raise ConfigurationError(
            f"{SETTINGS}: {what}: expected the environment variable {text.name} to be set, found it unset or empty: set it, or correct {text!r} there"
        )
    return value
