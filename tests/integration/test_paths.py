"""What stands in names: odd characters, many files, and the values of hive-style folders."""

from __future__ import annotations

from datetime import date

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.folder_texts import FOLDER_TEXTS
from tests.support.reading import Reading, cases

ODD = [
    "2026-01-28T14:00:00.ndjson",
    "a b.ndjson",
    " leading.ndjson",
    "double  space .ndjson",
    "größe.ndjson",
    "日本.ndjson",
    "\U0001f600.ndjson",
    "100%.ndjson",
    "%20.ndjson",
    "%25zz%.ndjson",
    "a+b.ndjson",
    "a&b=c.ndjson",
    "#hash.ndjson",
    "what?.ndjson",
    "star*.ndjson",
    "[ab].ndjson",
    "{a,b}.ndjson",
    "a,b.ndjson",
    "semi;colon.ndjson",
    "back\\slash.ndjson",
    "it's.ndjson",
    'quo"te.ndjson',
    "tick`.ndjson",
    "dollar$1.ndjson",
    "(x)|^.ndjson",
    "<tag>.ndjson",
    "~tilde!@.ndjson",
    "tab\there.ndjson",
    "line\nbreak.ndjson",
    "return\r.ndjson",
    "\x01control\x7f.ndjson",
    "${spark.app.name}.ndjson",
    "${x}[1].ndjson",
    "nfc-\u00e9.ndjson",
    "nfd-e\u0301.ndjson",
    "\ufeffmark\u200b\u2028\u202e.ndjson",
    "\U0010ffff.ndjson",
    "%2F%2e%00.ndjson",
    "\\n.ndjson",
    "file:x.ndjson",
    "=.ndjson",
    " .ndjson",
    f"{'long' * 61}.ndjson",
]


FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
BY_DAY, AT = {"schema": "id long, day date"}, {"schema": "id long, at string"}
NULL = "__HIVE_DEFAULT_PARTITION__"
VALUES = {
    f"{folder}{name}": value
    for folder, value in {"": None, "at=1/": "1", "x/at=a b/": "a b", "at=2/at=2/": "2", "at=c%20d/": "c d", f"at={NULL}/": None, "at=/": "", "at=k=v/": "k=v"}.items()
    for name in ("at=4.ndjson", "5.ndjson")
}  # fmt: skip
"""A file in each of different folders, and the value of its column."""
READINGS = {
    **{
        f"the landing zone may have such a name too [{root}]": Reading(
            BY_DAY | {"path": f"./landing/{root}"}, {f"{root}/day=2026-01-01/a.ndjson": [1], f"{root}/b [c].ndjson": [2]},
            "id day _source_file", [(1, FIRST, "day=2026-01-01/a.ndjson"), (2, None, "b [c].ndjson")],
        )
        for root in ("la nd", "100%25", "[x]", "{a,b}", "st*r?", "größe", "12:00", "a+b=c")
    },
    "values are text unless the schema names a type": Reading(
        {"schema": "id long, day date, hour int"}, {"day=2026-01-02/hour=07/region=07/a.ndjson": [1]}, "id day hour region", [(1, SECOND, 7, "07")],
    ),
    **{
        f"a value is the same text in many files [{text}]": Reading(
            {"schema": None}, {f"at={text}/b=1/1.ndjson": [1], f"at={text}/b=2/2.ndjson": [2]}, "id at b", [(1, text, "1"), (2, text, "2")],
        )
        for text in ("07", "1e3", "true", "2026-01-02", "12:00", "a+b", "~,@", "null", "0x1F")
    },
    "the header of many files does not name folders": Reading(
        BY_DAY | {"format": "csv"}, {"day=2026-01-01/1.csv": "id\n1\n", "day=2026-01-02/2.csv": "id\n2\n"}, "id day", [(1, FIRST), (2, SECOND)],
    ),
    "values are text where the schema is inferred": Reading(
        {"schema": None}, {"day=2026-01-02/hour=07/a.ndjson": [1]}, "id day hour", [(1, "2026-01-02", "07")],
    ),
    "a file without such a folder has NULL": Reading(
        BY_DAY, {"root.ndjson": [1], "day=2026-01-02/a.ndjson": [2], "other/b.ndjson": [3]}, "id day", [(1, None), (2, SECOND), (3, None)],
    ),
    "values are unescaped as Hive and Spark escape them": Reading(
        AT, {f"at={folder}/a.ndjson": [number] for number, folder in enumerate(FOLDER_TEXTS)}, "id at", list(enumerate(FOLDER_TEXTS.values())),
    ),
    **{
        f"one file has the same value as many [{folder}]": Reading(
            AT, {f"at={folder}/at={folder}/a%b.ndjson": [1]}, "id at _source_file", [(1, value, f"at={folder}/at={folder}/a%b.ndjson")],
        )
        for folder, value in (("x%20y", "x y"), (NULL, None))
    },
    "upper and lower case name one column as in Spark": Reading(
        {"schema": "id long, Day date"}, {"day=2026-01-01/Region=a/1.ndjson": [1], "day=2026-01-01/Region=b/2.ndjson": [2], "DAY=2026-01-02/region=c/3.ndjson": [3]},
        "id Day region", [(1, FIRST, "a"), (2, FIRST, "b"), (3, SECOND, "c")],
    ),
    "files in different folders have values of their own": Reading(
        AT, {path: [number] for number, path in enumerate(VALUES)}, "id at _source_file",
        [(number, value, path) for number, (path, value) in enumerate(VALUES.items())],
    ),
    "values of folders may lay out the table": Reading(
        AT, {"at=x%20y/a.ndjson": [1], "at=12:00/a.ndjson": [2], "b.ndjson": [3]}, "id at", [(1, "x y"), (2, "12:00"), (3, None)],
        more={"target": {"partition_by": ["at"]}},
    ),
    **{
        f"documents below a colon tell their columns [{form}]": Reading(
            {"format": form, "schema": None, "options": options}, {f"hour=2026-01-01T10:00/a.{form}": text}, "id hour", [(1, "2026-01-01T10:00"), (2, "2026-01-01T10:00")],
        )
        for form, options, text in (
            ("json", {}, '[{"id": 1}, {"id": 2}]'), ("xml", {"rowTag": "row"}, "<r><row><id>1</id></row><row><id>2</id></row></r>")
        )
    },
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("reading", cases(READINGS))
def test_names_of_files_and_folders_give_these_columns(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestNames:
    @pytest.mark.parametrize("schema", ["id long", None])
    def test_files_are_loaded_whatever_their_names(self, make_feed: MakeFeed, schema: str | None) -> None:
        feed = make_feed(source={"schema": schema})
        for number, name in enumerate(ODD):
            feed.put(name, number)
        outcome = feed.load()
        assert outcome.files == len(ODD)
        assert feed.rows("id", "_source_file") == list(enumerate(ODD))
        assert feed.path == max(ODD, key=str.encode)

    def test_folders_are_walked_whatever_their_names_hold(self, feed: Feed) -> None:
        paths = [f"{name.removesuffix('.ndjson')}/{name}" for name in ODD]
        for number, path in enumerate(paths):
            feed.put(path, number)
        assert feed.load().files == len(paths)
        assert feed.rows("id", "_source_file") == list(enumerate(paths))

    @pytest.mark.full
    def test_ten_thousand_files_of_one_partition(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 5000}})
        folder = feed.landing / "date=2026-01-01"
        folder.mkdir()
        for number in range(10_000):
            (folder / f"{number:05}.ndjson").write_text(f'{{"id": {number}}}\n')
        outcome = feed.load()
        assert (outcome.files, outcome.rows, feed.path) == (10_000, 10_000, "date=2026-01-01/09999.ndjson")
        assert feed.ids == list(range(10_000))


class TestFolders:
    def test_a_column_of_another_type_beside_them_has_the_same_text(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": "id long, day date"})
        feed.put_parquet("day=2026-01-01/1.parquet", {"id": 1, "day": "2026-01-01"})
        feed.put_parquet("day=2026-01-02/2.parquet", {"id": 2, "day": "2026-01-02"})
        feed.put_parquet("day=2026-01-03/3.parquet", {"id": 3, "day": "2026-01-02"})
        error = feed.fail()
        assert "field day: expected 2026-01-03, the value in the folder day=2026-01-03" in error.message
        assert feed.rows("id", "day") == [(1, date(2026, 1, 1)), (2, date(2026, 1, 2))]

    @pytest.mark.full
    def test_a_new_folder_column_is_refused_naming_the_file(self, feed: Feed) -> None:
        feed.put("day=1/a.ndjson", 1)
        feed.load()
        feed.put("day=2/hour=1/b.ndjson", 2)
        outcome = feed.run()
        assert (outcome.status, feed.ids) == ("failed", [1])
        assert outcome.error is not None
        assert outcome.error.message.startswith(
            "folder column 'hour' of day=2/hour=1/b.ndjson: expected a folder named by one of the columns day, id, as when the schema was pinned;"
        )
        assert outcome.error.choices == ("strandline state reset flow --replace --reason TEXT",)
        feed.define(target={"schema_mode": "merge"})
        feed.load()
        assert feed.rows("id", "day", "hour") == [(1, "1", None), (2, "2", "1")]
