"""Random histories of a source and its table, with an independent comparison of both in Python.

Belongs here: what happens to source and table, and which rows differ by the rows alone. The commands that
compare and repair are in :mod:`tests.support.reconciled`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from resources.outcome import Step
from tests.support.columns import Columns
from tests.support.crash_runner import crash
from tests.support.databases import DatabaseRows, at
from tests.support.reconciled import by_hand, ids_of, reconciled, repaired, sums_of
from tests.support.repair_crash import crash_repairing

Row = tuple[int, datetime, str]

KILLED_AFTER = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED)


@dataclass
class History:
    """A source, its table, and what has happened to them.

    Attributes:
        rows: the table of the database.
        flow: the dataflow.
        random: chooses what happens.
        said: what has happened, for failures.
    """

    rows: DatabaseRows
    flow: Columns
    random: Random
    said: list[str] = field(default_factory=list)
    _time: int = 100
    _id: int = 0

    @property
    def load(self) -> str:
        """The load of the dataflow."""
        return str(self.flow.feed.definition["target"]["load"])

    def happen(self, count: int) -> None:
        """Let some things happen, and compare now and then."""
        acts = (
            *[self.insert, self.update] * 3,
            *[self.run] * 4,
            *[self.update_in_place, self.delete, self.commit_late, self.lose, self.change],
            *[self.double] * (self.load != "scd2"),
            *[self.compare, self.repair, self.kill_repair, self.kill_run, self.replay],
        )
        for _ in range(count):
            self.random.choice(acts)()

    def insert(self) -> None:
        """Insert a few rows above all others."""
        for _ in range(self.random.randint(1, 4)):
            self._id += 1
            self._put(self._id, self._next_time())

    def update(self) -> None:
        """Update a row, which gets the newest time."""
        if (number := self._some_id()) is not None:
            self._say(f"update {number}")
            self._ask(
                f"UPDATE {{t}} SET at = '{self._next_time()}', filler = '{self._text()}' WHERE id = {number}"
            )

    def update_in_place(self) -> None:
        """Update a row that keeps its time, as no run can tell."""
        if (number := self._some_id()) is not None:
            self._say(f"update {number} in place")
            self._ask(f"UPDATE {{t}} SET filler = '{self._text()}' WHERE id = {number}")

    def delete(self) -> None:
        """Delete a row of the source."""
        if (number := self._some_id()) is not None:
            self._say(f"delete {number}")
            self._ask(f"DELETE FROM {{t}} WHERE id = {number}")

    def commit_late(self) -> None:
        """Insert a row below the others, as a long transaction does."""
        self._id += 1
        self._put(self._id, at(self.random.randint(1, self._time)).isoformat())

    def run(self) -> None:
        """Run the dataflow."""
        self._say("run")
        self.flow.run()

    def replay(self) -> None:
        """Read a range again, in place."""
        start = self.random.randint(1, self._time)
        bounds = at(start).strftime("%Y-%m-%dT%H:%M:%S"), at(start + 30).strftime("%Y-%m-%dT%H:%M:%S")
        flags = ["--replace"] if self.load == "append" else []
        self._say(f"replay {bounds}")
        self.flow.feed.command("replay", "flow", "--start", bounds[0], "--end", bounds[1], *flags)

    def lose(self) -> None:
        """Lose a row of the table."""
        self._by_hand("DELETE FROM {t} WHERE id = {id}")

    def double(self) -> None:
        """Double a row of the table."""
        self._by_hand("INSERT INTO {t} SELECT * FROM {t} WHERE id = {id}")

    def change(self) -> None:
        """Change a row of the table."""
        self._by_hand(f"UPDATE {{t}} SET filler = '{self._text()}' WHERE id = {{id}}")

    def compare(self) -> bool:
        """Compare by the command and in Python, which agree; return whether all rows are equal."""
        if not self.is_loaded:
            return True
        expected = self.differences()
        document = reconciled(self.flow, "--rows", "--limit", "1000", code=int(any(expected.values())))
        self._say(f"compare: {dict(expected)}")
        if self.load != "append":
            assert ids_of(document) == expected, self.said
        sums = sums_of(document)
        totals = {sort: sum(counts[sort] for counts in sums) for sort in expected}
        assert totals == {sort: len(ids) for sort, ids in expected.items()}, self.said
        return not any(expected.values())

    def repair(self) -> None:
        """Repair what differs; nothing does then."""
        if not self.is_loaded:
            return
        self._say(f"repair: {dict(self.differences())}")
        repaired(self.flow, "--rows", *self._every)
        assert self.compare(), self.said

    def kill_repair(self) -> None:
        """Kill a repair after a step; the next run ends it."""
        if not self.is_loaded or not any(self.differences().values()):
            return
        step = self.random.choice(KILLED_AFTER)
        self._say(f"repair, killed after {step}")
        crash_repairing(self.flow.feed, step)
        self.run()

    def kill_run(self) -> None:
        """Kill a run after a step; the next one finishes it."""
        self.insert()
        step = self.random.choice(KILLED_AFTER)
        self._say(f"run, killed after {step}")
        crash(self.flow.feed, step)
        self.run()

    def differences(self) -> dict[str, list[int]]:
        """Return the ids of rows that differ up to the watermark, by the rows of both sides alone."""
        mark = self.flow.watermark["at"]
        source, table = self.source_rows(), self.table_rows()
        result: dict[str, list[int]] = {"missing": [], "extra": [], "different": []}
        if self.load == "append":
            counts = Counter(row for row in source if row[1] <= mark)
            counts.subtract(Counter(row for row in table if row[1] <= mark))
            for row, surplus in counts.items():
                result["missing" if surplus > 0 else "extra"] += [row[0]] * abs(surplus)
            return {sort: sorted(ids) for sort, ids in result.items()}
        by_id = {row[0]: row for row in source}
        for number in sorted({row[0] for row in (*source, *table)}):
            at_source, stored = by_id.get(number), [version for version in table if version[0] == number]
            if any(row[1] > mark for row in (*([at_source] if at_source else []), *stored)):
                continue
            if at_source is None:
                result["extra"] += [number] * len(stored)
            elif not stored:
                result["missing"].append(number)
            else:
                result["extra"] += [number] * (len(stored) - 1)
                result["different"] += [number] * (at_source not in stored)
        return result

    def source_rows(self) -> list[Row]:
        """Return all rows of the source."""
        return [
            (int(n), time, str(text))
            for n, time, text in self.rows.ask(f"SELECT id, at, filler FROM {self.rows.name}")
        ]

    def table_rows(self) -> list[Row]:
        """Return the rows of the table that stand for rows of the source: current versions."""
        columns = ("id", "at", "filler", *(["_is_current"] if self.load == "scd2" else []))
        return [(row[0], row[1], row[2]) for row in self.flow.feed.rows(*columns) if len(row) < 4 or row[3]]

    @property
    def is_loaded(self) -> bool:
        """Whether a run has loaded a row."""
        newest = self.flow.feed.newest
        return newest is not None and "at" in newest.state()

    @property
    def _every(self) -> tuple[str, ...]:
        return ("--every", "1 minute") if self.load == "append" else ()

    def _by_hand(self, statement: str) -> None:
        ids = sorted({row[0] for row in self.table_rows()}) if self.is_loaded else []
        if ids:
            number = self.random.choice(ids)
            self._say(f"{statement} of {number}")
            by_hand(self.flow)(statement.replace("{id}", str(number)))

    def _put(self, number: int, time: str) -> None:
        self._say(f"insert {number} at {time}")
        self._ask(f"INSERT INTO {{t}} VALUES ({number}, '{time}', '{self._text()}')")

    def _some_id(self) -> int | None:
        ids = sorted(row[0] for row in self.source_rows())
        return self.random.choice(ids) if ids else None

    def _next_time(self) -> str:
        self._time += self.random.randint(1, 5)
        return at(self._time).isoformat()

    def _text(self) -> str:
        return f"{self.random.choice('abcdef')}{self.random.randint(0, 999)}"

    def _ask(self, statement: str) -> None:
        self.rows.ask(statement.replace("{t}", self.rows.name))

    def _say(self, line: str) -> None:
        self.said.append(line)


TARGETS: Mapping[str, dict[str, Any]] = {
    "merge_upsert": {"load": "merge_upsert", "merge_keys": ["id"]},
    "scd2": {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"},
    "append": {"load": "append"},
}
