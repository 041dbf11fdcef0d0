"""What names and first bytes of files say of them, for a first draft of a dataflow: format, separator, element of a record, folders of their own."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from partitions.sources.formats import FORMATS

_PACKED = (".gz", ".bz2", ".zst")
_SEPARATORS = (",", ";", "\t", "|")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]*")
_INSIDE_ROOT = 2
"""How many elements are open at the beginning of one inside the root."""

_LARGEST = 2**63 - 1
_PHONE = 7
"""Digits behind a plus: as many are a phone number rather than an amount."""
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
_DAY_FIRST = re.compile(r"\d{2}\.\d{2}\.\d{4}")
_QUOTED = re.compile(r'"[^"]*"')


def ending_of(path: str) -> str:
    """Return the ending of a path as it is spelt, with that of a compression; "" if it has none."""
    name = path.rpartition("/")[2]
    packed = next((ending for ending in _PACKED if name.lower().endswith(ending)), "")
    kept = name[: len(name) - len(packed)]
    dot = kept.rfind(".")
    return name[dot:] if dot > 0 else name[len(kept) :]


def format_of_ending(ending: str) -> str | None:
    """Return the format that an ending stands for, in whatever case; None if it is of none. Of JSON the text decides (:func:`json_form`)."""
    return next((name for name, form in FORMATS.items() if ending.lower() in form.all_endings), None)


def main_format(paths: Iterable[str]) -> tuple[str | None, Mapping[str, int]]:
    """Return the format that most files have, and how many files there are of each ending."""
    endings = Counter(ending_of(path) for path in paths)
    formats: Counter[str] = Counter()
    for ending, count in endings.items():
        if form := format_of_ending(ending):
            formats[form] += count
    return (formats.most_common(1)[0][0] if formats else None), endings


def json_form(head: str) -> str:
    """Return ``ndjson`` if the first line is a whole value that more lines follow, or an object alone; else ``json``."""
    line = next((each for each in head.splitlines() if each.strip()), "")
    try:
        value = json.loads(line, parse_int=str)
    except RecursionError:  # a value that is nested deep: what follows it tells
        return "json" if line.lstrip().startswith("[") else "ndjson"
    except ValueError:
        return "json"  # an object, or an array, that goes over several lines
    return "json" if isinstance(value, list) else "ndjson"


def separator_of(header: str) -> str:
    """Return the separator of a header: the one that is there most often outside of quotes; a comma if none is."""
    bare = _QUOTED.sub("", header)
    return max(_SEPARATORS, key=lambda each: (bare.count(each), each == ","))


def elements_inside_root(head: str) -> Mapping[str, int]:
    """Return how often each element stands directly inside the root of an XML text, in the order of the first of each; the text may end early."""
    counts, depth = Counter[str](), 0

    def begin(name: str, _attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth == _INSIDE_ROOT:
            counts[name] += 1

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    with suppress(expat.ExpatError):
        parser.Parse(head, False)
    return counts


def row_tag(elements: Mapping[str, int]) -> str | None:
    """Return which of the elements inside a root is the record: the one that repeats most, and the first of those; None if there is none."""
    return max(elements, key=elements.__getitem__, default=None)


def apart(paths: Sequence[str]) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """Return the paths by the folder that they are a dataset of, and those that belong to none.

    ``orders/2024/a.csv`` and ``customers/a.csv`` are two datasets, also with a ``README.md`` beside the folders, which is of neither, or with a
    ``prices.csv``, which is told to be of none. ``date=2024-01-01/a.csv`` and ``2024/a.csv`` are parts of one dataset, "", and so are many files
    beside one folder.
    """
    firsts = [(path.partition("/"), format_of_ending(ending_of(path)) is not None) for path in paths]
    loose = [first for (first, slash, _), readable in firsts if readable and not slash]
    folders = {first for (first, slash, _), readable in firsts if readable and slash}
    if not folders or not all(map(_PLAIN.fullmatch, folders)) or len(loose) > len(folders) == 1:
        return {"": paths}, ()
    datasets: dict[str, list[str]] = {}
    for (first, slash, rest), _ in firsts:
        if slash:
            datasets.setdefault(first, []).append(rest)
    return datasets, loose


def looks_like_a_date(values: Iterable[Any]) -> bool:
    """Return whether all values are dates such as ``2024-01-28``, and there is one."""
    found = [str(value) for value in values]
    return bool(found) and all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) for value in found)


def is_code(value: str | None) -> bool:
    """Return whether a text is made of digits and would be another one as a number: ``007``, ``+4930123456`` or ``12345678901234567890``, but not ``0``, ``0.5`` or ``+5``."""
    text = (value or "").strip()
    digits = text.removeprefix("+")
    if not re.fullmatch(r"[0-9]+", digits):
        return False
    is_phone = digits != text and len(digits) >= _PHONE
    return is_phone or (digits[0] == "0" and digits != "0") or int(digits) > _LARGEST


def has_decimal_comma(values: Iterable[str | None]) -> bool:
    """Return whether all texts are whole numbers or such as ``1.234,56``, and one has a decimal comma; those without a value do not count."""
    found = _given(values)
    return any("," in text for text in found) and all(map(_COMMA.fullmatch, found))


def is_day_first(values: Iterable[str | None]) -> bool:
    """Return whether all texts are dates such as ``28.12.2024``, and there is one; those without a value do not count."""
    found = _given(values)
    return bool(found) and all(map(_DAY_FIRST.fullmatch, found))


def _given(values: Iterable[str | None]) -> list[str]:
    return [text for value in values if (text := (value or "").strip())]
