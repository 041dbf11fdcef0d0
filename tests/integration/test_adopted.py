"""What a table tells of the state that its rows go back to, whatever others have done to it (docs/reference/state.md, adopt)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.loads import Append, Load, ReplaceAll
from resources.connections.places import Place
from resources.tables.contract.commits import TableCommit, Tag
from tests.support.arrow import SCHEMA, ArrowTable, Rows, Session

APP, OTHER = "app", "other"


class Table:
    """A table that slices are written to, a row each; the state after slice 2 is ``{"path": "2"}``.

    Attributes:
        last: the commit that the next slice goes on from.
        looks: whether that is the newest one at any time; else it stays what it was.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = ArrowTable(Place(str(folder)))
        self.last: TableCommit | None = None
        self.looks = True

    def slice(self, number: int, *, app: str = APP, load: Load | None = None) -> None:
        """Write a slice on top of the one that was written, or looked at, last."""
        rows: Any = Rows(pa.Table.from_pylist([{"id": number}], schema=SCHEMA), Session().hear)
        tag = Tag(app, number, f"slice {number} of {app}", after=self.last)
        self.target.write(
            rows, load or Append(), tag, f'{{"path": "{number}"}}', base=0 if self.folder.exists() else None
        )
        self.look()

    def look(self) -> None:
        """What is there now is what the next slice goes on from."""
        if self.looks:
            self.last = self.target.tip(APP).newest

    def foreign(self, mode: Any) -> None:
        """Somebody else writes."""
        write_deltalake(str(self.folder), pa.Table.from_pylist([{"id": 77}], schema=SCHEMA), mode=mode)

    def restore(self, version: int) -> None:
        """Somebody else restores."""
        DeltaTable(str(self.folder)).restore(version)

    def clean(self) -> None:
        """A checkpoint, and of the log only the newest commit."""
        found = DeltaTable(str(self.folder))
        found.create_checkpoint()
        for file in (self.folder / "_delta_log").glob("*.json"):
            if int(file.stem) < found.version():
                file.unlink()

    def told(self, app: str | None = APP) -> tuple[str | None, bool] | None:
        """The state, and whether there may be rows beyond it."""
        found = self.target.adoptable_state(app)
        return (found.state, found.beyond) if found else None


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Slices 1 and 2."""
    made = Table(tmp_path / "table")
    made.slice(1)
    made.slice(2)
    return made


_TWO, _ONE = ('{"path": "2"}', False), ('{"path": "1"}', False)
_NOTHING_THAT_HOLDS = (None, True)


def _zombie_after(damage: Callable[[Table], None]) -> Callable[[Table], None]:
    """Damage, and then the commit of slice 3 whose run had looked at the table before."""

    def damaged(table: Table) -> None:
        damage(table)
        table.slice(3)

    return damaged


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        pytest.param(lambda table: None, _TWO, id="whole"),
        pytest.param(lambda table: table.clean(), _TWO, id="the slice before is cleaned from the log"),
        pytest.param(lambda table: table.foreign("append"), _TWO, id="others append"),
        pytest.param(lambda table: table.restore(0), _ONE, id="restored"),
        pytest.param(lambda table: table.foreign("overwrite"), _NOTHING_THAT_HOLDS, id="overwritten"),
        pytest.param(
            lambda table: table.slice(1, app=OTHER, load=ReplaceAll()), _NOTHING_THAT_HOLDS, id="emptied by another dataflow"
        ),
        pytest.param(
            lambda table: table.slice(1, app=OTHER), _TWO, id="another dataflow appends"
        ),
        pytest.param(
            _zombie_after(lambda table: table.restore(0)), ('{"path": "1"}', True), id="restored under a write"
        ),
        pytest.param(
            _zombie_after(lambda table: table.foreign("overwrite")), _NOTHING_THAT_HOLDS, id="overwritten under a write"
        ),
    ],
)  # fmt: skip
def test_a_state_is_taken_only_where_the_table_has_what_it_goes_on_from(
    table: Table, damage: Callable[[Table], None], told: object
) -> None:
    table.looks = False
    damage(table)
    assert table.told() == told


def test_a_commit_that_went_into_a_new_table_says_nothing_of_the_rows_before_it(tmp_path: Path) -> None:
    old, new = Table(tmp_path / "old"), Table(tmp_path / "new")
    for number in (1, 2, 3):
        old.slice(number)
    new.last = old.last
    new.slice(4)
    assert new.told() == _NOTHING_THAT_HOLDS
    new.foreign("append")
    new.clean()
    assert new.told() is None, "its log is gone: rows tell, or nobody does"


def test_a_state_that_was_taken_from_a_restored_table_is_gone_on_from(table: Table) -> None:
    table.restore(0)
    table.look()
    table.slice(3)
    assert table.told() == ('{"path": "3"}', False)


@pytest.mark.parametrize(
    ("damage", "undone"),
    [
        pytest.param(lambda table: table.restore(1), None, id="to the recorded commit"),
        pytest.param(lambda table: (table.foreign("append"), table.restore(2)), None, id="to what others added"),
        pytest.param(lambda table: table.restore(0), "RESTORE (version 3)", id="to the commit before it"),
        pytest.param(lambda table: (table.restore(0), table.restore(2)), None, id="to the commit before it, and back"),
        pytest.param(lambda table: (table.restore(1), table.restore(0)), "RESTORE (version 4)", id="back and further back"),
        pytest.param(
            lambda table: (table.foreign("overwrite"), table.restore(1)), None, id="after an overwrite"
        ),
    ],
)  # fmt: skip
def test_a_restore_undoes_only_what_it_does_not_bring_back(
    table: Table, damage: Callable[[Table], None], undone: str | None
) -> None:
    recorded = table.last
    table.foreign("append")
    damage(table)
    assert table.target.head(recorded, APP).emptied_by == undone


def test_a_restore_over_the_commit_of_an_open_slice_undoes_it(table: Table) -> None:
    recorded = table.last
    table.slice(3)
    table.restore(1)
    assert table.target.head(recorded, APP).emptied_by == "RESTORE (version 3)"


def test_without_an_id_the_commits_of_whoever_wrote_last_count(table: Table) -> None:
    table.last = None
    table.slice(1, app=OTHER, load=ReplaceAll())
    assert table.told(None) == _ONE


@pytest.mark.parametrize(("restored", "rewritten"), [(False, False), (True, True)], ids=["kept", "restored"])
def test_a_cleaned_commit_is_known_by_its_file(table: Table, restored: bool, rewritten: bool) -> None:
    if restored:
        table.restore(0)
    table.foreign("append")
    table.clean()
    head = table.target.head(table.last, APP)
    assert (head.has_recorded, head.commits_cleaned, head.lacks_recorded_file) == (True, True, rewritten)
