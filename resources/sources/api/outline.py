"""Find where an answer leads before its records are parsed (``partitions.api.document``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from partitions.api.values import SentNumber


@dataclass(frozen=True)
class DocumentOutline:
    """The contents of an answer beside its records, found in a tenth of the time of parsing.

    It may differ from the parsed document, for example if an object repeats a name; the parsed document
    decides.
    """

    _whole: bytes

    @classmethod
    def of(cls, text: str) -> DocumentOutline | None:
        """Return the outline of a JSON document; None if the text is not standard JSON."""
        try:
            whole = text.encode()  # of a text msgspec would keep such a copy as long as the text lives
            msgspec.json.decode(whole, type=msgspec.Raw)
        except (UnicodeEncodeError, msgspec.MsgspecError, RecursionError):
            return None
        return cls(whole)

    def at(self, path: str) -> Any:
        """Return the value at a dotted path; None if there is none."""
        inner: Any = self._whole
        try:
            for part in path.split("."):
                inner = msgspec.json.decode(inner, type=dict[str, msgspec.Raw]).get(part, b"null")
            value = msgspec.json.decode(inner)
            return SentNumber(bytes(inner).decode().strip()) if isinstance(value, float) else value
        except (msgspec.MsgspecError, RecursionError):
            return None
