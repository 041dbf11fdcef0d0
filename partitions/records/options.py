"""Options of Spark's readers, whose names count in any case."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

OF_ENCODING = ("encoding", "charset")
"""Names of the option for the encoding of files; the first one wins."""


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
"""Options of Spark's reader, in lower case, with which it takes text that is no JSON."""


def lenient_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options that let Spark take text that is no JSON."""
    return [
        name for name, value in options.items() if name.lower() in _LENIENT and str(value).lower() == "true"
    ]


def by_lower_name(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as texts, by their names in lower case."""
    return {name.lower(): str(value) for name, value in options.items()}


def encoding_of(options: Mapping[str, Any]) -> str | None:
    """Return the encoding that options name; None if they name none."""
    texts = by_lower_name(options)
    return next((texts[name] for name in OF_ENCODING if name in texts), None)


def other_encoding(options: Mapping[str, Any]) -> str | None:
    """Return the encoding that options name; None if it is UTF-8, by whatever name, or none is named."""
    encoding = encoding_of(options)
    return None if encoding is None or _codec(encoding) == "utf-8" else encoding


def without_encoding(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without the one that names an encoding."""
    return {name: value for name, value in options.items() if name.lower() not in OF_ENCODING}


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return encoding
