from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.errors import SourceError
from partitions.path.listing_positions import AbovePartitions, AbovePath, FromBeginning, ListingStart
from partitions.path.order import FileKey
from partitions.path.skipped import skip_warnings
from partitions.path.time_template import TimeTemplate
from resources.connections.places import Place
from resources.listing import Listing, list_above
from resources.listing import local as local_module
from tests.support.trees import ENDING, write_files


def _list(place: Place, position: ListingStart | None = None, **more: object) -> Listing:
    return list_above(place, position or FromBeginning(), (ENDING,), **more)  # type: ignore[arg-type]


def _found(listing: Listing) -> list[str]:
    return [file.path for file in listing.listed.files]


def _warnings(listing: Listing) -> list[str]:
    return list(skip_warnings(listing.listed.skipped))


def test_only_folders_that_can_hold_something_above_are_opened(tmp_path: Path) -> None:
    place = write_files(tmp_path, [f"d=2026-01-{day:02}/a{ENDING}" for day in range(1, 29)])
    listing = _list(place, AbovePath(FileKey("d=2026-01-27", "a")))
    assert _found(listing) == [f"d=2026-01-27/a{ENDING}", f"d=2026-01-28/a{ENDING}"]
    assert listing.listed.calls == 3, "the root, the watermark's folder and the one after it"


def test_a_closed_partition_is_not_opened(tmp_path: Path) -> None:
    place = write_files(tmp_path, [f"d=2026-01-{day:02}/a{ENDING}" for day in range(1, 29)])
    position = AbovePartitions(
        {"d=2026-01-28": "a"}, TimeTemplate("d=%Y-%m-%d"), datetime(2026, 1, 28, tzinfo=UTC)
    )
    assert _list(place, position).listed.calls == 2


def test_only_new_files_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_files(tmp_path, [f"d=1/{number:03}{ENDING}" for number in range(100)])
    looked: list[str] = []
    real = local_module._stat

    def stat(root: Path, path: str) -> object:
        looked.append(path)
        return real(root, path)

    monkeypatch.setattr(local_module, "_stat", stat)
    _list(place, AbovePath(FileKey("d=1", f"097{ENDING}")))
    assert sorted(looked) == [f"d=1/098{ENDING}", f"d=1/099{ENDING}"]


def test_a_file_is_listed_with_its_size_and_time(tmp_path: Path) -> None:
    place = write_files(tmp_path, [f"a{ENDING}"], b"four")
    os.utime(tmp_path / f"a{ENDING}", ns=(0, 1_700_000_000_123_456_789))
    (file,) = _list(place).listed.files
    assert (file.size, file.version, file.modified) == (4, "1700000000123456789", 1_700_000_000_123)


def test_endings_are_case_sensitive_and_any_of_them_will_do(tmp_path: Path) -> None:
    place = write_files(tmp_path, ["a.json", "b.JSON", "c.json.gz", "d.csv", "json"])
    assert _found(list_above(place, FromBeginning(), (".json", ".json.gz"))) == ["a.json", "c.json.gz"]


def test_root_files_are_reported_where_they_have_the_ending(tmp_path: Path) -> None:
    place = write_files(tmp_path, ["d=1/a.json", "README.md"])
    position = AbovePath(FileKey("d=1", "a.json"))
    assert not _list(place, position).listed.root_files
    write_files(tmp_path, ["a.json"])
    assert _list(place, position).listed.root_files


def test_links_are_followed_and_a_link_to_a_folder_above_itself_is_not(tmp_path: Path) -> None:
    place = write_files(tmp_path, ["a/x.json", "b/y.json"])
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "to_b").symlink_to(tmp_path / "b", target_is_directory=True)
    (tmp_path / "b" / "to_a").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "b" / "z.json").symlink_to(tmp_path / "a" / "x.json")
    through_links = ["a/to_b/y.json", "a/to_b/z.json", "b/to_a/x.json"]
    assert _found(_list(place)) == sorted(
        ["a/x.json", "b/y.json", "b/z.json", *through_links], key=FileKey.of
    )


def test_what_is_not_a_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_files(tmp_path, ["a.json", "folder.json/part.json"])
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as one:
        monkeypatch.chdir(tmp_path)  # the name of a socket is limited to about 100 bytes
        one.bind("socket.json")
        assert _found(_list(place)) == ["a.json", "folder.json/part.json"]


def test_a_file_that_vanishes_early_was_never_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_files(tmp_path, ["a.json", "b.json"])
    real = local_module._stat

    def stat(root: Path, path: str) -> object:
        (root / "b.json").unlink(missing_ok=True)
        return real(root, path)

    monkeypatch.setattr(local_module, "_stat", stat)
    assert _found(_list(place)) == ["a.json"]


def test_a_folder_that_vanishes_fails_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_files(tmp_path, ["a/x.json", "b/y.json"])
    real = local_module._stat

    def stat(root: Path, path: str) -> object:
        (root / "b" / "y.json").unlink()
        (root / "b").rmdir()
        return real(root, path)

    monkeypatch.setattr(local_module, "_stat", stat)
    with pytest.raises(SourceError, match="vanished") as caught:
        _list(place)
    assert (caught.value.code, caught.value.transient) == ("source_moved", True)


def test_a_name_that_is_not_utf8_is_passed_over_by_name(tmp_path: Path) -> None:
    for name in (b"a\xff.json", b"b.json"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).touch()
    Path(os.fsdecode(bytes(tmp_path) + b"/c\xff")).mkdir()
    listing = _list(Place(str(tmp_path)))
    assert _found(listing) == ["b.json"]
    assert _warnings(listing) == [
        r'skipped "a\udcff.json", "c\udcff/": a name that is not UTF-8. Rename or remove it'
    ]
    assert _warnings(_list(Place(str(tmp_path)), AbovePath(FileKey("d", "")))) == []


def test_what_is_no_file_of_the_source_is_named_if_it_holds_anything(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    for name in ("_b.json", "c.JSON", "d.json.tmp", "e", "f.tmp"):
        (tmp_path / name).write_text("x")
    for name in ("_SUCCESS", "empty.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".g").mkdir()
    listing = _list(Place(str(tmp_path)))
    assert _found(listing) == ["a.json"]
    expected = "names of this source's files end in .json, found"
    remedy = "Rename files to load them, or set source.extensions"
    assert sorted(_warnings(listing)) == [
        "skipped '.g/', '_b.json': names that start with _ or . belong to no source. Rename files to load them",
        f"skipped 'c.JSON': {expected} .JSON. {remedy}",
        f"skipped 'd.json.tmp', 'f.tmp': {expected} .tmp. {remedy}",
        f"skipped 'e': {expected} none. {remedy}",
    ]


def test_files_of_another_format_are_told_to_have_a_dataflow_of_their_own(tmp_path: Path) -> None:
    for name in ("a.json", "b.csv", "c.xlsx"):
        (tmp_path / name).write_text("x")
    told = "names of this source's files end in .json, found {}. To load these, add a dataflow for the same path with `format: {}`"
    assert sorted(_warnings(_list(Place(str(tmp_path))))) == [
        f"skipped 'b.csv': {told.format('.csv', 'csv')}",
        f"skipped 'c.xlsx': {told.format('.xlsx', 'excel')}",
    ]


def test_a_link_that_leads_nowhere_is_named_and_holds_nothing_back(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    (tmp_path / "b.json").symlink_to("b.json")
    (tmp_path / "c.json").symlink_to("gone.json")
    os.mkfifo(tmp_path / "d.json")
    listing = _list(Place(str(tmp_path)))
    assert _found(listing) == ["a.json"]
    assert sorted(_warnings(listing)) == [
        'skipped "b.json", "c.json": a link that leads to no file. Rename or remove it',
        'skipped "d.json": a pipe, a socket or a device, which is no file. Rename or remove it',
    ]


def test_a_missing_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="found none") as caught:
        _list(Place(str(tmp_path / "none")))
    assert (caught.value.code, caught.value.transient) == ("source_missing", False)


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="something else") as caught:
        _list(Place(str(tmp_path / "file")))
    assert caught.value.code == "source_not_folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    place = write_files(tmp_path, ["a/x.json"])
    (tmp_path / "a").chmod(0)
    try:
        with pytest.raises(SourceError, match="not allowed") as caught:
            _list(place)
    finally:
        (tmp_path / "a").chmod(0o755)
    assert caught.value.code == "source_denied"


def test_a_refusal_of_the_system_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SourceError, match="not allowed") as caught:
        _list(Place(str(tmp_path)))
    assert caught.value.code == "source_denied"
