"""Faults in names and first values of JSON fields that keep a field from becoming a column.

See docs/reference/schemas.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from partitions.records.json_decoding import MAX_LEVELS, Members
from partitions.records.judge import Fault

HALF_LETTER = re.compile("[\ud800-\udfff]")
"""One half of a surrogate pair, which UTF-8 cannot encode."""


class _TypeEvidence(NamedTuple):
    """What a value reveals about the type of its field.

    Attributes:
        fault: why the field can have no type; None if it can.
        has_value: whether the value is, or contains, anything but null.
        has_null_item: whether a list in it contains null.
    """

    fault: Fault | None = None
    has_value: bool = False
    has_null_item: bool = False


def new_field_fault(name: str, item: Any, above: str) -> Fault | None:
    """Return why a new field cannot become a column, whatever its type; None if it can."""
    return _field_evidence(name, item, above, in_list=False).fault


def _field_evidence(name: str, item: Any, above: str, *, in_list: bool) -> _TypeEvidence:
    field_evidence = type_evidence(item, f"{above}{name}", in_list=in_list)
    if field_evidence.fault is None and field_evidence.has_value and not name:
        return _TypeEvidence(
            Fault(
                f"field {above}'': expected a name, found an empty one: give the field a name, or leave new fields out "
                "with `unknown_fields: ignore` instead of `schema_mode: merge`"
            )
        )
    return field_evidence


def type_evidence(value: Any, where: str, *, in_list: bool = False) -> _TypeEvidence:
    """Return what a value reveals about its field's type, visiting each part once.

    Items of one list share a type.
    """
    if not isinstance(value, list):
        return _TypeEvidence(has_value=value is not None)
    if isinstance(value, Members):
        if (fault := names_fault(value, f"{where}.")) is not None:
            return _TypeEvidence(fault)
        if (alike := find_case_conflict(name for name, _ in value)) is not None:
            return _TypeEvidence(case_conflict_fault(*alike, f"{where}."))
        evidence = [_field_evidence(name, item, f"{where}.", in_list=in_list) for name, item in value]
        has_null_item = any(field_evidence.has_null_item for field_evidence in evidence)
    else:
        evidence = [type_evidence(item, where, in_list=True) for item in value]
        has_null_item = any(field_evidence.has_null_item for field_evidence in evidence) or any(
            item is None for item in value
        )
    fault = next(
        (field_evidence.fault for field_evidence in evidence if field_evidence.fault is not None), None
    )
    has_value = any(field_evidence.has_value for field_evidence in evidence)
    if fault is None and has_null_item and not has_value and not in_list:
        fault = Fault(
            f"field {where}: expected a list with typed values, found one with nothing but null, whose type is "
            "unknown: declare it in source.schema, or leave it out"
        )
    return _TypeEvidence(fault, has_value, has_null_item)


def repeated_name_fault(value: Sequence[tuple[str, Any]], above: str) -> Fault | None:
    """Return the fault of members that repeat a name; None if no name repeats."""
    names_so_far: set[str] = set()
    for name, _ in value:
        if name in names_so_far:
            return Fault(f"field {above}{name} occurs twice")
        names_so_far.add(name)
    return None


def find_case_conflict(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that differ in case only, in their order; None if there are none."""
    spellings: dict[str, str] = {}
    for name in names:
        if (first := spellings.setdefault(name.casefold(), name)) != name:
            return first, name
    return None


def case_conflict_fault(first: str, second: str, above: str) -> Fault:
    """Return the fault of two names that differ in case only."""
    return Fault(
        f"expected field names that differ in more than upper and lower case, found {above}{first} and {above}"
        f"{second}",
        hint="rename one of them, or declare source.schema with one of them and set unknown_fields: ignore",
    )


def names_fault(value: Members, above: str) -> Fault | None:
    """Return the fault of an object's own names, without nested ones; None if they are sound."""
    halves = (half_letter_fault(name, above) for name, _ in value if HALF_LETTER.search(name))
    return repeated_name_fault(value, above) or next(halves, None)


def depth_fault(field: str) -> Fault:
    """Return the fault of a record with a new field that nests too deeply for its type to be inferred."""
    return Fault(
        f"field {field}: expected objects and arrays at most {MAX_LEVELS} levels deep where types are "
        "inferred, found more: declare source.schema, with the deep field as string or variant"
    )


def half_letter_fault(name: str, above: str) -> Fault:
    """Return the fault of a name with an unpaired surrogate."""
    return Fault(
        f"field {above}{escape_half_letters(name)}: expected a name in UTF-8, found an unpaired surrogate in it"
    )


def escape_half_letters(text: str) -> str:
    """Return a text that can be printed: unpaired surrogates become their code."""
    return HALF_LETTER.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
