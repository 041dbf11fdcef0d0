"""Collect the names that a listing skips, for warnings.

See docs/reference/files.md, Names that do not sort.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from partitions.path.hidden import is_hidden_name
from partitions.sources.first_draft import ending_of
from partitions.sources.formats import FORMATS

_KEPT = 1000
"""The most names per reason that a listing keeps; it counts the others."""

_SHOWN = 3
_ENDINGS = 8
"""The most endings in a warning, and the most endings with a warning of their own."""

SKIPPED = "skipped"
"""The beginning of a warning about names."""

_HIDDEN = "names that start with _ or . belong to no source. Rename files to load them"
_OTHERS = "other endings"


@dataclass(frozen=True)
class SkippedNames:
    """The names that a listing skipped for one reason.

    Attributes:
        why: the reason and the remedy, for people.
        names: the names relative to the source's root, sorted, at most 1,000.
        count: the number of all such names.
        all_shown: whether the warning lists every name, since no pattern finds them.
    """

    why: str
    names: tuple[str, ...]
    count: int
    all_shown: bool = False

    def in_folder(self, folder: str) -> SkippedNames:
        """Return the same names inside a folder; "" is the root."""
        return replace(self, names=tuple(f"{folder}/{name}" for name in self.names)) if folder else self

    @property
    def warning(self) -> str:
        """The warning for users."""
        if self.all_shown:
            quoted = [quote_name(name) for name in self.names]
            more = f" and {self.count - len(quoted):,} more" if self.count > len(quoted) else ""
            return f"{SKIPPED} {', '.join(quoted)}{more}: {self.why}"
        quoted = [f"'{quote_name(name)[1:-1]}'" for name in self.names[:_SHOWN]]
        if self.count <= _SHOWN:
            return f"{SKIPPED} {', '.join(quoted)}: {self.why}"
        return f"{SKIPPED} {self.count:,} files, such as {', '.join(quoted)}: {self.why}"


def fault_of_key(key: str) -> str | None:
    """Return why an object's key is no path; None if it is one.

    Neither a listing nor Spark can reach such an object.
    """
    if any(character < " " or character == "\x7f" for character in key):
        return "a control character"
    parts = key.split("/")
    if any(part in (".", "..") for part in parts):
        return "a component . or .."
    if not parts[0]:
        return "a slash at the beginning"
    if not parts[-1]:
        return "a slash at the end"
    return None if all(parts) else "an empty component (//)"


def quote_name(name: str) -> str:
    """Return a name in double quotes, with unprintable characters escaped."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


class SkippedNamesCollector:
    """Collect the names that a listing skips, by reason."""

    def __init__(self, endings: Sequence[str]) -> None:
        """Take the endings of the source's files."""
        self._endings = endings
        plain = [ending for ending in endings if ending.rpartition(".")[0] not in endings]
        self._expected = f"names of this source's files end in {' or '.join(plain[:_ENDINGS])}"
        self._names: dict[tuple[str, bool], dict[str, None]] = {}
        self._counts: dict[tuple[str, bool], int] = {}

    def take(self, name: str) -> None:
        """Add a name that is hidden, or has another ending."""
        if any(is_hidden_name(part) for part in name.removesuffix("/").split("/")):
            self._add(_HIDDEN, name)
            return
        why = self._ending_why(ending_of(name) or "none")
        if (why, False) not in self._names and len(self._names) >= _ENDINGS:
            why = self._ending_why(_OTHERS)
        self._add(why, name)

    def take_unreadable(self, name: str, fault: str) -> None:
        """Add a name that cannot be loaded, whatever its ending."""
        self._add(f"{fault}. Rename or remove it", name, all_shown=True)

    def _ending_why(self, ending: str) -> str:
        other_formats = [name for name, form in FORMATS.items() if ending in form.all_endings]
        if other_formats and not any(
            own in FORMATS[name].all_endings for name in other_formats for own in self._endings
        ):
            forms = " or ".join(f"`format: {name}`" for name in other_formats)
            return f"{self._expected}, found {ending}. To load these, add a dataflow for the same path with {forms}"
        return f"{self._expected}, found {ending}. Rename files to load them, or set source.extensions"

    def _add(self, why: str, name: str, *, all_shown: bool = False) -> None:
        names = self._names.setdefault((why, all_shown), {})
        if name in names:
            return
        self._counts[why, all_shown] = self._counts.get((why, all_shown), 0) + 1
        if len(names) < _KEPT:
            names[name] = None

    @property
    def skipped(self) -> tuple[SkippedNames, ...]:
        """The collected names; those that cannot be loaded come first."""
        ordered = sorted(self._names.items(), key=lambda item: not item[0][1])
        return tuple(
            SkippedNames(why, tuple(sorted(names)), self._counts[why, all_shown], all_shown)
            for (why, all_shown), names in ordered
        )


def merge_skipped(
    before: Collection[SkippedNames], later: Iterable[SkippedNames]
) -> tuple[SkippedNames, ...]:
    """Merge the skipped names of two listings, without duplicates."""
    by_reason = {group.why: group for group in before}
    for group in later:
        earlier = by_reason.get(group.why)
        if earlier is None:
            by_reason[group.why] = group
            continue
        names = tuple(sorted({*earlier.names, *group.names}))
        by_reason[group.why] = SkippedNames(
            group.why, names[:_KEPT], max(earlier.count, group.count, len(names)), group.all_shown
        )
    return tuple(by_reason.values())


def skip_warnings(skipped: Iterable[SkippedNames]) -> Iterator[str]:
    """Yield the warning of each group."""
    for group in skipped:
        yield group.warning
