"""What a decision says and records of the files whose rows the table holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from partitions.plan import pluralize
from resources.decisions.draft import Draft
from resources.kinds.contract.decisions import HeldFiles, KnowsFiles, StateRules
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class HeldRows:
    """The files whose rows a table holds; none of them if files are not what is loaded.

    Attributes:
        files: as the kind's rules found them.
        knows_files: whether files are what is loaded.
    """

    files: HeldFiles = field(default_factory=HeldFiles)
    knows_files: bool = False

    def draft(self, entry: Entry) -> Draft:
        """Return the draft of an entry from which on its own lists count: the files of older entries may not be in the table."""
        if self.knows_files:
            entry = entry.model_copy(update={"era": entry.number - 1, "quarantine": None})
        remarks = self._remarks(again=bool(self.files.replace_until and entry.replace_until))
        return Draft(entry, self.files.listed, self.files.aside, dealt_with=self._dealt_with, remarks=remarks)

    @property
    def _dealt_with(self) -> str:
        """What becomes of the files that the log did not know, for people."""
        taken = self.files.taken
        files = pluralize(taken, "file")
        return f"taken as ingested, so neither loaded nor late: {files} of the source" if taken else ""

    def _remarks(self, *, again: bool) -> tuple[str, ...]:
        """What else follows, for people; ``again``: whether rows above the watermark are deleted when they are loaded again."""
        missing, freed = self.files.missing, self.files.freed
        late = f"{pluralize(missing, 'file')} at or below the watermark without a row in the table: late, as the sweep will find"
        own = "rows of files above the watermark are in the table: each commit deletes the rows of its own files and inserts them again"
        lines = ((missing, late), (freed, freed_files(freed)), (again, own))
        return tuple(line for holds, line in lines if holds)


def held_rows(
    rules: StateRules, last: Entry | None, base: Entry | None, watermark: str, *, beyond: bool = False
) -> HeldRows:
    """Return the files whose rows a table holds; see :meth:`KnowsFiles.held_files`."""
    if not isinstance(rules, KnowsFiles):
        return HeldRows()
    return HeldRows(rules.held_files(last, base, watermark, beyond=beyond), knows_files=True)


def freed_files(count: int) -> str:
    """Return the remark on files that a decision takes out of the quarantine."""
    return f"{pluralize(count, 'file')} of the quarantine with rows in the table: no longer in quarantine"
