"""Options of Spark's readers, whose names are case-insensitive."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

ENCODING_OPTIONS = ("encoding", "charset")
"""The option names for a file's encoding; the first one that is set wins."""


_LENIENT = frozenset(
    {
        "allowcomments",
        "allowunquotedfieldnames",
        "allowsinglequotes",
        "allownumericleadingzeros",
        "allowbackslashescapinganycharacter",
        "allowunquotedcontrolchars",
    }
)
"""Options of Spark's reader, in lower case, that make it accept text that is not JSON."""


def lenient_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of set options that let Spark accept text that is not JSON."""
    return [
        name for name, value in options.items() if name.lower() in _LENIENT and str(value).lower() == "true"
    ]


def with_lower_names(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as texts, by their names in lower case."""
    return {name.lower(): str(value) for name, value in options.items()}


def encoding_of(options: Mapping[str, Any]) -> str | None:
    """Return the encoding that options name; None if they name none."""
    texts = with_lower_names(options)
    return next((texts[name] for name in ENCODING_OPTIONS if name in texts), None)


def non_utf8_encoding(options: Mapping[str, Any]) -> str | None:
    """Return the encoding that options name; None if it is UTF-8 under any name, or none is named."""
    encoding = encoding_of(options)
    return None if encoding is None or _codec(encoding) == "utf-8" else encoding


def without_encoding(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without the one that names an encoding."""
    return {name: value for name, value in options.items() if name.lower() not in ENCODING_OPTIONS}


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return encoding
