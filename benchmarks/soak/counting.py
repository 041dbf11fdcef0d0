"""Compare the tables' rows with the sources at the end, and check what the product reports about itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from benchmarks.soak.processes import process
from benchmarks.soak.product import Commands
from benchmarks.soak.sources import Rows
from resources.connections.places import Place
from tests.support.feed import Answer

_SHOWN = 20
_ALL = "1000000"


@dataclass(frozen=True)
class Compared:
    """The rows of a table, compared with the rows that must be in it.

    Attributes:
        missing: ids that are not in the table.
        doubled: ids that are in the table more than once.
        wrong: ids that must not be in the table, or whose values differ.
    """

    expected: int
    found: int
    missing: Sequence[Any]
    doubled: Sequence[Any]
    wrong: Sequence[Any]

    @classmethod
    def of(cls, expected: Rows, found: Rows) -> Compared:
        """Compare rows; the first value of a row is its id."""
        wanted, there = (
            Counter(row[0] for row in expected.elements()),
            Counter(row[0] for row in found.elements()),
        )
        return cls(
            expected.total(),
            found.total(),
            sorted(wanted.keys() - there.keys()),
            sorted(one for one, count in there.items() if count > 1),
            sorted({row[0] for row in (found - expected)} - {one for one in there if there[one] > 1}),
        )

    @property
    def problems(self) -> list[str]:
        """The problems, for people."""
        parts = {"missing": self.missing, "doubled": self.doubled, "wrong": self.wrong}
        return [f"{len(ids):,} ids {what}: {_shown(ids)}" for what, ids in parts.items() if ids]


def rows_of(lake: Place, name: str, columns: Sequence[str]) -> Rows:
    """Return the rows of a table, read without Spark; none if there is no table."""
    table, options = lake.child(f"bronze/{name}"), lake.child(name).storage_options
    if not DeltaTable.is_deltatable(table.url, options):
        return Counter()
    found = DeltaTable(table.url, storage_options=options).to_pyarrow_table(columns=list(columns)).to_pylist()
    return Counter(tuple(row[column] for column in columns) for row in found)


@dataclass
class Asked:
    """Asks the command line about dataflows. Answers are texts that say what is wrong or not done yet; empty if nothing is.

    Attributes:
        commands: the project's command line.
    """

    commands: Commands

    def held(self, name: str) -> list[str]:
        """Return the paths in quarantine."""
        answer = self.commands.call("list", name)
        if answer.code:
            return []
        return [one["path"] for one in answer.json[0]["quarantined"]["files"]]

    def release(self, name: str, paths: Sequence[str]) -> Answer:
        """Release files from quarantine."""
        return self.commands.call("files", "release", name, *paths, "--reason", "repaired")

    def late(self, name: str) -> str:
        """Take a step of the sweep; return what it found, or its error. Empty if nothing was late and the round is complete."""
        answer = self.commands.call("late", name)
        if answer.code:
            return f"{name}: late: {_error(answer)}"
        found = answer.json
        if found["late"] or not found["complete"]:
            return f"{name}: late: {len(found['late'])} found, complete: {found['complete']}"
        return ""

    def planned(self, names: Sequence[str]) -> list[str]:
        """Return what a run would do, except for what the grace reads again every time."""
        answer = self.commands.call("plan", *names)
        try:
            return [told for document in answer.json if (told := _planned(document))]
        except (ValueError, TypeError):
            return [f"plan: {_error(answer)}"]

    def open_intent(self, name: str, *, again: bool = False) -> str:
        """Return the number that a run has begun and not finished.

        Args:
            name: the dataflow's name.
            again: whether it always has runs, since its grace is read again each time; then only the intents of dead runs count.
        """
        answer = self.commands.call("state", "history", name, "--intents", "--limit", "2")
        if answer.code:
            return f"{name}: state history: {_error(answer)}"
        newest = answer.json[:1]
        if not newest or "time" in newest[0] or (again and process(newest[0]["intent"]["holder"]["pid"])):
            return ""
        return f"{name}: number {newest[0]['number']} is begun"

    def begun(self, name: str) -> str:
        """Return when the newest committed number was begun; empty if there is none."""
        answer = self.commands.call("state", "history", name, "--intents", "--limit", "2")
        if answer.code:
            return ""
        times = [
            one["intent"]["time"]
            for one in answer.json
            if "time" in one and one["intent"] and one["work_units"]
        ]
        return max(times, default="")

    def numbers(self, name: str) -> list[str]:
        """Return the numbers that the log lacks."""
        answer = self.commands.call("state", "history", name, "--limit", _ALL)
        if answer.code:
            return [f"{name}: state history: {_error(answer)}"]
        numbers = sorted(one["number"] for one in answer.json)
        lacking = sorted(set(range(1, numbers[-1] + 1)) - set(numbers)) if numbers else []
        return [f"{name}: the log lacks the numbers {_shown(lacking)}"] if lacking else []

    def windows(self, name: str, end: str) -> list[str]:
        """Return gaps and overlaps of windows in the ledger up to the end."""
        document = self._ledger(name)
        if isinstance(document, str):
            return [document]
        told = []
        for unit in document["units"]:
            for what in ("gaps", "overlaps"):
                told += [f"{name}: ledger: {what} of {unit['unit']}: {unit[what][:3]}"] if unit[what] else []
        if document["complete_up_to"] != end:
            told.append(f"{name}: ledger: complete up to {document['complete_up_to']}, expected {end}")
        return told

    def files(self, name: str, files: int, rows: int) -> list[str]:
        """Return how the ledger's counts of files, rows, late and quarantined files differ from those expected."""
        document = self._ledger(name)
        if isinstance(document, str):
            return [document]
        found = {
            **{what: document["covered"][what] for what in ("files", "rows")},
            **{what: document[what]["count"] for what in ("late", "quarantined")},
        }
        expected = {"files": files, "rows": rows, "late": 0, "quarantined": 0}
        return [f"{name}: ledger: {found}, expected {expected}"] if found != expected else []

    def _ledger(self, name: str) -> dict[str, Any] | str:
        answer = self.commands.call("ledger", name)
        return f"{name}: ledger: {_error(answer)}" if answer.code else dict(answer.json[0])


def _planned(document: dict[str, Any]) -> str:
    if error := document.get("error"):
        return f"{document['dataflow']}: plan: {error['message']}"
    due = [one for one in document["slices"] if one.get("reason") != "grace"]
    return f"{document['dataflow']}: plan: {document['why']}" if due else ""


def _error(answer: Answer) -> str:
    """Return the error of a command."""
    try:
        document = answer.json
        document = document[0] if isinstance(document, list) else document
        return f"exit {answer.code}: {document['error']['message']}"
    except (ValueError, TypeError, KeyError, IndexError):
        return f"exit {answer.code}: {(answer.err or answer.out).strip()[-500:]}"


def _shown(ids: Sequence[Any]) -> str:
    more = f" … and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(str, ids[:_SHOWN])) + more
