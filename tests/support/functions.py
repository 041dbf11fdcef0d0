"""Functions that the tests' dataflows name as their source; they yield the rows of a pickle.

The rows come in each form that may be yielded.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from resources.sources.python.request import Request


def put(path: Path, *rows: dict[str, Any]) -> None:
    """Add rows."""
    stored_rows = pickle.loads(path.read_bytes()) if path.exists() else []
    path.write_bytes(pickle.dumps([*stored_rows, *rows]))


def rows(request: Request) -> Iterator[Any]:
    """Yield all rows, whatever the request: by turns as a dict, a list, Arrow and pandas."""
    for number, row in enumerate(_stored_rows(request)):
        form = number % 5
        if form == 0:
            yield row
        elif form == 1:
            yield [row]
        elif form == 2:
            yield pa.Table.from_pylist([row])
        elif form == 3:
            yield pa.RecordBatch.from_pylist([row])
        else:
            yield pd.DataFrame([row])


def highest(request: Request, column: str) -> Any:
    """Return the highest value of a column."""
    return max((row[column] for row in _stored_rows(request) if row[column] is not None), default=None)


def _stored_rows(request: Request) -> list[dict[str, Any]]:
    stored_rows: list[dict[str, Any]] = pickle.loads(Path(request.params["path"]).read_bytes())
    return stored_rows
