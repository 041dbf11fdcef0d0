"""Files and the rows that a load makes of them, as data for tables of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from tests.support.feed import Feed, in_order
from tests.support.file_contents import parquet_bytes

Content: TypeAlias = Any
"""A text, bytes, an Arrow table, or rows."""


@dataclass(frozen=True)
class Reading:
    """Files that a load reads.

    Attributes:
        source: keys of the source; by default NDJSON with an ``id``.
        files: by path: a text, bytes, an Arrow table, or rows, which become JSON lines or Parquet by the
        path's ending.
        columns: the columns to compare, in one text.
        rows: their values in the table, in any order.
        bad: the reasons why files are passed over, by path.
        types: the types of the table's columns in Delta's words, where they are compared.
        more: other keys of the dataflow.
        later: the files of further loads.
        by_spark: whether only Spark reads the table: a type became wider, or a name has other letters.
    """

    source: Mapping[str, Any]
    files: Mapping[str, Content]
    columns: str
    rows: Sequence[tuple[Any, ...]]
    bad: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    later: Sequence[Mapping[str, Content]] = ()
    by_spark: bool = False

    def check(self, make_feed: Callable[..., Feed]) -> None:
        """Put the files, load them, and compare rows, types and reasons."""
        policy = {"on_bad_file": "quarantine", "max_bad_files": len(self.bad)} if self.bad else {}
        feed = make_feed(source=dict(self.source), **policy, **self.more)
        for files in (self.files, *self.later):
            for path, content in files.items():
                put(feed, path, content)
            feed.load()
        read = feed.rows_by_spark if self.by_spark else feed.rows
        assert read(*self.columns.split()) == in_order(self.rows)
        assert feed.quarantined == self.bad
        assert self.types is None or feed.types == self.types


def put(feed: Feed, path: str, content: Content) -> None:
    """Put one file."""
    if isinstance(content, str):
        feed.put_text(path, content)
    elif isinstance(content, bytes):
        feed.put_bytes(path, content)
    elif isinstance(content, pa.Table):
        feed.put_bytes(path, parquet_bytes(content))
    else:
        (feed.put_parquet if ".parquet" in path else feed.put)(path, *content)


def cases(readings: Mapping[str, Reading]) -> list[Any]:
    """Return the rows as cases of a test marked ``each_case``.

    Of the cases named ``rule [where]`` with one rule, ``make test`` has the first.
    """
    names = list(readings)
    rules = [name.partition(" [")[0] for name in names]
    return [
        pytest.param(readings[name], id=name, marks=pytest.mark.full if rule in rules[:number] else ())
        for number, (name, rule) in enumerate(zip(names, rules, strict=True))
    ]
