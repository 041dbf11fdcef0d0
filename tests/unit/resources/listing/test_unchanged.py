from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from partitions.errors import BadFile
from partitions.path.listing_positions import FromBeginning
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.listing import check_unchanged, list_above
from resources.listing.objects import head_object
from tests.support.keyed import KeyedS3
from tests.support.proxy import CountingProxy
from tests.support.seaweed import Seaweed
from tests.support.trees import ENDING, put_objects, write_files

PATHS = ["a=1-b/x.json", "a=1/x.json", "a=1/y.json", "root.json"]


def _listed(place: Place) -> tuple[SourceFile, ...]:
    return list_above(place, FromBeginning(), (ENDING,)).listed.files


class TestLocal:
    def test_files_that_are_what_they_were_pass(self, tmp_path: Path) -> None:
        place = write_files(tmp_path, PATHS)
        check_unchanged(place, _listed(place))
        check_unchanged(place, [])

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (Path.unlink, "file_vanished"),
            (lambda path: path.write_bytes(b"longer"), "file_changed"),
            (lambda path: os.utime(path, ns=(0, path.stat().st_mtime_ns + 1)), "file_changed"),
        ],
    )
    def test_the_first_file_in_pair_order_that_is_not_is_named(
        self, tmp_path: Path, change: Callable[[Path], object], code: str
    ) -> None:
        place = write_files(tmp_path, PATHS)
        files = _listed(place)
        change(tmp_path / "a=1-b/x.json")
        change(tmp_path / "a=1/y.json")
        with pytest.raises(BadFile, match=r"a=1/y\.json") as caught:
            check_unchanged(place, files[::-1])
        assert (caught.value.path, caught.value.code) == ("a=1/y.json", code)


class TestKeyedStore:
    def _files(self, store: KeyedS3, paths: list[str]) -> tuple[Place, tuple[SourceFile, ...]]:
        place = store.hold(paths)
        files = _listed(place)
        store.lists = 0
        return place, files

    def test_files_side_by_side_cost_a_list_call_for_each_thousand(self, keyed_s3: KeyedS3) -> None:
        place, files = self._files(keyed_s3, [f"d=1/{number:05}.json" for number in range(3500)])
        check_unchanged(place, files)
        assert keyed_s3.lists == 4

    def test_scattered_files_are_asked_for_one_by_one_after_a_few_list_calls(self, keyed_s3: KeyedS3) -> None:
        place, files = self._files(
            keyed_s3, [f"d={day:03}/{number:05}.json" for day in range(30) for number in range(1200)]
        )
        check_unchanged(place, files[::1200])
        assert keyed_s3.lists == 2

    @pytest.mark.parametrize("spread", [1, 1200])
    def test_vanished_and_changed_files_are_found_anywhere(self, keyed_s3: KeyedS3, spread: int) -> None:
        place, files = self._files(
            keyed_s3, [f"d={day:03}/{number:05}.json" for day in range(20) for number in range(spread)]
        )
        chosen = files[::spread]
        keyed_s3.sizes[chosen[7].path] += 1
        with pytest.raises(BadFile) as caught:
            check_unchanged(place, chosen)
        assert (caught.value.path, caught.value.code) == (chosen[7].path, "file_changed")
        keyed_s3.keys.remove(chosen[3].path)
        del keyed_s3.sizes[chosen[3].path]
        with pytest.raises(BadFile) as caught:
            check_unchanged(place, chosen)
        assert (caught.value.path, caught.value.code) == (chosen[3].path, "file_vanished")

    def test_a_file_of_another_version_is_changed(self, keyed_s3: KeyedS3) -> None:
        place, (file,) = self._files(keyed_s3, ["a.json"])
        with pytest.raises(BadFile):
            check_unchanged(place, [replace(file, version="other")])


@pytest.mark.s3
class TestSeaweed:
    def test_list_and_head_give_the_same_version(self, bucket: Place) -> None:
        """Else every file that is asked for by HEAD would have changed."""

        files = _listed(put_objects(bucket, PATHS))
        assert [head_object(bucket.store, bucket, file.path) for file in files] == list(files)

    def test_the_first_file_in_pair_order_that_changed_is_named(
        self, bucket: Place, seaweed: Seaweed, proxy: CountingProxy
    ) -> None:
        files = _listed(put_objects(bucket, PATHS))
        place = Place(bucket.url, seaweed.through(proxy.port))
        check_unchanged(place, files)
        assert len(proxy.record.lists) <= 2
        put_objects(bucket, ["a=1/y.json", "a=1-b/x.json"], b"y")
        with pytest.raises(BadFile) as caught:
            check_unchanged(place, files)
        assert (caught.value.path, caught.value.code) == ("a=1/y.json", "file_changed")
        bucket.store.delete("a=1/x.json")
        with pytest.raises(BadFile) as caught:
            check_unchanged(place, files)
        assert (caught.value.path, caught.value.code) == ("a=1/x.json", "file_vanished")
