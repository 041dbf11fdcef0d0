"""What a look through all records of some files shows before they are loaded: which files and records cannot be loaded exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.judge import Fault

NAMED = 3
"""Bad records of a file that its error names, if there are as many."""


class BadRecord(NamedTuple):
    """A record that does not fit.

    Attributes:
        text: the record itself, which is shown only to who asks for it.
        why: what was expected of it, and what stands there instead; it quotes no value.
        line: of the file, from 1; None if no line tells.
        value: the text that does not fit; None if there is none to show.
        hint: what may help, told once for all records with the same one; "" if nothing is known.
    """

    text: str
    why: str
    line: int | None = None
    value: str | None = None
    hint: str = ""

    @classmethod
    def of(cls, fault: Fault, text: str = "", line: int | None = None, *, where: str = "") -> BadRecord:
        """Return the record that has a fault; ``where`` tells its place in the file beside the line."""
        return cls(text, f"{where}{fault.reason}", line, fault.value, fault.hint)


@dataclass(frozen=True)
class Unknown:
    """Fields of a file that the pinned schema lacks.

    Attributes:
        names: dotted, of one record.
        line: of that record, from 1; None if no line tells.
    """

    names: Sequence[str]
    line: int | None = None


def in_order(
    records: Sequence[tuple[str, BadRecord]], files: Sequence[SourceFile]
) -> list[tuple[str, BadRecord]]:
    """Return records in the order of their files; those of one file stay as they are."""
    order = {file.path: number for number, file in enumerate(files)}
    return sorted(records, key=lambda record: order[record[0]])


@dataclass(frozen=True)
class CheckedFiles:
    """What of files cannot be loaded exactly.

    Attributes:
        bad_files: why a file cannot be read as a whole, by its path.
        bad_records: records that do not fit, each with the path of its file, in the order of the files and lines; of each file that has some
            those that its error names, and more than may be set aside if there are more.
        counts: how many there are, by path, of files of which only some stand in ``bad_records``.
        is_cut: whether the look has ended before the last bad record, so that there may be more than ``counts`` says.
        unknown: of files that have fields beside the pinned ones, by path.
    """

    bad_files: Mapping[str, BadFile] = field(default_factory=dict)
    bad_records: Sequence[tuple[str, BadRecord]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    is_cut: bool = False
    unknown: Mapping[str, Unknown] = field(default_factory=dict)

    @property
    def left_out(self) -> Mapping[str, set[str]]:
        """The texts of the bad records by path."""
        texts: dict[str, set[str]] = {}
        for path, record in self.bad_records:
            texts.setdefault(path, set()).add(record.text)
        return texts

    @property
    def records_by_path(self) -> Mapping[str, Sequence[BadRecord]]:
        """The bad records of each file that has some."""
        records: dict[str, list[BadRecord]] = {}
        for path, record in self.bad_records:
            records.setdefault(path, []).append(record)
        return records
