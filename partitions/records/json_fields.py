"""Names of JSON fields, and first values: what keeps a field from a column of its own (docs/reference/schemas.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from partitions.records.json_decoding import MOST_LEVELS, Members
from partitions.records.judge import Fault

HALF = re.compile("[\ud800-\udfff]")
"""Of a letter that JSON writes by the numbers of two: UTF-8 has none for it."""


class _FirstLook(NamedTuple):
    """What a value tells that is to give its field a type.

    Attributes:
        fault: why no type can be told of it.
        has_value: whether it is, or holds, another value than null.
        has_null_item: whether a list in it holds null.
    """

    fault: Fault | None = None
    has_value: bool = False
    has_null_item: bool = False


def new_field_fault(name: str, item: Any, above: str) -> Fault | None:
    """Return why a field can have no column of its own, whatever its type; None if it can."""
    return _look_at_field(name, item, above, in_list=False).fault


def _look_at_field(name: str, item: Any, above: str, *, in_list: bool) -> _FirstLook:
    look = first_look(item, f"{above}{name}", in_list=in_list)
    if look.fault is None and look.has_value and not name:
        return _FirstLook(
            Fault(
                f"field {above}'': expected a name, found an empty one, which no column has: give it one, or leave new fields out, by `unknown_fields: ignore`"
                " in the place of `schema_mode: merge`"
            )
        )
    return look


def first_look(value: Any, where: str, *, in_list: bool = False) -> _FirstLook:
    """Return what a value tells, by one look at each part of it; items of one list tell the type of each other."""
    if not isinstance(value, list):
        return _FirstLook(has_value=value is not None)
    if isinstance(value, Members):
        if (fault := names_fault(value, f"{where}.")) is not None:
            return _FirstLook(fault)
        if (alike := first_in_two_cases(name for name, _ in value)) is not None:
            return _FirstLook(in_two_cases(*alike, f"{where}."))
        looks = [_look_at_field(name, item, f"{where}.", in_list=in_list) for name, item in value]
        has_null_item = any(look.has_null_item for look in looks)
    else:
        looks = [first_look(item, where, in_list=True) for item in value]
        has_null_item = any(look.has_null_item for look in looks) or any(item is None for item in value)
    fault = next((look.fault for look in looks if look.fault is not None), None)
    has_value = any(look.has_value for look in looks)
    if fault is None and has_null_item and not has_value and not in_list:
        fault = Fault(
            f"field {where}: expected values of a type, found a list of nothing but null, which no type keeps yet: declare it in source.schema, or leave it out"
        )
    return _FirstLook(fault, has_value, has_null_item)


def name_twice(value: Sequence[tuple[str, Any]], above: str) -> Fault | None:
    """Return what is wrong with members of which a name stands twice; None if each stands once."""
    seen: set[str] = set()
    for name, _ in value:
        if name in seen:
            return Fault(f"field {above}{name} stands twice in it")
        seen.add(name)
    return None


def first_in_two_cases(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that differ in upper and lower case only, in their order; None if there are none."""
    spelt: dict[str, str] = {}
    for name in names:
        if (first := spelt.setdefault(name.casefold(), name)) != name:
            return first, name
    return None


def in_two_cases(first: str, second: str, above: str) -> Fault:
    """Return what is wrong with two names of a record, or of a record and the schema, that differ in upper and lower case only."""
    return Fault(
        f"expected fields with names of their own, found {above}{first} and {above}{second}, which differ in upper and lower case only",
        hint="give one of them another name, or declare source.schema with one of them and set unknown_fields: ignore",
    )


def names_fault(value: Members, above: str) -> Fault | None:
    """Return what is wrong with the names of an object, without those inside it."""
    halves = (half_name(name, above) for name, _ in value if HALF.search(name))
    return name_twice(value, above) or next(halves, None)


def too_deep(field: str) -> Fault:
    """Return what is wrong with a record that has a new field, and lies in itself more deeply than a type can be inferred."""
    return Fault(
        f"field {field}: expected objects and arrays at most {MOST_LEVELS} levels deep where types are inferred, found more: declare source.schema,"
        " with the field that holds them as string or variant"
    )


def half_name(name: str, above: str) -> Fault:
    """Return what is wrong with a name that holds half of a letter."""
    return Fault(f"field {above}{escaped(name)}: expected a name in UTF-8, found half of a letter in it")


def escaped(text: str) -> str:
    """Return a text with halves of letters by their numbers, so that it can be shown."""
    return HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
