"""Explain in words why a text is no JSON."""

from __future__ import annotations

import json
from typing import Any

from partitions.errors import ConfigurationError

_WORDS = {
    "Expecting ',' delimiter": "a comma or a closing bracket is missing at {}",
    "Expecting ':' delimiter": "a colon after a name is missing at {}",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing at {}",
    "Expecting value": "a value is missing at {}",
    "Extra data": "more text follows its end at {}",
    "Illegal trailing comma before end of object": "a comma stands before the closing bracket at {}",
    "Invalid control character at": "a text contains a control character at {}",
    "Unterminated string starting at": "the text that starts at {} has no closing quote",
}
_ESCAPE = "a backslash in a text starts no valid escape at {}"
_OTHER = "an unexpected character stands at {}"


def explain_json_error(error: Exception, *, over_lines: bool = False) -> str:
    """Return what is wrong and where, from the error of a decoder or of its hooks.

    Args:
        error: the raised error.
        over_lines: whether to give the place by line and column, for a text of several lines.
    """
    match error:
        case RecursionError():
            return "it is nested too deeply"
        case json.JSONDecodeError():
            at = f"line {error.lineno}, column {error.colno}" if over_lines else f"character {error.pos + 1}"
            words = _ESCAPE if error.msg.startswith("Invalid \\") else _WORDS.get(error.msg, _OTHER)
            return words.format(at)
    message = str(error)
    return "a number has more digits than can be read" if message.startswith("Exceeds the limit") else message


def parse_json(text: str, expected: str) -> Any:
    """Return the value of a user's text; raise ConfigurationError with what was expected if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{expected}, found text that does not parse: {explain_json_error(error)}"
        ) from error
