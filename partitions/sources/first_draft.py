"""Inference of a first draft of a dataflow from names and first bytes of files.

It finds the format, the separator, the element of a record, and folders that are datasets of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from partitions.sources.formats import FORMATS

_COMPRESSIONS = (".gz", ".bz2", ".zst")
_SEPARATORS = (",", ";", "\t", "|")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]*")
_INSIDE_ROOT = 2
"""The depth of an element directly inside the root."""

_LARGEST = 2**63 - 1
_PHONE = 7
"""The fewest digits after a plus sign that make a phone number rather than an amount."""
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
_DAY_FIRST = re.compile(r"\d{2}\.\d{2}\.\d{4}")
_QUOTED = re.compile(r'"[^"]*"')


def ending_of(path: str) -> str:
    """Return the ending of a path as it is spelled, including a compression's; "" if it has none."""
    name = path.rpartition("/")[2]
    compression = next((ending for ending in _COMPRESSIONS if name.lower().endswith(ending)), "")
    base_name = name[: len(name) - len(compression)]
    dot = base_name.rfind(".")
    return name[dot:] if dot > 0 else name[len(base_name) :]


def format_of_ending(ending: str) -> str | None:
    """Return the format of an ending, in any case; None if there is none.

    For ``.json`` only the text decides (:func:`infer_json_format`).
    """
    return next((name for name, form in FORMATS.items() if ending.lower() in form.all_endings), None)


def main_format(paths: Iterable[str]) -> tuple[str | None, Mapping[str, int]]:
    """Return the most frequent format, and the number of files by ending."""
    endings = Counter(ending_of(path) for path in paths)
    formats: Counter[str] = Counter()
    for ending, count in endings.items():
        if form := format_of_ending(ending):
            formats[form] += count
    return (formats.most_common(1)[0][0] if formats else None), endings


def infer_json_format(head: str) -> str:
    """Return ``ndjson`` or ``json`` for the beginning of a text.

    ``ndjson`` if its first line is a complete value other than an array.
    """
    line = next((candidate for candidate in head.splitlines() if candidate.strip()), "")
    try:
        value = json.loads(line, parse_int=str)
    except RecursionError:  # nested too deeply to parse: decide by its first character
        return "json" if line.lstrip().startswith("[") else "ndjson"
    except ValueError:
        return "json"  # an object or array that spans several lines
    return "json" if isinstance(value, list) else "ndjson"


def begins_with_event(head: str) -> bool:
    """Return whether the first line of a text is a change event of Debezium."""
    line = next((candidate for candidate in head.splitlines() if candidate.strip()), "")
    try:
        value = json.loads(line, parse_int=str)
    except (RecursionError, ValueError):
        return False
    event = value.get("payload", value) if isinstance(value, dict) else None
    return (
        isinstance(event, dict)
        and {"op", "source"} <= event.keys()
        and not {"before", "after"}.isdisjoint(event)
    )


def infer_separator(header: str) -> str:
    """Return the most frequent separator outside quotes in a header; a comma if there is none."""
    unquoted = _QUOTED.sub("", header)
    return max(_SEPARATORS, key=lambda candidate: (unquoted.count(candidate), candidate == ","))


def count_elements_inside_root(head: str) -> Mapping[str, int]:
    """Count the elements directly inside an XML root, in order of first appearance.

    The text may be truncated.
    """
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


def infer_row_tag(elements: Mapping[str, int]) -> str | None:
    """Return the most frequent element inside a root, which is the record; None if there is none.

    The first of equally frequent ones wins.
    """
    return max(elements, key=elements.__getitem__, default=None)


def split_datasets(paths: Sequence[str]) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """Return the paths by the folder that is their dataset, and the files that belong to none.

    ``orders/2024/a.csv`` and ``customers/a.csv`` are two datasets. A ``README.md`` beside the folders does
    not change that; a ``prices.csv`` there belongs to none. ``date=2024-01-01/a.csv`` and ``2024/a.csv``
    are parts of one dataset, "", and so are many files beside one folder.
    """
    top_level = [(path.partition("/"), format_of_ending(ending_of(path)) is not None) for path in paths]
    loose_files = [first for (first, slash, _), readable in top_level if readable and not slash]
    folders = {first for (first, slash, _), readable in top_level if readable and slash}
    if not folders or not all(map(_PLAIN.fullmatch, folders)) or len(loose_files) > len(folders) == 1:
        return {"": paths}, ()
    datasets: dict[str, list[str]] = {}
    for (first, slash, rest), _ in top_level:
        if slash:
            datasets.setdefault(first, []).append(rest)
    return datasets, loose_files


def looks_like_a_date(values: Iterable[Any]) -> bool:
    """Return whether there are values, and all are dates such as ``2024-01-28``."""
    texts = [str(value) for value in values]
    return bool(texts) and all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) for value in texts)


def is_code(value: str | None) -> bool:
    """Return whether a text consists of digits but would change as a number.

    Examples: ``007``, ``+4930123456`` or ``12345678901234567890``, but not ``0``, ``0.5`` or ``+5``.
    """
    text = (value or "").strip()
    digits = text.removeprefix("+")
    if not re.fullmatch(r"[0-9]+", digits):
        return False
    is_phone = digits != text and len(digits) >= _PHONE
    return is_phone or (digits[0] == "0" and digits != "0") or int(digits) > _LARGEST


def has_decimal_comma(values: Iterable[str | None]) -> bool:
    """Return whether all texts are numbers such as ``1.234,56``, and one has a decimal comma.

    Whole numbers are allowed; empty texts are ignored.
    """
    texts = _non_empty_texts(values)
    return any("," in text for text in texts) and all(map(_COMMA.fullmatch, texts))


def is_day_first(values: Iterable[str | None]) -> bool:
    """Return whether there are texts, and all are dates such as ``28.12.2024``; empty ones are ignored."""
    texts = _non_empty_texts(values)
    return bool(texts) and all(map(_DAY_FIRST.fullmatch, texts))


def _non_empty_texts(values: Iterable[str | None]) -> list[str]:
    return [text for value in values if (text := (value or "").strip())]
