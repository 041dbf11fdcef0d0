"""Test whether file names sort by time, and report on a sample of names (docs/reference/files.md)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from partitions.path.order import FileKey

# A date of 1900 to 2199 with one kind of separator, and then a time of day or no further digit; or a month, or a week.
_DATE = re.compile(
    r"(?:19|20|21)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:[T_ -]?(?:[01]\d|2[0-3])[:._-]?[0-5]\d|\D|\Z)"
)
_MONTH = re.compile(
    r"(?:19|20|21)\d\d-(?:(?:0[1-9]|1[0-2])|W(?:0[1-9]|[1-4]\d|5[0-3])(?:-?[1-7])?)(?:[^\d-]|-\D|\Z)"
)
_UNIX = re.compile(
    r"[12](?:\d{9}|\d{12}|\d{15}|\d{18})(?=\D|\Z)"
)  # 2001 to 2065; another first digit is a counter
_UUID = re.compile(
    r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1([0-9a-f])[0-9a-f]{3}\1[0-9a-f]{4}\1[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE
)
_UUID7_START = re.compile(r"01[0-9a-f]{6}-[0-9a-f]{4}(?![0-9a-f])", re.IGNORECASE)
_ULID = re.compile(r"01[0-9A-HJKMNP-TV-Z]{24}(?![0-9A-Za-z])")
_DIGITS = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[-_. ]+")


def sorts_by_time(filename: str) -> bool:
    """Return whether a name starts with a time that sorts: Unix time, UUIDv7, ULID or ISO 8601.

    A text before the time does not count here: all names of a partition would have to share it.
    """
    name = FileKey.of(filename).name
    if uuid := _UUID.match(name):
        return uuid[2] == "7"  # whatever else its first digits look like
    return any(pattern.match(name) for pattern in (_UNIX, _DATE, _MONTH, _UUID7_START, _ULID))


def _text_before_time(name: str) -> str | None:
    """Return the text before a time within a name, with the separator at its end; None if no time follows.

    Example: ``orders_`` of ``orders_2024-01-01.csv``.
    """
    return next(
        (name[: match.end()] for match in _SEPARATOR.finditer(name) if sorts_by_time(name[match.end() :])),
        None,
    )


@dataclass(frozen=True)
class NamingReport:
    """A report on whether a sample of paths sorts by time.

    Attributes:
        sample_size: the number of paths in the sample.
        findings: one sentence each; empty if nothing speaks against the order.
    """

    sample_size: int
    findings: tuple[str, ...]

    @property
    def sorts(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def examine(paths: Sequence[str], *, by_partition: bool = False) -> NamingReport:
    """Report everything in a sample of paths that makes their order differ from the order of time.

    Args:
        paths: paths of files.
        by_partition: whether each partition, the root too, has a watermark of its own.
    """
    keys = [FileKey.of(path) for path in paths]
    findings = [*_names_without_time(keys), *_unpadded_partitions(keys), *_digit_counts(keys)]
    return NamingReport(len(keys), (*findings, *(() if by_partition else _files_beside_partitions(keys))))


def _names_without_time(keys: Sequence[FileKey]) -> Iterable[str]:
    starts = [_text_before_number(key.name) for key in keys]
    starts_by_partition = defaultdict[str, Counter[str | None]](Counter)
    for key, start in zip(keys, starts, strict=True):
        starts_by_partition[key.partition][start] += 1
    usual_starts = {partition: _usual_start(counts) for partition, counts in starts_by_partition.items()}
    bad = [
        key
        for key, start in zip(keys, starts, strict=True)
        if start is None or start != usual_starts[key.partition]
    ]
    if bad:
        usual_start = usual_starts[bad[0].partition]
        expected = f"{usual_start!r} and a time, like the others" if usual_start else "a time or a number"
        yield (
            f"{len(bad)} of {len(keys)} names do not start with {expected} (such as {bad[0].path!r}): a file that arrives"
            " later may sort below the watermark and would count as late"
        )


def _text_before_number(name: str) -> str | None:
    """Return the text before the time or leading number by which a name sorts; None if it has neither."""
    return "" if sorts_by_time(name) or _starts_with_digit(name) else _text_before_time(name)


def _usual_start(counts: Mapping[str | None, int]) -> str:
    """Return the most frequent text before a time; "", the start with a time or number, wins a tie.

    Names that all begin alike sort by what follows; together with others they sort by how they begin.
    """
    return max(
        (start for start in counts if start is not None),
        key=lambda start: (counts[start], not start),
        default="",
    )


def _unpadded_partitions(keys: Sequence[FileKey]) -> Iterable[str]:
    lengths: dict[tuple[int, str], dict[int, str]] = {}
    for key in keys:
        for depth, part in enumerate(key.partition.split("/") if key.partition else ()):
            name, _, value = part.rpartition("=")
            if value.isdecimal():
                lengths.setdefault((depth, name), {})[len(value)] = part
    for by_length in lengths.values():
        if len(by_length) > 1:
            short, long = by_length[min(by_length)], by_length[max(by_length)]
            yield (
                f"numbers in partitions are not padded: {long!r} sorts as text beside {short!r}, so the order "
                "is not the order in time. Pad them with zeros"
            )


def _digit_counts(keys: Sequence[FileKey]) -> Iterable[str]:
    lengths: dict[int, str] = {}
    for key in keys:
        match = _DIGITS.match(key.name)
        if match and not sorts_by_time(key.name):
            lengths[len(match[0])] = key.name
    if len(lengths) > 1:
        yield f"leading numbers differ in length: {lengths[min(lengths)]!r} beside {lengths[max(lengths)]!r}; pad them with zeros"


def _files_beside_partitions(keys: Sequence[FileKey]) -> Iterable[str]:
    root = next((key for key in keys if not key.partition), None)
    inside = next((key for key in keys if key.partition), None)
    if root and inside:
        yield (
            f"files at the root ({root.name!r}) beside partitions ({inside.partition!r}): after a partition "
            "is committed, no run finds files at the root"
        )


def _starts_with_digit(name: str) -> bool:
    return bool(_DIGITS.match(name))
