"""A dataflow without a JVM, everything that may happen to it, and the operator who follows what a stopped run offers.

:func:`play` is all that tests call. It plays a schedule, holds every commit and decision against the oracle at once, and in the end
lets the world come to rest: runs and sweeps until nothing is left to do. Where a run stops with exit code 4, each of its
choices is followed in a world of its own, command by command, as often as it takes:

- at least one of them leads to every row once;
- none of them breaks a promise of :mod:`tests.model.oracle`;
- none of them, and no run, fails for ever without a command that leads on.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision, StrandlineError
from platform_assets.cli.main import strandline
from resources.connections.places import Place
from resources.decisions.reasons import DELETED
from resources.kinds import all_decisions as decisions
from resources.kinds.path.late import late_step
from resources.listing import Budget
from resources.platform.platform import Platform
from resources.watermarks import holder
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry
from resources.watermarks.exporting import export_lines
from resources.watermarks.file_ranges import LOADED_AGAIN
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import INGESTED_FILES
from resources.watermarks.log import WatermarkLog
from tests.model import actions as do
from tests.model.oracle import Oracle, Violation, key, reached
from tests.support.arrow import CommitFailed, OwnWrite, Write, active
from tests.support.jvmless import NAME, Killed, Parts, Point, Process

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MEMORY = Path("/dev/shm")
"""A folder in memory, where there is one: thousands of small files are put."""

_PATIENCE = 3
"""Runs that may fail after each other, before they count as failing for ever."""

_rows_of: dict[str, list[dict[str, Any]]] = {}
"""The rows of data files, which never change."""


class Stuck(Exception):
    """No command leads on."""


@dataclass
class Config:
    """What is defined."""

    tracking: str = "watermark"
    late_files: str = "ingest"


@dataclass
class Backup:
    """What was there after an action."""

    folder: Path
    oracle: Oracle


@dataclass
class World:
    """A dataflow and all that belongs to it, below one folder.

    Attributes:
        running: writes of runs that were killed during their commit, each with what was promised then.
        export: of the last state that was lost.
        stop: why the last run stopped with exit code 4.
        trace: what has happened, in lines.
    """

    root: Path
    config: Config
    oracle: Oracle
    parts: Parts = field(default_factory=Parts)
    ending: str = ".jsonl"
    running: list[tuple[Write | OwnWrite, Oracle]] = field(default_factory=list)
    export: list[str] = field(default_factory=list)
    backups: dict[int, Backup] = field(default_factory=dict)
    stop: NeedsDecision | None = None
    trace: list[str] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _named: list[str] = field(default_factory=list)
    _last: Entry | None = None
    _step: int = 0
    _broken: Violation | None = None
    _promised: dict[str, Oracle] = field(default_factory=dict)

    # Where things are

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def table(self) -> Path:
        return self.root / "lake" / "bronze" / NAME

    @property
    def log(self) -> WatermarkLog:
        """The log, read by a bystander."""
        return WatermarkLog(open_blobs(Place(str(self.state))))

    @property
    def flow(self) -> Dataflow:
        return self.parts.dataflow(self.config.tracking, self.config.late_files, self.ending)

    def copy(self) -> World:
        """The same world once more, to try something in."""
        folder = Path(mkdtemp(dir=self.root.parent))
        shutil.copytree(self.root, folder, dirs_exist_ok=True)
        running = [(_moved(write, folder), then.copy()) for write, then in self.running]
        made = World(
            folder, self.config, self.oracle.copy(), self.parts, self.ending, running, list(self.export)
        )
        made._last, made._promised = self._last, dict(self._promised)
        made.trace = self.trace  # of a tree of choices all is shown
        return made

    def remove(self) -> None:
        """Clean up."""
        shutil.rmtree(self.root, ignore_errors=True)

    # What happens

    def act(self, action: do.Action) -> None:
        """Let something happen."""
        self._step += 1
        self._last = self.log.newest(NAME)
        said = self._act(action)
        self.say(f"{self._step:>3}. {action!r}: {said}; {self._shown()}")
        self._check()

    def keep(self) -> None:
        """Keep a backup of what is there after the last action."""
        folder = Path(mkdtemp(dir=self.root.parent))
        for name in ("state", "lake"):
            if (self.root / name).exists():
                shutil.copytree(self.root / name, folder / name)
        self.backups[self._step] = Backup(folder, self.oracle.copy())

    def say(self, line: str) -> None:
        """Note what happens."""
        self.trace.append(line)

    def _act(self, action: do.Action) -> str:
        match action:
            case do.Arrive(files):
                return ", ".join(self._arrive() for _ in range(files))
            case do.Late():
                return self._arrive_late()
            case do.Run(kill):
                return self._told(self._run(kill))
            case do.Sweep(kill):
                return self._told(self._sweep(kill))
            case do.Follow(choice, kill):
                return self._follow(choice, kill)
            case do.Land():
                return self._land()
            case do.ChangeDefinition():
                self.ending = ".txt" if self.ending == ".jsonl" else ".jsonl"
                return f"extensions .ndjson, {self.ending}"
            case (
                do.Set()
                | do.Rewind()
                | do.Reset()
                | do.Adopt()
                | do.Accept()
                | do.Import()
                | do.Release()
                | do.Unprocess()
            ):
                return self._decide(action)
            case _:
                return self._damage(action)

    def _arrive(self) -> str:
        number = next(self._ids)
        return self._put(f"d{1 + (number > 3)}/{number:03}.ndjson", number)

    def _arrive_late(self) -> str:
        number = next(self._ids)
        first = min(self.oracle.due, key=key, default="d1/000.ndjson")
        stem = first.removesuffix(".ndjson")[:6]
        return self._put(f"{stem}-{number:03}.ndjson", number, late=True)

    def _put(self, path: str, number: int, *, late: bool = False) -> str:
        file = self.landing / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"id": number}) + "\n")
        self.oracle.arrive(path, late=late)
        return path

    # Processes

    @contextmanager
    def _process(self, kill: do.Kill | do.Meanwhile | None) -> Iterator[Platform]:
        seen: Counter[Point] = Counter()

        def heard(point: Point, write: Write | OwnWrite | None) -> None:
            seen[point] += 1
            with self._judged():
                if point == ("after", "commit"):
                    assert write is not None
                    self.oracle.load(write)
                if point == ("after", "entries"):
                    self._appended()
            if kill is None or seen[point] != kill.times or point[1] != kill.what:
                return
            if isinstance(kill, do.Meanwhile):
                if kill.when == point[0]:
                    self._meanwhile(kill.action)
                return
            if kill.when == "during" and point[0] == "before":
                assert write is not None
                self.running.append((write, self.oracle.copy()))
                raise Killed
            if kill.when == point[0]:
                raise Killed

        yield self.parts.platform(self.state, self.root / "lake", self.landing, Process(heard))

    def _meanwhile(self, action: do.Action) -> None:
        """Let something happen in another process, which takes ours for dead."""
        named = self._named
        with pytest.MonkeyPatch.context() as patch, self._judged():
            patch.setattr(holder, "is_alive", lambda *asked: False)
            self.say(f"       meanwhile {action!r}: {self._act(action)}; {self._shown()}")
            self._check()
        self._named = named

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """Have a process die of a broken promise, which it would take for an error of its own; :meth:`_check` raises it."""
        try:
            yield
        except Violation as broken:
            self._broken = broken
            raise Killed from broken

    def _appended(self) -> None:
        """Tell the oracle of what an operator or the sweep has decided."""
        entry = self.log.newest(NAME)
        if entry is None or (self._last and entry.id == self._last.id):
            return
        before, self._last = self._last, entry
        if entry.id in self._promised:  # an import brings it back
            self.oracle.remember(self._promised[entry.id])
            return
        listed = self.log.get_list(entry.file_list, INGESTED_FILES).rows if entry.file_list else []
        paths = [row[0] for row in listed]
        if entry.files:  # a slice's
            self.oracle.unknown -= set(paths)
        else:
            skipped = [row[0] for row in listed if row[-1] == DELETED]
            records = list(IngestedFiles(self.log, NAME, entry).all())
            again = [file.path for file in records if file.reason in LOADED_AGAIN]
            counted = [file.path for file in records if file.reason not in LOADED_AGAIN]
            named = {"late": paths, "set": paths, "import": counted, "adopt": skipped}
            self.oracle.decide(entry, before, named.get(entry.why, self._named), again)
        self._promised[entry.id] = self.oracle.copy()

    def _run(self, kill: do.Kill | do.Meanwhile | None = None) -> str | StrandlineError:
        try:
            with self._process(kill) as process:
                outcome = process.loop(self.flow, NOW).run()
        except Killed:
            return "killed"
        return self._noted(outcome.error) if outcome.error else outcome.status

    def _sweep(self, kill: do.Kill | do.Meanwhile | None = None) -> str | StrandlineError:
        try:
            with self._process(kill) as process:
                step = late_step(process, self.flow, NOW, Budget())
        except Killed:
            return "killed"
        except StrandlineError as error:
            return self._noted(error)
        return f"{len(step.step.late)} late"

    def _noted(self, error: StrandlineError) -> StrandlineError:
        if error.code == "internal":
            raise Violation(error.message) from error.__cause__
        self.stop = error if isinstance(error, NeedsDecision) else None
        return error

    def _told(self, done: str | StrandlineError) -> str:
        return done if isinstance(done, str) else f"exit {done.exit_code}, {done.code}: {done.message[:200]}"

    def _land(self) -> str:
        if not self.running:
            return "nobody writes"
        write, then = self.running.pop(0)
        try:
            write.land()
        except CommitFailed as error:
            return f"refused: {error}"
        if self.oracle.forgotten == then.forgotten:
            self.oracle.load(write)
        else:
            self.oracle.load_by_copy(write, then)
        return f"number {write.number} landed"

    # Decisions

    def _decide(self, action: Any) -> str:
        making = self._making(action)
        return making if isinstance(making, str) else self._told(self._decided(making, action.kill))

    def _making(self, action: Any) -> decisions.DraftBuilder | str:
        self._named = []
        match action:
            case do.Set(ahead):
                return self._set(ahead)
            case do.Rewind(back, replace):
                newest = self.log.newest(NAME)
                to = max(0, newest.number - back) if newest else 0
                return decisions.rewind("any", to, replace=replace)
            case do.Reset(replace):
                return decisions.reset("any", replace=replace)
            case do.Adopt():
                return decisions.adopt("any")
            case do.Accept():
                return decisions.accept("any")
            case do.Import(ago):
                lines = self._exported(ago)
                return decisions.import_entries("any", lines) if lines else "nothing was exported"
            case do.Release():
                self._named = sorted(self.oracle.held)
                return decisions.release("any", self._named)
            case do.Unprocess():
                loaded = sorted(path for path, copies in self.oracle.copies.items() if copies)[:1]
                self._named = loaded
                return decisions.unprocess("any", loaded)
        raise AssertionError(action)

    def _set(self, ahead: int) -> decisions.DraftBuilder | str:
        newest = self.log.newest(NAME)
        mark = reached(newest.watermark) if newest else ("", "")
        above = sorted((path for path in self.oracle.due if key(path) > mark), key=key)
        if not above:
            return "nothing is above the watermark"
        return decisions.set_watermark("any", json.dumps({"path": above[min(ahead, len(above)) - 1]}))

    def _exported(self, ago: int) -> list[str]:
        then = self.backups.get(self._step - ago)
        if then is None or not (then.folder / "state").exists():
            return []
        return list(export_lines(WatermarkLog(open_blobs(Place(str(then.folder / "state")))), NAME))

    def _decided(
        self, making: decisions.DraftBuilder, kill: do.Kill | do.Meanwhile | None = None
    ) -> str | StrandlineError:
        """As the command does it: show what would follow, then decide."""
        try:
            with self._process(None) as process:
                decisions.preview(process, self.flow, making, NOW)
            with self._process(kill) as process:
                return f"entry {decisions.decide(process, self.flow, making, 'any').number}"
        except Killed:
            return "killed"
        except StrandlineError as error:
            return self._noted(error)
        except Exception as error:
            raise Violation(f"a decision fails with {type(error).__name__}: {error}") from error

    def _follow(self, choice: int, kill: do.Kill | do.Meanwhile | None) -> str:
        done = self._run()
        if not isinstance(done, NeedsDecision) or not done.choices:
            return self._told(done)
        command = done.choices[choice % len(done.choices)]
        try:
            return f"{done.code}, {command!r}: {self._told(self.obey(command, kill))}"
        except Stuck as stuck:
            return f"{done.code}, {command!r}: {stuck}"

    def obey(self, command: str, kill: do.Kill | do.Meanwhile | None = None) -> str | StrandlineError:
        """Do what a choice says, word by word.

        Raises:
            Stuck: for one that changes nothing.
        """
        words, given = _parsed(command)
        self._named = []
        match words:
            case ["run"]:
                return self._run(kill)
            case ["state", "adopt"]:
                return self._decided(decisions.adopt("any", given["deleted"]), kill)
            case ["state", "accept"]:
                return self._decided(decisions.accept("any", given["below"]), kill)
            case ["state", "reset"]:
                return self._decided(decisions.reset("any", replace=given["replace"]), kill)
            case ["state", "import"] if self.export:
                return self._decided(decisions.import_entries("any", self.export, given["deleted"]), kill)
        raise Stuck(f"{command!r} says nothing that could be done here")

    # Damage

    def _damage(self, action: do.Action) -> str:
        match action:
            case do.LoseState():
                if self.log.newest(NAME) is not None:
                    self.export = list(export_lines(self.log, NAME))
                shutil.rmtree(self.state, ignore_errors=True)
                self.oracle.forget()
                return "the state is gone"
            case do.LoseList():
                lists = sorted((self.state / NAME / "files").glob("*"))
                for file in lists[-1:]:
                    file.unlink()
                return f"{len(lists[-1:])} list is gone"
            case do.RestoreState(ago):
                return self._restore_state(ago)
            case do.CopyRuns(ago):
                return self._copy_runs(ago)
            case do.CleanLog():
                return self._clean()
        said = self._damage_table(action)
        newest = self.log.newest(NAME)
        wanted = action == do.Overwrite("part")  # whoever replaces a part wants what was there gone
        self.oracle.see(*self._contents(), emptying=bool(newest and newest.replace_table), wanted=wanted)
        return said

    def _damage_table(self, action: do.Action) -> str:
        match action:
            case do.RestoreTable(ago):
                then = self.backups.get(self._step - ago)
                if then is None or not (then.folder / "lake").exists():
                    return "there is no backup of it"
                self._drop()
                shutil.copytree(then.folder / "lake", self.root / "lake", dirs_exist_ok=True)
                return f"the table of step {self._step - ago}"
            case do.RestoreVersion(back):
                table = self._delta()
                if table is None or table.version() == 0:
                    return "there is nothing to restore"
                version = max(0, table.version() - back)
                try:
                    table.restore(version)
                except Exception as error:  # noqa: BLE001 - what was cleaned up cannot be restored
                    return f"cannot be restored: {str(error)[:80]}"
                return f"version {version}"
            case do.RemoveTable():
                self._drop()
                return "the table is gone"
            case do.RecreateTable(rows, commits):
                self._drop()
                self._write_foreign(rows)
                for _ in range(commits - 1):
                    self._write_foreign(1)
                return "somebody else's table"
            case do.AppendForeign():
                self._write_foreign(1)
                return "somebody else's row"
            case do.Overwrite(by):
                return self._overwrite(by)
        raise AssertionError(action)

    def _overwrite(self, by: str) -> str:
        table = self._delta()
        if table is None:
            return "there is no table"
        rows = pa.concat_tables(
            [pq.read_table(self.table / name).cast(self.parts.columns) for name in active(self.table)]
            or [self.parts.columns.empty_table()]
        ).sort_by("id")
        theirs = pa.Table.from_pylist([{"id": -next(self._ids)}], schema=self.parts.columns)
        match by:
            case "others":
                write_deltalake(str(self.table), theirs, mode="overwrite")
            case "half":
                write_deltalake(str(self.table), rows.slice(0, rows.num_rows // 2), mode="overwrite")
            case "part":
                paths = sorted(set(rows["_source_file"].drop_null().to_pylist()))
                if not paths:
                    return "there is no row of ours"
                predicate = f"_source_file = '{paths[0]}'"
                write_deltalake(str(self.table), rows.slice(0, 0), mode="overwrite", predicate=predicate)
                return f"the rows of {paths[0]} are deleted"
            case "project":
                number = next(self._ids)
                owned = {"owner": f"other {number}", "number": number, "gives_up": False, "state": "{}"}
                text = json.dumps({"strandline": owned})
                write = Write(self.table, table.version(), "other", number, "overwrite", None, text, theirs)
                write.land()
        return f"overwritten ({by})"

    def _drop(self) -> None:
        shutil.rmtree(self.table, ignore_errors=True)
        self.running.clear()  # what they have written is gone with it

    def _write_foreign(self, rows: int) -> None:
        ids = [-next(self._ids) for _ in range(rows)]
        data = pa.Table.from_pylist([{"id": one} for one in ids], schema=self.parts.columns)
        self.table.parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(str(self.table), data, mode="append")

    def _restore_state(self, ago: int) -> str:
        then = self.backups.get(self._step - ago)
        if then is None or not (then.folder / "state").exists():
            return "there is no backup of it"
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(then.folder / "state", self.state)
        self.oracle.remember(then.oracle)
        return f"the state of step {self._step - ago}"

    def _copy_runs(self, ago: int) -> str:
        then = self.backups.get(self._step - ago)
        if then is None or not (then.folder / "state").exists():
            return "there is no copy"
        state = Path(mkdtemp(dir=self.root.parent))
        shutil.copytree(then.folder / "state", state, dirs_exist_ok=True)
        oracle = then.oracle.copy()

        def heard(point: Point, write: Write | OwnWrite | None) -> None:
            if point == ("after", "commit") and write is not None:
                with self._judged():
                    self.oracle.load_by_copy(write, oracle)

        try:
            process = self.parts.platform(state, self.root / "lake", self.landing, Process(heard))
            outcome = process.loop(self.flow, NOW).run()
        except Killed:
            return "killed"
        finally:
            shutil.rmtree(state)
        return outcome.status if outcome.error is None else self._told(outcome.error)

    def _clean(self) -> str:
        table = self._delta()
        if table is None:
            return "there is no table"
        table.create_checkpoint()
        for file in (self.table / "_delta_log").glob("*.json"):
            if int(file.stem) < table.version():
                file.unlink()
        return f"commits before version {table.version()} are cleaned up"

    def _delta(self) -> DeltaTable | None:
        return DeltaTable(str(self.table)) if (self.table / "_delta_log").is_dir() else None

    # What is there

    def _contents(self) -> tuple[Counter[str], Counter[int]]:
        copies: Counter[str] = Counter()
        foreign: Counter[int] = Counter()
        for name in active(self.table):
            if name not in _rows_of:
                _rows_of[name] = pq.read_table(self.table / name, columns=["id", "_source_file"]).to_pylist()
            for row in _rows_of[name]:
                if row["_source_file"] is None:
                    foreign[row["id"]] += 1
                else:
                    copies[row["_source_file"]] += 1
        return copies, foreign

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        self.oracle.check_table(*self._contents())

    def _shown(self) -> str:
        entry = self.log.newest(NAME)
        rows = [
            f"{path}{f' x {copies}' if copies > 1 else ''}"
            for path, copies in sorted((+self.oracle.copies).items())
        ]
        told = (
            f"state {entry.number} ({entry.why}) at {'/'.join(reached(entry.watermark))}"
            if entry
            else "no state"
        )
        return f"{told}; table {rows} {sorted(self.oracle.foreign) or ''}"

    # How it ends

    def rest(self, stops: Stops = ()) -> list[Oracle]:
        """Come to rest; returns what that is, for each of the ways there.

        Args:
            stops: those that have led here, each with the state's number.

        Raises:
            Stuck: where no command leads there.
            Violation: where a promise is broken.
        """
        failed = 0
        while True:
            self._last = self.log.newest(NAME)
            error = self._round()
            self._check()
            if error is None:
                break
            failed += 1
            self._say_below(stops, f"   {self._told(error)}")
            if isinstance(error, NeedsDecision):
                return self._choose(error, stops)
            if failed == _PATIENCE:
                raise Stuck(f"fails for ever: {self._told(error)}")
        self.oracle.check_rest()
        if self.log.open_intent(NAME, self.log.newest(NAME)) is not None:
            raise Violation("an intent is left open")
        return [self.oracle]

    def _round(self) -> StrandlineError | None:
        """Run, sweep twice, for a round may be on its way, and run until nothing is new."""
        for step in (self._run, self._sweep, self._sweep, self._run, self._run):
            done = step()
            self._check()
            if isinstance(done, StrandlineError):
                return done
        if done != "nothing":  # the last one's
            raise Violation(f"a run after all runs is {done}, expected nothing")
        return None

    def _choose(self, stop: NeedsDecision, stops: Stops) -> list[Oracle]:
        """Follow each choice in a world of its own."""
        newest = self.log.newest(NAME)
        here = (stop.code, newest.number if newest else 0)
        if here in stops:
            raise Stuck(f"leads back to {stop.code}")
        aims, told = self.oracle.aims(), []
        ended: list[Oracle] = []
        for command in stop.choices:
            world = self.copy()
            try:
                ended += world._try(command, (*stops, here))
            except Stuck as stuck:
                told.append(f"{command}: {stuck}")
            finally:
                world.remove()
        if not any(one.meets(aims) for one in ended):
            raise Stuck(f"{stop.code}: no choice leads to every row once: {'; '.join(told)}. {stop.message}")
        return ended

    def _try(self, command: str, stops: Stops) -> list[Oracle]:
        self._last = self.log.newest(NAME)
        done = self.obey(command)
        self._say_below(stops, f"-> {command}: {self._told(done)}")
        self._check()
        if isinstance(done, NeedsDecision):
            return self._choose(done, stops)
        if isinstance(done, StrandlineError):
            raise Stuck(self._told(done))
        return self.rest(stops)

    def _say_below(self, stops: Stops, line: str) -> None:
        self.say(f"{'  ' * (len(stops) + 1)}{line}; {self._shown()}")


Stops = tuple[tuple[str, int], ...]


def _moved(write: Write | OwnWrite, root: Path) -> Write | OwnWrite:
    return write.moved(root / "lake" / "bronze" / NAME)


def _parsed(command: str) -> tuple[list[str], dict[str, Any]]:
    """The words of a command of ours and its options, read by the command line itself.

    Raises:
        Stuck: for another program's.
    """
    program, *arguments = shlex.split(command)
    if program != "strandline":
        raise Stuck(f"{command!r} is none of our commands")
    found: click.Command = strandline
    words: list[str] = []
    while isinstance(found, click.Group):
        name = arguments.pop(0)
        child = found.get_command(click.Context(found), name)
        assert child is not None, command
        found, words = child, [*words, name]
    return words, found.make_context(words[-1], arguments).params


def play(
    schedule: Sequence[do.Action],
    config: Config | None = None,
    parts: Parts | None = None,
    base: Path = MEMORY,
) -> None:
    """Play a schedule, and see it end well.

    Args:
        schedule: what happens.
        config: what is defined.
        parts: what runs it; by default nothing of it takes a JVM.
        base: where the world lies, if there is such a folder.

    Raises:
        Violation: with the schedule as code, and what has happened.
    """
    config = config or Config()
    folder = Path(mkdtemp(dir=base if base.is_dir() else None, prefix="model-"))
    world = World(
        folder / "world", config, Oracle(config.tracking == "set", config.late_files == "quarantine")
    )
    for part in (world.landing, world.state, world.root / "lake"):
        part.mkdir(parents=True)
    wanted = {at - ago for at, action in enumerate(schedule, 1) for ago in _agos(action)}
    try:
        for at, action in enumerate(schedule, 1):
            world.act(action)
            if at in wanted:
                world.keep()
        world.say("  at rest:")
        world.rest()
    except (Violation, Stuck) as found:
        raise Violation("\n".join([str(found), "", *_script(schedule, config), "", *world.trace])) from found
    finally:
        shutil.rmtree(folder)


def _agos(action: Any) -> Iterator[int]:
    """How many actions ago that was which an action, or what happens meanwhile, brings back."""
    if hasattr(action, "ago"):
        yield action.ago
    kill = getattr(action, "kill", None)
    if isinstance(kill, do.Meanwhile):
        yield from _agos(kill.action)


def _script(schedule: Sequence[do.Action], config: Config) -> list[str]:
    return [
        "play(",
        "    [",
        *(f"        {action!r}," for action in schedule),
        "    ],",
        f"    {config!r},",
        ")",
    ]
