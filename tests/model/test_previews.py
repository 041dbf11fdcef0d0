"""What the preview of a decision says is what happens: after any history and one decision, every row is there once, or its file is named.

What is modelled: files come, in order and late; runs and sweeps load them; files vanish from the source; others delete rows of the table; the
state is lost. Then one decision is made, and runs and sweeps go on until nothing is new, or one stops. A decision that asks is made with an
answer.

What must be named, if it happens to a file after the decision: its row is there twice; its row goes; its row comes back although others
deleted it; it is at the source and no run loads it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitions.errors import NeedsDecision, StrandlineError
from resources.kinds import all_decisions as decisions
from resources.watermarks.entry import Entry
from resources.watermarks.exporting import export_lines
from tests.model import actions as do
from tests.model.oracle import Oracle, key
from tests.model.world import MEMORY, NOW, Config, World
from tests.support.arrow import OwnWrite, Write
from tests.support.jvmless import NAME

_SETTINGS: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@dataclass(frozen=True, repr=False)
class RemoveFile(do.Terse):
    """A file vanishes from the source.

    Attributes:
        index: which of the files there are.
    """

    index: int = 0


@dataclass(frozen=True, repr=False)
class DeleteRow(do.Terse):
    """Others delete the row of a file from the table.

    Attributes:
        index: which of the files with a row.
    """

    index: int = 0


@dataclass(frozen=True, repr=False)
class Export(do.Terse):
    """The state is exported."""


class _Witness(Oracle):
    """Counts the rows of the table, and holds no promise."""

    def load(self, write: Write | OwnWrite) -> None:
        if write.deleted is None:
            self.copies.clear()
        for path in write.deleted or ():
            self.copies[path] = 0
        for path in write.paths:
            self.copies[path] += 1

    def decide(self, entry: Entry, before: Entry | None, paths: Any, again: Any = ()) -> None:
        """Accept any decision."""

    def remember(self, then: Oracle) -> None:
        """Accept any state."""

    def check_table(self, copies: Counter[str], foreign: Counter[int]) -> None:
        """Accept any table."""


@dataclass
class _Histories(World):
    """A world in which files vanish, and others delete rows.

    Attributes:
        deleted: files whose rows others deleted.
    """

    deleted: set[str] = field(default_factory=set)

    def _act(self, action: Any) -> str:
        match action:
            case RemoveFile(index):
                paths = self.source()
                if paths:
                    (self.landing / paths[index % len(paths)]).unlink()
                return f"of {paths}"
            case DeleteRow(index):
                return self._delete_row(index)
            case Export():
                if self.log.newest(NAME) is not None:
                    self.export = list(export_lines(self.log, NAME))
                return "exported"
            case do.LoseState():
                shutil.rmtree(self.state, ignore_errors=True)
                return "the state is gone"
        return super()._act(action)

    def _delete_row(self, index: int) -> str:
        paths = sorted(path for path, count in self._contents()[0].items() if count)
        if not paths:
            return "there is no row"
        path = paths[index % len(paths)]
        DeltaTable(str(self.table)).delete(f"_source_file = '{path}'")
        self.deleted.add(path)
        self.oracle.copies[path] = 0
        return path

    def source(self) -> list[str]:
        """Return the files of the source, in order."""
        paths = [str(file.relative_to(self.landing)) for file in self.landing.rglob("*.ndjson")]
        return sorted(paths, key=key)

    def rows(self) -> Counter[str]:
        """Return the rows of each file in the table."""
        return +self._contents()[0]

    def decide(self, making: decisions.DraftBuilder) -> str | None:
        """Make a decision; return its preview as one text, None if it is refused or asks."""
        try:
            with self._process(None) as process:
                preview = decisions.preview(process, self.flow, making, NOW)
            with self._process(None) as process:
                decisions.decide(process, self.flow, making, "any")
        except StrandlineError:
            return None
        return "\n".join(preview.lines)

    def come_to_rest(self) -> bool:
        """Run and sweep until nothing is new; return False if a run stops for a decision."""
        for step in (self._run, self._sweep, self._sweep, self._run, self._sweep, self._run):
            done = step()
            if isinstance(done, NeedsDecision):
                return False
            assert not isinstance(done, StrandlineError), done
        return True


def _making(world: _Histories, decision: Sequence[Any]) -> decisions.DraftBuilder | None:
    verb, *answers = decision
    newest = world.log.newest(NAME)
    match verb:
        case "rewind":
            back, replace, gone, deleted = answers
            to = max(0, newest.number - back) if newest else 0
            return decisions.rewind(
                "any", to, replace=replace, gone_files=gone if replace else None, deleted=deleted
            )
        case "reset":
            return decisions.reset("any", replace=answers[0])
        case "adopt":
            return decisions.adopt("any", answers[0])
        case "accept":
            return decisions.accept("any")
        case "import":
            return decisions.import_entries("any", world.export, answers[0]) if world.export else None
        case "set":
            making = world._set(answers[0])
            return None if isinstance(making, str) else making
        case "unprocess":
            loaded = sorted(world.rows())[:1]
            return decisions.unprocess("any", loaded) if loaded else None
    raise AssertionError(verb)


def _unsaid(
    before: Counter[str], after: Counter[str], source: Sequence[str], deleted: set[str], preview: str
) -> list[str]:
    """Return what has happened to files that the preview does not name."""
    found = []
    for path in sorted({*before, *after, *source}, key=key):
        was, now = before[path], after[path]
        fate = None
        if now > 1:
            fate = f"is there {now} times"
        elif was and not now:
            fate = "is deleted"
        elif not was and now and path in deleted:
            fate = "is back although others deleted it"
        elif not now and path in source and path not in deleted:
            fate = "is at the source, and no run loads it"
        if fate and path not in preview:
            found.append(f"the row of {path} {fate}")
    return found


def _play(history: Sequence[Any], decision: Sequence[Any], config: Config) -> None:
    folder = Path(mkdtemp(dir=MEMORY if MEMORY.is_dir() else None, prefix="preview-"))
    world = _Histories(folder / "world", config, _Witness(config.tracking == "set"))
    for part in (world.landing, world.state, world.root / "lake"):
        part.mkdir(parents=True)
    try:
        for action in history:
            world.act(action)
        making, before = _making(world, decision), world.rows()
        preview = world.decide(making) if making is not None else None
        if preview is None or not world.come_to_rest():
            return
        found = _unsaid(before, world.rows(), world.source(), world.deleted - {*before}, preview)
        shown = "\n".join([f"{config}", *map(repr, history), f"{decision}", preview, *world.trace])
        assert not found, f"{found}\n{shown}"
    finally:
        shutil.rmtree(folder)


_FILES = st.integers(0, 5)
_EVENTS = st.one_of(
    st.builds(do.Arrive, st.integers(1, 2)),
    st.just(do.Run()),
    st.just(do.Late()),
    st.just(do.Sweep()),
    st.builds(RemoveFile, _FILES),
    st.builds(DeleteRow, _FILES),
    st.just(Export()),
    st.just(do.LoseState()),
)
_ANSWERS = (None, "load")
_DECISIONS = st.one_of(
    st.tuples(
        st.just("rewind"),
        st.integers(0, 4),
        st.booleans(),
        st.sampled_from([None, "delete", "keep"]),
        st.sampled_from(_ANSWERS),
    ),
    st.tuples(st.just("reset"), st.booleans()),
    st.tuples(st.sampled_from(["adopt", "import"]), st.sampled_from([None, "load", "skip"])),
    st.tuples(st.sampled_from(["accept", "unprocess"])),
    st.tuples(st.just("set"), st.integers(1, 2)),
)
_CONFIGS = st.sampled_from([Config(), Config(tracking="set")])


def _histories(most: int) -> st.SearchStrategy[list[Any]]:
    """Return histories of a load and at most so many events; of few files, so that a preview names all."""
    few = st.lists(_EVENTS, max_size=most).filter(
        lambda events: (
            sum(getattr(event, "files", 1) for event in events if isinstance(event, do.Arrive | do.Late)) <= 3
        )
    )
    return few.map(lambda events: [do.Arrive(2), do.Run(), *events])


@given(history=_histories(6), decision=_DECISIONS, config=_CONFIGS)
@settings(max_examples=60, **_SETTINGS)
def test_every_row_is_there_once_or_its_file_is_named(
    history: list[Any], decision: tuple[Any, ...], config: Config
) -> None:
    _play(history, decision, config)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(history=_histories(10), decision=_DECISIONS, config=_CONFIGS)
@settings(max_examples=2000, **_SETTINGS)
def test_in_long_histories_every_row_is_there_once_or_its_file_is_named(
    history: list[Any], decision: tuple[Any, ...], config: Config
) -> None:
    _play(history, decision, config)
