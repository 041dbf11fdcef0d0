"""Compares the tables' rows with the sources at the end, and checks the product's own reports."""

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
    actual: int
    missing: Sequence[Any]
    doubled: Sequence[Any]
    wrong: Sequence[Any]

    @classmethod
    def of(cls, expected: Rows, actual: Rows) -> Compared:
        """Compare rows; the first value of a row is its id."""
        expected_ids, actual_ids = (
            Counter(row[0] for row in expected.elements()),
            Counter(row[0] for row in actual.elements()),
        )
        return cls(
            expected.total(),
            actual.total(),
            sorted(expected_ids.keys() - actual_ids.keys()),
            sorted(row_id for row_id, count in actual_ids.items() if count > 1),
            sorted(
                {row[0] for row in (actual - expected)}
                - {row_id for row_id in actual_ids if actual_ids[row_id] > 1}
            ),
        )

    @property
    def problems(self) -> list[str]:
        """Return the problems, for people."""
        parts = {"missing": self.missing, "doubled": self.doubled, "wrong": self.wrong}
        return [f"{len(ids):,} ids {problem}: {_first_ids(ids)}" for problem, ids in parts.items() if ids]


def rows_of(lake: Place, name: str, columns: Sequence[str]) -> Rows:
    """Return the rows of a table, read without Spark; none if there is no table."""
    table, options = lake.child(f"bronze/{name}"), lake.child(name).storage_options
    if not DeltaTable.is_deltatable(table.url, options):
        return Counter()
    rows = DeltaTable(table.url, storage_options=options).to_pyarrow_table(columns=list(columns)).to_pylist()
    return Counter(tuple(row[column] for column in columns) for row in rows)


@dataclass
class Questions:
    """Questions to the command line about dataflows.

    Answers are texts that say what is wrong or not done yet; empty if nothing is.

    Attributes:
        commands: the project's command line.
    """

    commands: Commands

    def quarantined_paths(self, name: str) -> list[str]:
        """Return the paths in quarantine."""
        answer = self.commands.call("list", name)
        if answer.code:
            return []
        return [file["path"] for file in answer.json[0]["quarantined"]["files"]]

    def release(self, name: str, paths: Sequence[str]) -> Answer:
        """Release files from quarantine."""
        return self.commands.call("files", "release", name, *paths, "--reason", "repaired")

    def late(self, name: str) -> str:
        """Make a step of the sweep; return its result or error, "" if all is complete and nothing late."""
        answer = self.commands.call("late", name)
        if answer.code:
            return f"{name}: late: {_error(answer)}"
        document = answer.json
        if document["late"] or not document["complete"]:
            return f"{name}: late: {len(document['late'])} found, complete: {document['complete']}"
        return ""

    def planned(self, names: Sequence[str]) -> list[str]:
        """Return what a run would do, except for windows that the grace reads again every time."""
        answer = self.commands.call("plan", *names)
        try:
            return [plan for document in answer.json if (plan := _planned(document))]
        except (ValueError, TypeError):
            return [f"plan: {_error(answer)}"]

    def open_intent(self, name: str, *, again: bool = False) -> str:
        """Return the open intent of a dataflow, in words.

        Args:
            name: the dataflow's name.
            again: whether it always has runs, since its grace is read again each time; then only the
            intents of dead runs count.
        """
        answer = self.commands.call("state", "history", name, "--intents", "--limit", "2")
        if answer.code:
            return f"{name}: state history: {_error(answer)}"
        newest = answer.json[:1]
        if not newest or "time" in newest[0] or (again and process(newest[0]["intent"]["holder"]["pid"])):
            return ""
        return f"{name}: number {newest[0]['number']} is begun"

    def newest_intent_time(self, name: str) -> str:
        """Return the time of the newest committed number's intent; "" if there is none."""
        answer = self.commands.call("state", "history", name, "--intents", "--limit", "2")
        if answer.code:
            return ""
        times = [
            entry["intent"]["time"]
            for entry in answer.json
            if "time" in entry and entry["intent"] and entry["work_units"]
        ]
        return max(times, default="")

    def numbers(self, name: str) -> list[str]:
        """Return the numbers that are missing in the log."""
        answer = self.commands.call("state", "history", name, "--limit", _ALL)
        if answer.code:
            return [f"{name}: state history: {_error(answer)}"]
        numbers = sorted(entry["number"] for entry in answer.json)
        lacking = sorted(set(range(1, numbers[-1] + 1)) - set(numbers)) if numbers else []
        return [f"{name}: the log lacks the numbers {_first_ids(lacking)}"] if lacking else []

    def windows(self, name: str, end: str) -> list[str]:
        """Return gaps and overlaps of windows in the ledger up to the end."""
        document = self._ledger(name)
        if isinstance(document, str):
            return [document]
        problems = []
        for unit in document["units"]:
            for part in ("gaps", "overlaps"):
                problems += (
                    [f"{name}: ledger: {part} of {unit['unit']}: {unit[part][:3]}"] if unit[part] else []
                )
        if document["complete_up_to"] != end:
            problems.append(f"{name}: ledger: complete up to {document['complete_up_to']}, expected {end}")
        return problems

    def files(self, name: str, files: int, rows: int) -> list[str]:
        """Return how the ledger's counts of files, rows, late and quarantined files differ."""
        document = self._ledger(name)
        if isinstance(document, str):
            return [document]
        actual = {
            **{name: document["covered"][name] for name in ("files", "rows")},
            **{name: document[name]["count"] for name in ("late", "quarantined")},
        }
        expected = {"files": files, "rows": rows, "late": 0, "quarantined": 0}
        return [f"{name}: ledger: {actual}, expected {expected}"] if actual != expected else []

    def _ledger(self, name: str) -> dict[str, Any] | str:
        answer = self.commands.call("ledger", name)
        return f"{name}: ledger: {_error(answer)}" if answer.code else dict(answer.json[0])


def _planned(document: dict[str, Any]) -> str:
    if error := document.get("error"):
        return f"{document['dataflow']}: plan: {error['message']}"
    due = [slice_ for slice_ in document["slices"] if slice_.get("reason") != "grace"]
    return f"{document['dataflow']}: plan: {document['why']}" if due else ""


def _error(answer: Answer) -> str:
    """Return the error of a command."""
    try:
        document = answer.json
        document = document[0] if isinstance(document, list) else document
        return f"exit {answer.code}: {document['error']['message']}"
    except (ValueError, TypeError, KeyError, IndexError):
        return f"exit {answer.code}: {(answer.err or answer.out).strip()[-500:]}"


def _first_ids(ids: Sequence[Any]) -> str:
    more = f" … and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(str, ids[:_SHOWN])) + more
