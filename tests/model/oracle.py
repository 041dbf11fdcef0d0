"""What an operator is promised, file by file: the model that every commit and every decision of the product is held against.

Each file of the source holds one row, so a table is known by how many copies of each file's row it holds. Of each file the
oracle knows what is *due*:

- ``ONCE``: it is still to be had. A schedule does not end well before it was loaded.
- ``MAYBE``: somebody decided to pass it over, and that decision was lost or taken back since. Both is right.
- ``NEVER``: it is loaded, or an operator passes it over.

A commit may add a copy to a file that has one only where an operator decided so: ``reset``, ``rewind`` and ``import``
without ``--replace``, and ``unprocess``. It may delete rows only where they are loaded again in the same commit, or where
``reset --replace`` was decided, once. Rows of other writers go with a ``reset --replace`` and in no other way.

What decisions promise (docs/reference/state.md, Decisions by hand):

=================  ===============================================================================================
``set``            passes over what lies above the old watermark up to the new one; late files below may go with it. After
                   ``reset --replace`` the table is emptied all the same
``rewind``         all above the older watermark is due again, with ``--replace`` in the place of its old rows
``reset``          everything is due again; with ``--replace`` the table is emptied first, also of others' rows
``adopt``          no file that has a row is loaded again, but for one that an operator wanted loaded again before; all
                   others are due
``import``         what the export covers counts as loaded, everything above it is due again, in addition; so is what
                   the export holds an ``unprocess`` of
``accept``         nothing changes
``release``        the files are due
``unprocess``      the files are due again, in addition
=================  ===============================================================================================

Damage: rows that vanish are due again (a run must stop, and one of its choices get them back). Rows that come back are not. A
state that is lost or restored forgets decisions, and nothing that is in the table is loaded again by itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum

from resources.watermarks.entry import Entry
from tests.support.arrow import OwnWrite, Write


class Violation(AssertionError):
    """A promise was broken."""


class Due(Enum):
    """What is still to be done about a file."""

    ONCE = "once"
    MAYBE = "maybe"
    NEVER = "never"


Key = tuple[str, str]


def key(path: str) -> Key:
    """Where a path stands in order."""
    partition, _, name = path.rpartition("/")
    return partition, name


def reached(watermark: str) -> Key:
    """Where a watermark stands in order; below everything where it is empty."""
    path = (json.loads(watermark) or {}).get("path")
    return key(path) if path else ("", "")


@dataclass
class Oracle:
    """What is promised of each file now.

    Attributes:
        by_set: tracking: set, which has no order.
        aside: late files are quarantined.
        due: by path; its keys are the files of the source.
        copies: rows of each file in the table.
        foreign: ids of others' rows in the table.
        doubling: files whose next load may add a copy to those that are there.
        doubled: files of which that was ever decided: going back to an older state may make it so again.
        emptying: whether the next load may empty the table.
        sparing: whether a later decision counts on rows that are in it.
        late: files that came at or below the watermark.
        held: files in quarantine.
        unknown: files whose rows the state knows nothing of: it was lost or restored since, or another project has loaded them. An
            operator who rewinds decides about what the state knows.
        unwanted: files whose rows somebody wanted gone, until they are loaded again or an operator decides so.
        loads: how often each file was loaded by anybody; so with ``emptied``.
        touched: how often the table was changed.
        forgotten: how often the state was lost or restored, and decisions with it.
    """

    by_set: bool
    aside: bool = False
    due: dict[str, Due] = field(default_factory=dict)
    copies: Counter[str] = field(default_factory=Counter)
    foreign: Counter[int] = field(default_factory=Counter)
    doubling: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    emptying: bool = False
    sparing: bool = False
    late: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    unwanted: set[str] = field(default_factory=set)
    loads: Counter[str] = field(default_factory=Counter)
    emptied: int = 0
    touched: int = 0
    forgotten: int = 0

    def copy(self) -> Oracle:
        """As it is now."""
        return deepcopy(self)

    # What happens

    def arrive(self, path: str, *, late: bool = False) -> None:
        """A file comes."""
        self.due[path] = Due.ONCE
        if late:
            self.late.add(path)

    def load(self, write: Write | OwnWrite) -> None:
        """A commit of ours has landed.

        Raises:
            Violation: where nobody decided what it did.
        """
        self.touched += 1
        if write.owned["gives_up"] and (write.paths or write.mode == "overwrite"):
            raise Violation(f"the give-up of number {write.number} changes rows")
        deleted = write.deleted
        if deleted is None:
            if not self.emptying and (+self.copies or self.foreign):
                raise Violation(f"number {write.number} empties the table, which nobody decided")
            lost = [path for path, due in self.due.items() if self.copies[path] and due is Due.NEVER]
            if self.sparing and lost:
                raise Violation(
                    f"number {write.number} empties the table of rows that count as loaded: {', '.join(lost)}"
                )
            self.copies.clear()
            self.foreign.clear()
            self.emptying = False
            self.emptied += 1
        for path in deleted or ():
            if self.copies[path] and path not in write.paths:
                raise Violation(f"number {write.number} deletes the row of {path} and does not load it")
            self.copies[path] = 0
        for path in write.paths:
            self._loaded(path, write, again=deleted is None or path in deleted)

    def _loaded(self, path: str, write: Write | OwnWrite, again: bool) -> None:
        if self.copies[path] and path not in self.doubling:
            raise Violation(f"number {write.number} loads {path} again, which nobody decided")
        if self.due[path] is Due.NEVER and not again:
            raise Violation(f"number {write.number} loads {path}, which was passed over")
        self.copies[path] += 1
        self.loads[path] += 1
        self.due[path] = Due.NEVER
        self.doubling.discard(path)
        self.held.discard(path)
        self.unknown.discard(path)
        self.unwanted.discard(path)

    def load_by_copy(self, write: Write | OwnWrite, then: Oracle) -> None:
        """A commit has landed that goes on from the state as it was ``then``: of another project, or begun before the state was lost.

        Raises:
            Violation: where nobody had decided then what it did.
        """
        judge = then.copy()
        for path in self.due:
            judge.due.setdefault(path, Due.ONCE)
        judge.see(self.copies, self.foreign)
        judge.load(write)
        then.due, then.doubling, then.emptying = judge.due, judge.doubling, judge.emptying
        self.touched += 1
        self.copies, self.foreign = judge.copies, judge.foreign
        for path in write.paths:
            self.loads[path] += 1
            self.unknown.add(path)
            if path not in self.doubling and not self.emptying:
                self.due[path] = Due.NEVER

    # What an operator decides

    def decide(
        self, entry: Entry, before: Entry | None, paths: Collection[str], again: Collection[str] = ()
    ) -> None:
        """A decision was appended.

        Args:
            entry: it.
            before: the newest entry before it.
            paths: the files that it names, or deals with.
            again: files that the state after it has loaded and wants to load once more.
        """
        mark = reached(entry.watermark)
        if entry.why in ("reset", "adopt", "import"):
            self.unknown.clear()
        taken_back = (
            before is None or entry.era != before.era
        )  # of a rewind: whether it goes back to before the reset
        if entry.why in ("adopt", "import") or (entry.why == "rewind" and taken_back):
            self.sparing = not entry.replace_table
        if entry.why == "import":  # an export may hold a reset that has not emptied the table yet
            self.emptying = entry.replace_table
        match entry.why:
            case "reset":
                self._reset(entry.replace_table)
            case "rewind":
                self._rewind(mark, replace=entry.replace_until is not None)
            case "set":
                self._set(mark, reached(before.watermark) if before else ("", ""), paths)
            case "adopt":
                self._adopt(mark)
                self.due |= dict.fromkeys(
                    paths, Due.MAYBE
                )  # which somebody skips: others have deleted their rows
            case "import":
                self._import(mark, paths)
                self.due |= dict.fromkeys(again, Due.ONCE)
                self.doubling |= set(again)
            case "release" | "unprocess":
                for path in paths:
                    self.due[path] = Due.ONCE
                self.doubling |= set(paths) if entry.why == "unprocess" else set()
            case "late":
                aside = [path for path in paths if not self.copies[path]]
                self.held |= set(aside)
                self.due |= dict.fromkeys(aside, Due.NEVER)
            case _:
                pass
        self.doubled |= self.doubling

    def _reset(self, replace: bool) -> None:
        self.due = dict.fromkeys(self.due, Due.ONCE)
        self.unwanted.clear()
        self.doubling = set() if replace else set(self.due)
        self.emptying, self.sparing = replace, False
        self.held.clear()

    def _rewind(self, mark: Key, replace: bool) -> None:
        for path in self.due:
            if key(path) > mark and not (path in self.unknown and self.copies[path]):
                self.due[path] = Due.MAYBE if path in self.held else Due.ONCE
                self.unwanted.discard(path)
                (self.doubling.discard if replace else self.doubling.add)(path)
            elif self.copies[path]:
                self._settle(path)

    def _set(self, mark: Key, old: Key, listed: Collection[str]) -> None:
        self.sparing = False
        for path in self.due:
            if self.by_set and path not in listed:
                continue  # it came since
            came = path in self.late and path not in listed  # while it was decided, perhaps
            covered = self.by_set or key(path) <= mark
            if covered and (self.by_set or self.copies[path] or (old < key(path) and not came)):
                self._settle(path)
            elif key(path) <= mark and self.due[path] is Due.ONCE:
                self.due[path] = Due.MAYBE

    def _adopt(self, mark: Key) -> None:
        for path, due in self.due.items():
            if self.copies[path] and key(path) > mark and path in self.doubled:
                self.due[path] = Due.MAYBE
                self.doubling.add(path)
            elif self.copies[path]:
                self._settle(path)
            elif due is Due.NEVER:
                self.due[path] = Due.MAYBE

    def _import(self, mark: Key, listed: Collection[str]) -> None:
        for path, due in self.due.items():
            if self.by_set and path not in listed:
                continue
            if self.by_set or key(path) <= mark:
                self._settle(path)
                self.due[path] = Due.NEVER if self.copies[path] else Due.MAYBE
            else:
                self.due[path] = Due.MAYBE if due is Due.NEVER and not self.copies[path] else Due.ONCE
                self.doubling.add(path)

    def _settle(self, path: str) -> None:
        self.due[path] = Due.NEVER
        self.doubling.discard(path)

    # What damage does

    def see(
        self, copies: Counter[str], foreign: Counter[int], *, emptying: bool = False, wanted: bool = False
    ) -> None:
        """The table is another one now; whatever it is, it may be emptied by a reset that no entry has followed yet.

        Args:
            copies: rows of each file.
            foreign: of others.
            emptying: whether the newest entry is such a reset.
            wanted: whether somebody wanted the rows gone that are.
        """
        self.touched += 1
        if emptying and not self.emptying:
            self.emptying = True
            self.due = {path: Due.MAYBE if due is Due.NEVER else due for path, due in self.due.items()}
        for path, due in self.due.items():
            vanished = self.copies[path] and not copies[path]
            if vanished and due is Due.NEVER:
                self.unwanted |= {path} if wanted else set()
                self.due[path] = Due.MAYBE if wanted or self._goes(path) else Due.ONCE
            elif copies[path] > self.copies[path] and path not in self.doubling and not self.emptying:
                self.due[path] = Due.NEVER
        self.copies, self.foreign = Counter(copies), Counter(foreign)

    def forget(self) -> None:
        """The state was lost."""
        self.forgotten += 1
        self.emptying = False
        self.doubling.clear()
        self.held.clear()
        self.unknown = set(+self.copies)
        for path, due in self.due.items():
            if self.copies[path]:
                self.due[path] = Due.NEVER
            elif due is Due.NEVER:
                self.due[path] = Due.MAYBE

    def remember(self, then: Oracle) -> None:
        """The state is the one again that it was ``then``."""
        self.forgotten += 1
        as_then = +self.copies == +then.copies and +self.foreign == +then.foreign
        same = as_then or self.touched == then.touched
        for path in self.due:
            if path in then.due and (same or self.loads[path] == then.loads[path]):
                self._remember_one(path, then)
            elif self.copies[path]:
                self._settle(path)
                self.unknown.add(path)
            elif self.due[path] is Due.NEVER:
                self.due[path] = Due.ONCE if self.loads[path] else Due.MAYBE
        gone = [path for path in self.unwanted if not self.copies[path] and self.due[path] is Due.ONCE]
        self.due |= dict.fromkeys(gone, Due.MAYBE)
        self.held = {path for path in then.held if self.loads[path] == then.loads[path]}
        self.emptying = then.emptying and (as_then or self.emptied == then.emptied)
        self.sparing = then.sparing

    def _remember_one(self, path: str, then: Oracle) -> None:
        self.due[path] = then.due[path]
        (self.unknown.add if path in then.unknown else self.unknown.discard)(path)
        (self.doubling.add if path in then.doubling else self.doubling.discard)(path)
        if self.copies[path] and not then.copies[path]:
            self._settle(path)
        elif then.copies[path] and not self.copies[path]:
            self.due[path] = Due.ONCE

    # How it ends

    def check_table(self, copies: Counter[str], foreign: Counter[int]) -> None:
        """The table holds what its commits have said.

        Raises:
            Violation: where it does not.
        """
        if +copies != +self.copies or +foreign != +self.foreign:
            raise Violation(
                f"the table holds {_shown(copies)} and others' {sorted(foreign)}, expected {_shown(self.copies)} and {sorted(self.foreign)}"
            )

    def check_rest(self) -> None:
        """Nothing is still to be had.

        Raises:
            Violation: where something is.
        """
        owed = [path for path, due in self.due.items() if due is Due.ONCE]
        if owed:
            raise Violation(f"nothing is left to do, and these were not loaded: {', '.join(owed)}")

    def aims(self) -> dict[str, range]:
        """How many copies of each file somebody may have who follows the best of some choices."""
        return {path: self._aim(path) for path in self.due}

    def _aim(self, path: str) -> range:
        if not self.copies[path]:
            owed = self.due[path] is Due.ONCE and not (self.aside and path in self.late)
            return range(1, 2) if owed else range(2)
        if self._goes(path):
            return range(self.copies[path] + 1)
        return range(1, self.copies[path] + (path in self.doubling) + 1)

    def _goes(self, path: str) -> bool:
        """Whether the row of a file that is passed over goes when the table is emptied: reset --replace, and then set."""
        return self.emptying and not self.sparing and self.due[path] is Due.NEVER

    def meets(self, aims: dict[str, range]) -> bool:
        """Whether it came to that."""
        return all(self.copies[path] in aim for path, aim in aims.items())


def _shown(copies: Counter[str]) -> str:
    return ", ".join(_some(copies)) or "nothing"


def _some(copies: Counter[str]) -> Iterable[str]:
    return (f"{count} x {path}" if count > 1 else path for path, count in sorted((+copies).items()))
