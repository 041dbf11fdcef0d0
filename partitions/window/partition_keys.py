"""Convert units and windows to Dagster's partition keys, and back."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from urllib.parse import quote, unquote

from partitions.errors import ConfigurationError, StrandlineError
from partitions.instants import as_datetime, milliseconds
from partitions.sentinels import canonical
from partitions.window.units import identity, unit_of

# | separates the dimensions of a key; Dagster refuses , [ ]; ... means a range; forms drop blanks at the ends.
_ESCAPED = re.compile(r"[%|,\[\]]|\.{3,}|^ +| +$")


def unit_key(unit: str, fields: Sequence[str]) -> str:
    """Return the key of a unit, escaped like a URL.

    A unit that is one text is that text; any other is its canonical JSON.

    Args:
        unit: the unit's identity, canonical JSON.
        fields: the names that all units of the definition have values of.
    """
    value = unit_of(unit).get(fields[0]) if len(fields) == 1 else None
    if not isinstance(value, str) or not value:
        return _escape(unit)
    # A text that starts like JSON would be parsed as JSON.
    return _escape(value) if value[0] != "{" else "%7B" + _escape(value[1:])


def unit_of_key(key: str, fields: Sequence[str]) -> str:
    """Return the identity of a unit's key.

    Raises:
        ConfigurationError: for a text that is no unit's key.
    """
    try:
        text = unquote(key, errors="surrogatepass")
        read = identity(unit_of(text) if key.startswith("{") else {fields[0]: text})
    except (StrandlineError, ValueError, IndexError):
        read = None
    if read is None or unit_key(read, fields) != key:
        raise ConfigurationError(
            f"expected the key of a unit of {', '.join(fields) or 'no field'}, such as"
            f" {unit_key(canonical(dict.fromkeys(fields, 'id1')), fields)}, found {key!r}"
        )
    return read


@dataclass(frozen=True)
class UnitBuckets:
    """Selected buckets of units: ``unit in buckets``.

    Attributes:
        count: the number of all buckets.
        keys: the keys of the selected buckets.
    """

    count: int
    keys: frozenset[str]

    def __contains__(self, unit: object) -> bool:
        return isinstance(unit, str) and bucket_key(unit, self.count) in self.keys


def bucket_key(unit: str, count: int) -> str:
    """Return the key of a unit's bucket: CRC-32 of its identity in UTF-8, modulo the number of buckets.

    Args:
        unit: the unit's identity, canonical JSON.
        count: the number of all buckets.
    """
    return _numbered(zlib.crc32(unit.encode(errors="surrogatepass")) % count, count)


def bucket_keys(count: int) -> tuple[str, ...]:
    """Return the keys of all buckets, ascending; as texts they sort by number."""
    return tuple(_numbered(number, count) for number in range(count))


def instant_key(instant: int, zone: tzinfo) -> str:
    """Return an instant as ISO text with an offset.

    Within one zone it sorts by time, except in the hour that a clock repeats.
    """
    return as_datetime(instant, zone).isoformat()


def instant_of_key(key: str, zone: tzinfo) -> int:
    """Return the epoch milliseconds of an :func:`instant_key`.

    Raises:
        ConfigurationError: for any other text, even for the same instant: a window must not have two keys.
    """
    try:
        instant = milliseconds(datetime.fromisoformat(key))
    except (ValueError, TypeError):
        instant = None
    if instant is None or instant_key(instant, zone) != key:
        raise ConfigurationError(
            f"expected the start of a window, such as {instant_key(0, zone)}, found the key {key!r}"
        )
    return instant


def _numbered(number: int, count: int) -> str:
    return f"bucket-{number:0{len(str(count - 1))}}"


def _escape(text: str) -> str:
    escaped = _ESCAPED.sub(lambda match: "".join(map(_percent, match[0])), text)
    return escaped if escaped.isprintable() else "".join(map(_printable, escaped))


def _printable(character: str) -> str:
    return character if character.isprintable() else _percent(character)


def _percent(character: str) -> str:
    # quote() does not escape dots.
    return "%2E" if character == "." else quote(character, safe="", errors="surrogatepass")


BETWEEN = "|"
"""Separates the unit and the window in a key; Dagster orders the dimensions by name."""


def key_of_both(unit: str | None, window: str | None) -> str | None:
    """Return a partition's key from its unit's key and its window's.

    None stands for a dimension that does not exist; the key is None if neither does.
    """
    return BETWEEN.join(part for part in (unit, window) if part is not None) or None


def parts_of_key(key: str) -> tuple[str, str] | None:
    """Return the unit's key and the window's of a two-dimensional partition; None for another text."""
    unit, between, window = key.partition(BETWEEN)
    return None if not between or BETWEEN in window else (unit, window)
