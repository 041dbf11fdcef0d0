"""Finds secrets in plain text, which only references may give, and keeps them out of messages."""

from __future__ import annotations

import re
from typing import Any

from platform_assets.project.document import Key, ProjectDocument, leaves
from platform_assets.project.errors import ProjectError
from platform_assets.project.references import FORMS, reference_of
from resources.connections.api import is_secret_parameter

_NAMES = re.compile(
    r"(?i)(password|passwd|pwd|passphrase|secret|token|credential|secret[._-]?(access[._-]?)?key|account[._-]key\b.*)$"
)
_HEADERS = re.compile(r"(?i)((proxy-)?authorization|(set-)?cookie|.*[-_]?(token|key|secret))$")
_USER_INFO = re.compile(r"^[A-Za-z][\w+.:-]*?://[^/@\s]*:[^/@\s]+@")
_PARAMETER = re.compile(
    r"(?i)^[A-Za-z][\w+.:-]*?://[^\s]*[?&;](\w*password|passwd|pwd|token|access_token|secret\w*|sig|signature|api_?key)=[^&;\s]"
)
_NOT_DISPLAYED = "a secret in plain text"
_MAX_CHARACTERS = 60


def is_secret(key: Key) -> bool:
    """Return whether a key's name marks its value as a secret.

    Such keys are in connections, reader options and Spark's settings.
    """
    match key:
        case ("alerts", "webhook") | ("alerts", "routes", int(), "webhook"):
            return True  # the address alone allows posting
        case ("lineage", "openlineage", "api_key"):
            return True
        case ("connections", _, "headers" | "params" | "token_params" | "settings", str(name)):
            return bool(_HEADERS.match(name) or is_secret_parameter(name) or _NAMES.search(name))
        case (
            ("connections", _, str(name), *_)
            | ("spark", "conf", str(name))
            | ("source", "options", str(name))
            | ("source", int(), "options", str(name))
        ):
            return _NAMES.search(name) is not None
    return False


def literal_secrets(document: ProjectDocument) -> list[ProjectError]:
    """Return an error for each secret in plain text; the errors do not show the secrets."""
    written = ((key, value) for key, value in leaves(document.value) if not _is_reference(document, key))
    return [
        document.error(key, _NOT_DISPLAYED, FORMS) for key in (_secret_key(*leaf) for leaf in written) if key
    ]


def display_value(value: Any, key: Key = ()) -> str:
    """Return a user's value in the form for an error: short, and never a secret."""
    if reference := reference_of(value):
        return repr(reference)
    if is_secret(key):
        return _NOT_DISPLAYED
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return _text(value)
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return str(value)


def _secret_key(key: Key, value: Any) -> Key | None:
    """Return the key to report if a value is a secret, else None.

    For a value inside a secret mapping or list it is the key of that mapping or list.
    """
    if value is None:
        return None
    secret_key = next((key[:length] for length in range(1, len(key) + 1) if is_secret(key[:length])), None)
    return secret_key or (key if _has_secret_in_url(value) else None)


def _is_reference(document: ProjectDocument, key: Key) -> bool:
    return bool(key) and reference_of(document.get(key[:-1])) is not None


def _text(value: str) -> str:
    if _has_secret_in_url(value):
        return "a URL with a secret in it"
    cut = value if len(value) <= _MAX_CHARACTERS else value[: _MAX_CHARACTERS - 1] + "…"
    plain = re.fullmatch(r"([^\W\d]|[./~*%])[^\s,'\"]*", cut) is not None
    return cut if plain and cut not in ("true", "false", "null") else f"'{cut}'"


def _has_secret_in_url(value: Any) -> bool:
    return isinstance(value, str) and bool(_USER_INFO.match(value) or _PARAMETER.match(value))
