"""What the function ``highest`` returns is a value of its column, whatever library it comes from (docs/reference/python-functions.md)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.sources import PythonSource
from resources.connections.places import Place
from resources.sources.python.source import PythonRows
from resources.staging import Staging
from resources.user_functions import UserCode
from tests.support import functions

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def told(folder: Path, value: Any, type_: str | None) -> Any:
    """The highest value of a column of a type, if the function says so; None: no type is declared."""
    functions.put(folder / "rows.pickle", {"v": value})
    source = {
        "type": "python",
        "function": "tests.support.functions:rows",
        "highest": "tests.support.functions:highest",
        "params": {"path": str(folder / "rows.pickle")},
    }
    dataflow = Dataflow.model_validate(
        {
            "name": "flow",
            "source": source if type_ is None else source | {"schema": f"v {type_}"},
            "watermark": {"type": "column", "columns": ["v"], "timezone": "Europe/Berlin"},
        }
    )
    assert isinstance(dataflow.source, PythonSource)
    rows = PythonRows(dataflow, dataflow.source, UserCode(folder), Staging(Place(str(folder))))
    return rows.observe(["v"], NOW).maxima["v"]


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (5, "long", 5),
        (np.int64(5), "long", 5),
        (np.int64(5), None, 5),
        (1.15, "decimal(10,2)", Decimal("1.15")),
        (np.float64(1.15), "decimal(10,2)", Decimal("1.15")),
        (datetime.fromisoformat("2026-01-01T12:00"), "timestamp", datetime(2026, 1, 1, 11, tzinfo=UTC)),
        (pd.Timestamp("2026-01-01T12:00Z"), "timestamp", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        (pd.Timestamp("2026-01-01T12:00Z"), None, datetime(2026, 1, 1, 12, tzinfo=UTC)),
        (date(2026, 1, 1), "timestamp", datetime(2025, 12, 31, 23, tzinfo=UTC)),
        ("2026-01-01", "date", date(2026, 1, 1)),
        (pd.NaT, "timestamp", None),
        ("a", "string", "a"),
    ],
)
def test_it_is_a_value_of_the_column(tmp_path: Path, value: Any, type_: str | None, expected: Any) -> None:
    found = told(tmp_path, value, type_)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("value", "type_"), [(1.155, "decimal(10,2)"), (5, "string"), ("5", "long"), (float("nan"), "double")]
)
def test_a_value_that_would_change_is_refused_by_name(tmp_path: Path, value: Any, type_: str) -> None:
    with pytest.raises(
        SourceError, match=r"function tests\.support\.functions:highest: expected the highest value of v"
    ):
        told(tmp_path, value, type_)
