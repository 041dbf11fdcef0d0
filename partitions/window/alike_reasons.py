"""Reasons that differ only in a name of their work unit, such as a folder: one example stands for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo

from partitions.window.units import unit_of
from partitions.window.work_unit import FailedUnit, WorkUnit, describe_works

_NAME = re.compile(r"\S*(?:/|\d[-:]\d)\S*|\bline \d+")
"""A path, an address, a date, a time, or a line of a file; not a number by itself, such as an HTTP status."""

_LONG = 3
"""The letters of a unit's value from which on it is no common word, such as ``a``."""

_DIGITS = re.compile(r"\d+")


def kind_of_reason(reason: str, unit: str) -> str:
    """Return a text that is equal for reasons alike: without the unit's values, and the digits of names.

    Args:
        reason: why a work unit failed.
        unit: the unit's identity.
    """
    values = [str(value) for value in unit_of(unit).values() if value not in (None, "")]
    text = _without(reason, [value for value in values if len(value) >= _LONG])
    return _NAME.sub(lambda name: _DIGITS.sub("0", _without(name[0], values)), text)


def _without(text: str, values: Sequence[str]) -> str:
    for value in values:
        letter = r"[^\W_]" if len(value) >= _LONG else r"\w"  # `shop_EWR` names a unit, `is_a_folder` none
        text = re.sub(rf"(?<!{letter}){re.escape(value)}(?!{letter})", "0", text)
    return text


def describe_alike(reasons: Sequence[str]) -> str:
    """Return reasons of one kind as one: the first, with their number unless all are equal."""
    is_same = len(set(reasons)) == 1
    return reasons[0] if is_same else f"{len(reasons):,} alike, such as: {reasons[0]}"


def describe_failures(failed: Iterable[FailedUnit], zone: tzinfo) -> list[tuple[str, str]]:
    """Return for each kind of reason the failed work units, adjacent windows as one range, and the reason."""
    by_kind: dict[str, list[tuple[WorkUnit, str]]] = {}
    for work, reason in failed:
        by_kind.setdefault(kind_of_reason(reason, work.unit), []).append((work, reason))
    return [
        (describe_works([work for work, _ in alike], zone), describe_alike([reason for _, reason in alike]))
        for alike in by_kind.values()
    ]
