"""What stands in names: odd characters, many files, and the values of hive-style folders."""

from __future__ import annotations

from datetime import date

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.folder_texts import FOLDER_TEXTS

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

    @pytest.mark.parametrize("root", ["la nd", "100%25", "[x]", "{a,b}", "st*r?", "größe", "12:00", "a+b=c"])
    def test_the_landing_zone_may_have_such_a_name_too(self, make_feed: MakeFeed, root: str) -> None:
        feed = make_feed(source={"path": f"./landing/{root}", "schema": "id long, day date"})
        feed.put(f"{root}/day=2026-01-01/a.ndjson", 1)
        feed.put(f"{root}/b [c].ndjson", 2)
        feed.load()
        assert feed.rows("id", "day", "_source_file") == [
            (1, date(2026, 1, 1), "day=2026-01-01/a.ndjson"),
            (2, None, "b [c].ndjson"),
        ]

    @pytest.mark.full
    @pytest.mark.parametrize("form", ["json", "xml"])
    def test_documents_below_a_colon_tell_their_columns(self, make_feed: MakeFeed, form: str) -> None:
        options = {"rowTag": "row"} if form == "xml" else {}
        feed = make_feed(source={"format": form, "schema": None, "options": options})
        text = (
            '[{"id": 1}, {"id": 2}]'
            if form == "json"
            else "<r><row><id>1</id></row><row><id>2</id></row></r>"
        )
        feed.put_text(f"hour=2026-01-01T10:00/a.{form}", text)
        feed.load()
        assert feed.rows("id", "hour") == [(1, "2026-01-01T10:00"), (2, "2026-01-01T10:00")]

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
    def test_values_are_text_unless_the_schema_names_a_type(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, day date, hour int"})
        feed.put("day=2026-01-02/hour=07/region=07/a.ndjson", 1)
        feed.load()
        assert feed.rows("id", "day", "hour", "region") == [(1, date(2026, 1, 2), 7, "07")]

    @pytest.mark.parametrize(
        "text", ["07", "1e3", "true", "2026-01-02", "12:00", "a+b", "~,@", "null", "0x1F"]
    )
    def test_of_many_files_they_are_the_same_text(self, make_feed: MakeFeed, text: str) -> None:
        feed = make_feed(source={"schema": None})
        feed.put(f"at={text}/b=1/1.ndjson", 1)
        feed.put(f"at={text}/b=2/2.ndjson", 2)
        feed.load()
        assert feed.rows("id", "at", "b") == [(1, text, "1"), (2, text, "2")]

    def test_a_column_of_another_type_beside_them_has_the_same_text(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": "id long, day date"})
        feed.put_parquet("day=2026-01-01/1.parquet", {"id": 1, "day": "2026-01-01"})
        feed.put_parquet("day=2026-01-02/2.parquet", {"id": 2, "day": "2026-01-02"})
        feed.put_parquet("day=2026-01-03/3.parquet", {"id": 3, "day": "2026-01-02"})
        error = feed.fail()
        assert "field day: expected 2026-01-03, as the folder day=2026-01-03 says" in error.message
        assert feed.rows("id", "day") == [(1, date(2026, 1, 1)), (2, date(2026, 1, 2))]

    def test_the_header_of_many_files_does_not_name_them(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "csv", "schema": "id long, day date"})
        feed.put_text("day=2026-01-01/1.csv", "id\n1\n")
        feed.put_text("day=2026-01-02/2.csv", "id\n2\n")
        feed.load()
        assert feed.rows("id", "day") == [(1, date(2026, 1, 1)), (2, date(2026, 1, 2))]

    def test_values_are_text_with_an_inferred_schema(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None})
        feed.put("day=2026-01-02/hour=07/a.ndjson", 1)
        feed.load()
        assert feed.rows("id", "day", "hour") == [(1, "2026-01-02", "07")]

    def test_a_file_without_such_a_folder_has_null(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, day date"})
        feed.put("root.ndjson", 1)
        feed.put("day=2026-01-02/a.ndjson", 2)
        feed.put("other/b.ndjson", 3)
        feed.load()
        assert feed.rows("id", "day") == [(1, None), (2, date(2026, 1, 2)), (3, None)]

    def test_values_are_unescaped_as_hive_and_spark_escape_them(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, at string"})
        for number, folder in enumerate(FOLDER_TEXTS):
            feed.put(f"at={folder}/a.ndjson", number)
        feed.load()
        assert feed.rows("id", "at") == list(enumerate(FOLDER_TEXTS.values()))

    @pytest.mark.parametrize(("folder", "value"), [("x%20y", "x y"), ("__HIVE_DEFAULT_PARTITION__", None)])
    def test_one_file_has_the_same_value_as_many(
        self, make_feed: MakeFeed, folder: str, value: str | None
    ) -> None:
        feed = make_feed(source={"schema": "id long, at string"})
        feed.put(f"at={folder}/at={folder}/a%b.ndjson", 1)
        feed.load()
        assert feed.rows("id", "at", "_source_file") == [(1, value, f"at={folder}/at={folder}/a%b.ndjson")]

    def test_upper_and_lower_case_name_one_column_as_in_spark(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, Day date"})
        feed.put("day=2026-01-01/Region=a/1.ndjson", 1)
        feed.put("day=2026-01-01/Region=b/2.ndjson", 2)
        feed.put("DAY=2026-01-02/region=c/3.ndjson", 3)
        feed.load()
        assert feed.rows("id", "Day", "region") == [
            (1, date(2026, 1, 1), "a"),
            (2, date(2026, 1, 1), "b"),
            (3, date(2026, 1, 2), "c"),
        ]

    def test_of_files_in_different_folders_each_has_its_own_values(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, at string"})
        paths = {
            f"{folder}{name}": value
            for folder, value in {"": None, "at=1/": "1", "x/at=a b/": "a b", "at=2/at=2/": "2", "at=c%20d/": "c d",
                                  "at=__HIVE_DEFAULT_PARTITION__/": None, "at=/": "", "at=k=v/": "k=v"}.items()
            for name in ("at=4.ndjson", "5.ndjson")
        }  # fmt: skip
        for number, path in enumerate(paths):
            feed.put(path, number)
        feed.load()
        assert feed.rows("id", "at", "_source_file") == [
            (number, value, path) for number, (path, value) in enumerate(paths.items())
        ]

    def test_a_new_folder_column_is_refused_naming_the_file(self, feed: Feed) -> None:
        feed.put("day=1/a.ndjson", 1)
        feed.load()
        feed.put("day=2/hour=1/b.ndjson", 2)
        outcome = feed.run()
        assert (outcome.status, feed.ids) == ("failed", [1])
        assert outcome.error is not None
        assert outcome.error.message.startswith(
            "folder column 'hour' of day=2/hour=1/b.ndjson: expected a folder of day, id, as when the schema was pinned;"
        )
        assert outcome.error.choices == ("strandline state reset flow --replace --reason TEXT",)
        feed.define(target={"schema_mode": "merge"})
        feed.load()
        assert feed.rows("id", "day", "hour") == [(1, "1", None), (2, "2", "1")]

    def test_folder_values_may_lay_out_the_table(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, at string"}, target={"partition_by": ["at"]})
        feed.put("at=x%20y/a.ndjson", 1)
        feed.put("at=12:00/a.ndjson", 2)
        feed.put("b.ndjson", 3)
        feed.load()
        assert feed.rows("id", "at") == [(1, "x y"), (2, "12:00"), (3, None)]
