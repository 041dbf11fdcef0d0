"""Names that a listing passes over, and what a user hears of them (docs/reference/files.md, Names that do not sort)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from partitions.path.hidden import is_hidden
from partitions.sources.first_draft import ending_of
from partitions.sources.formats import FORMATS

_KEPT = 1000
"""Names of one reason that a listing keeps; it counts the others."""

_SHOWN = 3
_ENDINGS = 8
"""Endings that a warning names, and those that have a warning of their own."""

PASSED_OVER = "passed over"
"""How a warning of names begins."""

_HIDDEN = "names that start with _ or . belong to no source. Rename what is to be loaded"
_OTHERS = "other endings"


@dataclass(frozen=True)
class Skipped:
    """Names that a listing passed over for one reason.

    Attributes:
        why: the reason and the remedy, for people.
        names: relative to the source's root, sorted, 1,000 at most.
        count: how many there are.
        all_shown: whether a warning names each, since nobody can find them by a pattern.
    """

    why: str
    names: tuple[str, ...]
    count: int
    all_shown: bool = False

    def below(self, folder: str) -> Skipped:
        """Return the same names below a folder; "" is the root."""
        return replace(self, names=tuple(f"{folder}/{name}" for name in self.names)) if folder else self

    @property
    def warning(self) -> str:
        """What a user hears."""
        if self.all_shown:
            shown = [in_quotes(name) for name in self.names]
            more = f" and {self.count - len(shown):,} more" if self.count > len(shown) else ""
            return f"{PASSED_OVER} {', '.join(shown)}{more}: {self.why}"
        shown = [f"'{in_quotes(name)[1:-1]}'" for name in self.names[:_SHOWN]]
        if self.count <= _SHOWN:
            return f"{PASSED_OVER} {', '.join(shown)}: {self.why}"
        return f"{PASSED_OVER} {self.count:,} files, such as {', '.join(shown)}: {self.why}"


def fault_of_key(key: str) -> str | None:
    """Return why an object's key is no path, so that neither a listing nor Spark can reach it; None if it is one."""
    if any(character < " " or character == "\x7f" for character in key):
        return "a control character"
    parts = key.split("/")
    if any(part in (".", "..") for part in parts):
        return "a component . or .."
    if not parts[0]:
        return "a slash at its beginning"
    if not parts[-1]:
        return "a slash at its end"
    return None if all(parts) else "an empty component (//)"


def in_quotes(name: str) -> str:
    """Return a name in double quotes; what cannot be printed is escaped."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


class SkippedNames:
    """Collects what a listing passes over, by reason."""

    def __init__(self, endings: Sequence[str]) -> None:
        """Take the endings that names of the source's files have."""
        self._endings = endings
        plain = [ending for ending in endings if ending.rpartition(".")[0] not in endings]
        self._expected = f"names of this source's files end in {' or '.join(plain[:_ENDINGS])}"
        self._names: dict[tuple[str, bool], dict[str, None]] = {}
        self._counts: dict[tuple[str, bool], int] = {}

    def take(self, name: str) -> None:
        """Take a name that is hidden, or has another ending."""
        if any(is_hidden(part) for part in name.removesuffix("/").split("/")):
            self._add(_HIDDEN, name)
            return
        why = self._ending_why(ending_of(name) or "none")
        if (why, False) not in self._names and len(self._names) >= _ENDINGS:
            why = self._ending_why(_OTHERS)
        self._add(why, name)

    def take_unreadable(self, name: str, fault: str) -> None:
        """Take a name that cannot be loaded, whatever its ending is."""
        self._add(f"{fault}. Rename or remove it", name, all_shown=True)

    def _ending_why(self, ending: str) -> str:
        others = [name for name, form in FORMATS.items() if ending in form.all_endings]
        if others and not any(own in FORMATS[name].all_endings for name in others for own in self._endings):
            forms = " or ".join(f"`format: {name}`" for name in others)
            return f"{self._expected}, found {ending}. To load these, add a dataflow for the same path with {forms}"
        return f"{self._expected}, found {ending}. Rename what is to be loaded, or set source.extensions"

    def _add(self, why: str, name: str, *, all_shown: bool = False) -> None:
        names = self._names.setdefault((why, all_shown), {})
        if name in names:
            return
        self._counts[why, all_shown] = self._counts.get((why, all_shown), 0) + 1
        if len(names) < _KEPT:
            names[name] = None

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was taken so far, what cannot be loaded first."""
        ordered = sorted(self._names.items(), key=lambda item: not item[0][1])
        return tuple(
            Skipped(why, tuple(sorted(names)), self._counts[why, shown], shown)
            for (why, shown), names in ordered
        )


def joined(before: Collection[Skipped], later: Iterable[Skipped]) -> tuple[Skipped, ...]:
    """Return what two listings passed over; what both did is there once."""
    by_reason = {group.why: group for group in before}
    for group in later:
        earlier = by_reason.get(group.why)
        if earlier is None:
            by_reason[group.why] = group
            continue
        names = tuple(sorted({*earlier.names, *group.names}))
        by_reason[group.why] = Skipped(
            group.why, names[:_KEPT], max(earlier.count, group.count, len(names)), group.all_shown
        )
    return tuple(by_reason.values())


def skip_warnings(skipped: Iterable[Skipped]) -> Iterator[str]:
    """Yield what a user hears of what a listing passed over."""
    for group in skipped:
        yield group.warning
