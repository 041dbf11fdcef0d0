"""What is wrong with a text that is no JSON, in words for people: Python's decoder says it in its own."""

from __future__ import annotations

import json

_WORDS = {
    "Expecting ',' delimiter": "a comma or a closing bracket is missing at {}",
    "Expecting ':' delimiter": "a colon behind a name is missing at {}",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing at {}",
    "Expecting value": "a value is missing at {}",
    "Extra data": "more stands behind its end at {}",
    "Illegal trailing comma before end of object": "a comma stands in front of the closing bracket at {}",
    "Invalid control character at": "a text holds a control character at {}",
    "Unterminated string starting at": "the text that begins at {} has no closing quote",
}
_ESCAPE = "a backslash of a text begins no escape at {}"
_OTHER = "something else stands at {}"


def in_plain_words(error: Exception, *, over_lines: bool = False) -> str:
    """Return what is wrong and where, from the error of a decoder or of its hooks.

    Args:
        error: what was raised.
        over_lines: whether the text has lines, so that the place is named by line and column.
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
