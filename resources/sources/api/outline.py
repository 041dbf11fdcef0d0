"""Where an answer of an API leads, found before its records are parsed (``partitions.api.document``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from partitions.api.values import SentNumber


@dataclass(frozen=True)
class Outline:
    """What stands beside the records of an answer, found in a tenth of the time that parsing takes, since records are passed over.

    It may tell something else than the parsed document, which decides: of a name that an object has twice, for example.
    """

    _whole: bytes

    @classmethod
    def of(cls, text: str) -> Outline | None:
        """Return the outline of a JSON document; None if it is none, or one with more than the standard allows."""
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
