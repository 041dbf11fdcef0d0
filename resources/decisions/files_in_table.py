"""What a decision records and reports about the files whose rows the table holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.draft import Draft
from resources.kinds.contract.decisions import HeldFiles, KnowsFiles, StateRules
from resources.watermarks.entry import Entry

_NAMED = 5

_ROWS_WITHOUT_FILE = (
    "rows do not tell their file: if a loaded file is missing at the source now and comes back later, it counts as late, and its rows"
    " would be in the table twice"
)


@dataclass(frozen=True)
class HeldRows:
    """The files whose rows a table holds; empty for a kind that loads no files.

    Attributes:
        files: the files by the kind's rules.
        knows_files: whether the kind loads files.
    """

    files: HeldFiles = field(default_factory=HeldFiles)
    knows_files: bool = False

    @property
    def counts(self) -> Mapping[str, int] | None:
        """The rows of each file in the table; None if rows do not tell their file, or were not asked."""
        return self.files.counts

    def without(self, files: Collection[SourceFile]) -> HeldRows:
        """Return the held rows with some files no longer among the missing: such files count as loaded."""
        missing = [file for file in self.files.missing if file not in files]
        return replace(self, files=replace(self.files, missing=missing))

    def draft(self, entry: Entry) -> Draft:
        """Return the draft of an entry whose own lists count from now on.

        The files of older entries may no longer be in the table.
        """
        if self.knows_files:
            entry = entry.model_copy(update={"era": entry.number - 1, "quarantine": None})
        notes = self._notes(again=bool(self.files.replace_until and entry.replace_until))
        return Draft(
            entry,
            self.files.listed,
            self.files.quarantine,
            files_note=self._files_note,
            notes=notes,
            checksums=self.files.checksums,
        )

    @property
    def _files_note(self) -> str:
        """What happens to the files that the log did not know, for people."""
        unlogged = self.files.unlogged
        return f"taken as ingested, so neither loaded nor late: {name_files(unlogged)}" if unlogged else ""

    def _notes(self, *, again: bool) -> tuple[str, ...]:
        """Return the other consequences, for people.

        ``again`` says whether rows above the watermark are deleted when they are loaded again.
        """
        missing, released = self.files.missing, self.files.released
        late = f"{name_files(missing)} at or below the watermark without a row in the table: late, as the sweep will find"
        reloaded = "rows of files above the watermark are in the table: each commit deletes the rows of its own files and inserts them again"
        absent = self.files.absent
        lines = (
            (missing, late),
            (released, released_note(released)),
            (again, reloaded),
            (absent, missing_note(absent or ())),
            (absent is None, _ROWS_WITHOUT_FILE),
        )
        return tuple(line for holds, line in lines if holds)


def name_files(files: Sequence[SourceFile]) -> str:
    """Return how many files of the source these are, with the first names."""
    paths = [file.path for file in files]
    return (
        f"{pluralize(len(paths), 'file')} of the source ({first_few(paths, _NAMED)})" if paths else "no file"
    )


def missing_note(files: Sequence[SourceFile]) -> str:
    """Return the note about files that the source lacks, and whose rows the table holds."""
    paths = [file.path for file in files]
    return (
        f"missing at the source, and taken as ingested, since their rows are in the table:"
        f" {pluralize(len(paths), 'file')} ({first_few(paths, _NAMED)})"
    )


def held_rows(
    rules: StateRules, last: Entry | None, base: Entry | None, watermark: str, *, beyond: bool = False
) -> HeldRows:
    """Return the files whose rows the table holds; see :meth:`KnowsFiles.held_files`."""
    if not isinstance(rules, KnowsFiles):
        return HeldRows()
    return HeldRows(rules.held_files(last, base, watermark, beyond=beyond), knows_files=True)


def released_note(count: int) -> str:
    """Return the note about files that a decision takes out of the quarantine."""
    return f"{pluralize(count, 'file')} of the quarantine with rows in the table: no longer in quarantine"
