"""Each kind of watermark has its parts in modules of the same names (docs/explanation/architecture.md, A kind and its parts)."""

from __future__ import annotations

from pathlib import Path

import pytest

import resources.kinds

_ROOM = Path(resources.kinds.__path__[0])
_PARTS = {"planning", "stored_slices", "reading", "writing", "bad_parts", "decisions", "fixtures"}


@pytest.mark.parametrize("kind", ["path", "column", "window", "stream", "offset", "spark_stream"])
def test_a_kind_has_a_module_for_each_part_and_one_that_opens_it(kind: str) -> None:
    assert {module.stem for module in (_ROOM / kind).glob("*.py")} >= {*_PARTS, "opening"}


def test_each_part_has_a_contract_of_its_name() -> None:
    assert {module.stem for module in (_ROOM / "contract").glob("*.py")} == {
        *_PARTS,
        "__init__",
        "kind",
        "lost_rows",
        "slices",
    }
