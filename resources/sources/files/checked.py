"""The result of a check of files before they are loaded: bad files, bad records, unknown fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.judge import Fault

MAX_NAMED_RECORDS = 3
"""The most bad records of a file that its error names."""


class BadRecord(NamedTuple):
    """A record that does not fit.

    Attributes:
        text: the record itself, which is shown only if the dataflow allows it.
        why: what was expected, and what was found; it quotes no value.
        line: the line in the file, from 1; None if there is none.
        value: the text that does not fit; None if there is none to show.
        hint: a possible remedy, shown once for all records with the same one; "" if there is none.
    """

    text: str
    why: str
    line: int | None = None
    value: str | None = None
    hint: str = ""

    @classmethod
    def of(cls, fault: Fault, text: str = "", line: int | None = None, *, where: str = "") -> BadRecord:
        """Return the bad record for a fault; ``where`` is its place in the file, if no line tells it."""
        return cls(text, f"{where}{fault.reason}", line, fault.value, fault.hint)


@dataclass(frozen=True)
class UnknownFields:
    """The fields of a file that the pinned schema lacks.

    Attributes:
        names: the dotted names, from one record.
        line: the line of that record, from 1; None if there is none.
    """

    names: Sequence[str]
    line: int | None = None


def sort_by_file(
    records: Sequence[tuple[str, BadRecord]], files: Sequence[SourceFile]
) -> list[tuple[str, BadRecord]]:
    """Sort records by the order of their files; records of one file keep their order."""
    order = {file.path: number for number, file in enumerate(files)}
    return sorted(records, key=lambda record: order[record[0]])


@dataclass(frozen=True)
class CheckedFiles:
    """The files and records that cannot be loaded exactly.

    Attributes:
        bad_files: why a file cannot be read as a whole, by its path.
        bad_records: the records that do not fit, each with the path of its file, in the order of files and
            lines. For each file they hold at least those that its error names, and more than
            ``max_bad_records`` if there are more.
        counts: the number of bad records, by path, of files for which ``bad_records`` holds only some.
        is_cut: whether the check ended before the last bad record; then ``counts`` is a lower bound.
        unknown: the fields that the pinned schema lacks, by path.
    """

    bad_files: Mapping[str, BadFile] = field(default_factory=dict)
    bad_records: Sequence[tuple[str, BadRecord]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    is_cut: bool = False
    unknown: Mapping[str, UnknownFields] = field(default_factory=dict)

    @property
    def bad_texts(self) -> Mapping[str, set[str]]:
        """The texts of the bad records, by path."""
        texts: dict[str, set[str]] = {}
        for path, record in self.bad_records:
            texts.setdefault(path, set()).add(record.text)
        return texts

    @property
    def records_by_path(self) -> Mapping[str, Sequence[BadRecord]]:
        """The bad records, by path."""
        records: dict[str, list[BadRecord]] = {}
        for path, record in self.bad_records:
            records.setdefault(path, []).append(record)
        return records
