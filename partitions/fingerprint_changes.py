"""Explain what a change of a dataflow's identity means for its state (docs/reference/state.md).

The identity (``partitions.fingerprint.identity``) holds what the state depends on. A run stops if it has
changed; its message says, part by part, what happens to the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from partitions.path.roots import roots_overlap
from partitions.state_of_kind import remembers_files

MEANINGS = {
    "kind": "the watermark has another kind: it cannot be used, only reset",
    "source": "the watermark belongs to the old source: in the new one, anything at or below it counts as loaded",
    "source.query": "the watermark still holds if the query returns rows of the same times and units",
    "source.from": "only the first run of a stream uses it: the watermark still holds",
    "source.window_column": "the loaded windows now stand for other rows",
    "source.unit_columns": "the loaded units now stand for other rows",
    "columns": "the stored values belong to other columns: the watermark cannot be used, only reset",
    "zone": "days, and times without a zone, now mean other instants",
    "extensions": "files with a new ending at or below the watermark count as late, not as new",
    "prefix_template": "only a cold start uses it: the watermark still holds",
    "scope": "the watermark has another form: it cannot be used, only reset",
    "tracking": "the log knows the loaded files either way: the watermark still holds",
    "time": "the watermark still holds if only the name of the time dimension changed; otherwise all windows are "
    "new",
    "units": "units with other names are new and are read from the start; rows of the old units stay in the table",
    "from": "windows start at other instants: a window that starts where an old one did counts as loaded, all others are read again",
    "window": "windows have another length: a window that starts where an old one did counts as loaded (not beside sql or transform),"
    " all others are read again",
    "timezone": "days start at other instants: a window that starts where an old one did counts as loaded, all others are read again;"
    " times without a zone now mean other instants, so all windows of such rows are read again",
    "engine": "another engine keeps another state: the watermark cannot be used, only reset",
    "event_time": "the watermarks belong to another column: they cannot be used, only reset",
    "split": "the watermarks belong to other splits: they cannot be used, only reset",
    "operators": "the stored state belongs to other operators: it cannot be used, only reset",
    "policy": "Spark's checkpoint keeps the policy that it started with",
    "output_mode": "Spark's checkpoint keeps the output mode that it started with",
    "source.sources": "Spark's checkpoint knows its sources by their order, and how far it has read each of them",
    "target": "the rows loaded so far are in the old table: the new one gets only rows above the watermark",
    "target.format": "a table keeps its format: another format needs another table",
    "target.names": "the versions of the table have columns of the old names",
    "target.open_end": "the current versions of the table have the old end",
    "target.load": "an scd2 table accepts only load: scd2, since rows of other loads are not versions",
}
"""By part of the identity. A part of ``source`` or ``target`` without a line has the line of the whole."""

_NOTHING_LOADED = "nothing counts as loaded, so the new table gets all rows"
"""The meaning of a changed target if the watermark is empty."""

_OF_SPARK = "Spark's checkpoint belongs to the source that it started with"
"""The meaning of a changed source if Spark keeps the watermark."""

_OF_FILES = (
    "files in the new location whose paths were loaded count as loaded; others at or below the watermark are "
    "late"
)
"""The meaning of a changed source if the watermark is a path."""

_OF_OVERLAPPING_ROOTS = (
    "one folder lies in the other, so the same file has another path: watermark, log and rows name files by their old "
    "paths, so the state cannot be used, only reset"
)
"""The meaning of a changed path if the old folder contains the new one, or lies in it."""

FORMS_OF_TABLE = frozenset({"target.load", "target.names", "target.open_end"})
"""Parts that only the rows of the old table depend on; a new table takes any."""

_FORMS = (
    *FORMS_OF_TABLE,
    "kind",
    "scope",
    "columns",
    "engine",
    "event_time",
    "split",
    "operators",
    "policy",
    "output_mode",
)
"""Parts that change the form of the watermark or the table, so that a new definition cannot use it."""

_PARTED = ("source", "target")
"""Values that are compared part by part."""


class DefinitionChange(NamedTuple):
    """A part of the identity that has changed.

    Attributes:
        name: the part, such as ``source.path``.
        before: its old value; None: there was no such part.
        now: its new value.
        by_spark: whether Spark's own engine keeps the watermark, with a checkpoint.
        is_empty: whether the watermark is empty, so that nothing counts as loaded.
        by_path: whether the watermark is a path, so that the log knows each loaded file.
        of_files: whether the source are files, each named by its path below the source's folder.
    """

    name: str
    before: Any
    now: Any
    by_spark: bool = False
    is_empty: bool = False
    by_path: bool = False
    of_files: bool = False

    @property
    def part(self) -> str:
        """The key of :data:`MEANINGS` that explains it."""
        first, _, last = self.name.partition(".")
        parts = [part for part in (self.name, last, first) if part in MEANINGS]
        return parts[0]

    @property
    def changes_form(self) -> bool:
        """Whether the new definition cannot use the old watermark."""
        return self.name in _FORMS or self.renames_files

    @property
    def renames_files(self) -> bool:
        """Whether the new folder contains the old one, or lies in it: each file has another path then."""
        if self.name != "source.path" or not self.of_files:
            return False
        before, now = str(self.before or ""), str(self.now or "")
        by_window = "{" in before or "{" in now
        return not by_window and roots_overlap(before, now)

    @property
    def meaning(self) -> str:
        """What happens to the watermark, in words."""
        if self.is_empty and self.part == "target" and not self.changes_form:
            return _NOTHING_LOADED
        if self.renames_files:
            return _OF_OVERLAPPING_ROOTS
        if self.part == "source" and (self.by_spark or self.by_path):
            return _OF_SPARK if self.by_spark else _OF_FILES
        return MEANINGS[self.part]

    def __str__(self) -> str:
        """Return the old value, the new value, and the meaning for the state."""
        return f"{self.name} was {_words(self.before)}, is {_words(self.now)} ({self.meaning})"


def _words(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return "; ".join(map(_declared, value))
    if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
        return ", ".join(f"{name}: {item}" for name, item in value.items()) or "nothing"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "nothing"
    return value if isinstance(value, str) else "nothing" if value is None else json.dumps(value)


def _declared(part: Mapping[str, Any]) -> str:
    """Return an item of a list of declarations in one line: its type and its settings."""
    settings = {name: value for name, value in part.items() if name != "type"}
    kind = str(part.get("type", ""))
    return (
        f"{kind} ({', '.join(f'{name}: {_words(setting)}' for name, setting in settings.items())})"
        if settings
        else kind
    )


def changes(
    before: Mapping[str, Any], now: Mapping[str, Any], load: str = "another"
) -> list[DefinitionChange]:
    """Return each part of an identity that has changed.

    The old table's load does not matter to a new table.

    Args:
        before: the identity that the state was created with; it may hold more, such as the load.
        now: the identity of the definition.
        load: load of the definition; an identity holds only ``scd2``.
    """
    then, current, by_spark = _flat(before), _flat(now), now.get("engine") == "structured_streaming"
    named = [*current, *(name for name in then if name not in current and _is_known(name))]
    changed = [name for name in named if then.get(name) != current.get(name)]
    then |= {"target.load": then.get("target.load") or before.get("load", "another")}
    current |= {"target.load": current.get("target.load") or load}
    if "target.table" in changed:
        changed = [name for name in changed if name not in FORMS_OF_TABLE]
    by_path = remembers_files(str(now.get("kind")))
    of_files = then.get("source.type") == "files" == current.get("source.type")
    return [
        DefinitionChange(
            name, then.get(name), current.get(name), by_spark, by_path=by_path, of_files=of_files
        )
        for name in changed
    ]


def _is_known(name: str) -> bool:
    """Return whether a name is a part of the identity, not another stored value."""
    return name in MEANINGS or name.partition(".")[0] in _PARTED


def _flat(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of source and target under names of their own; any other value stays whole."""
    flat: dict[str, Any] = {}
    for name, value in identity.items():
        if name in _PARTED and isinstance(value, Mapping):
            flat |= {f"{name}.{part}": of_part for part, of_part in value.items()}
        else:
            flat[name] = value
    return flat
