"""Staged files: read back as they were written, and gone when nobody needs them."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partitions.errors import SourceError
from resources import staging as module
from resources.connections.places import Place
from resources.staging import FOLDER, Staging
from resources.watermarks.entry import Holder
from resources.watermarks.holder import mark_inactive
from tests.support.feed import CHECKOUT

_STAGES_AND_DIES = """
import os, signal, sys
from resources.connections.places import Place
from resources.staging import Staging
with Staging.below(Place(sys.argv[1]), "bronze/t", "flow").lines("a") as lines:
    lines.write(b"{}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def staging(lake: Path) -> Staging:
    return Staging.below(Place(str(lake)), "bronze/t", "flow")


def folders(lake: Path) -> list[str]:
    """The folders of runs."""
    return sorted(folder.name for folder in (lake / FOLDER / "bronze" / "t" / "flow").glob("*"))


def staged(lake: Path) -> Staging:
    """A run of this process that has staged a line."""
    made = staging(lake)
    with made.lines("a") as lines:
        lines.write(b"{}")
    return made


def test_lines_are_read_back_in_bounded_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINES_BYTES", 15)
    stage = staging(tmp_path)
    with stage.lines("n=1/a") as lines:
        for number in range(5):
            lines.write(b'{"id": %d}' % number)
    assert [file.path for file in lines.files] == [f"n=1/a-{number}.ndjson.gz" for number in range(3)]
    root = stage.folder.local
    assert root is not None
    texts = [gzip.decompress((root / file.path).read_bytes()) for file in lines.files]
    assert b"".join(texts) == b"".join(b'{"id": %d}\n' % number for number in range(5))
    assert [file.size for file in lines.files] == [(root / file.path).stat().st_size for file in lines.files]
    assert lines.count == 5


def test_no_line_is_no_file(tmp_path: Path) -> None:
    with staging(tmp_path).lines("a") as lines:
        pass
    assert (lines.files, lines.count) == ((), 0)


def test_batches_are_read_back_in_bounded_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROW_GROUP_BYTES", 100)
    stage, schema = staging(tmp_path), pa.schema([("id", pa.int64())])
    with stage.batches("a", schema) as batches:
        for number in range(30):
            batches.write(pa.RecordBatch.from_pylist([{"id": number}], schema))
    root = stage.folder.local
    assert root is not None
    (file,) = batches.files
    read = pq.ParquetFile(root / file.path)
    assert read.read().to_pylist() == [{"id": number} for number in range(30)]
    assert read.num_row_groups == 3
    assert (file.path, batches.count) == ("a-0.parquet", 30)


def test_the_folder_is_gone_when_the_slice_is_over_however_it_ends(tmp_path: Path) -> None:
    stage = staging(tmp_path)
    with stage.emptied():
        with stage.lines("a") as lines:
            lines.write(b"{}")
        first = folders(tmp_path)
    with pytest.raises(SourceError), stage.emptied(), stage.lines("a"):
        raise SourceError("the source is gone")
    assert (len(first), folders(tmp_path)) == (1, [])


def test_nothing_staged_makes_no_folder(tmp_path: Path) -> None:
    with staging(tmp_path).emptied():
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_goes_and_a_living_keeps_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STAGES_AND_DIES, str(tmp_path)], cwd=CHECKOUT, check=False, timeout=60
    )
    (left,) = folders(tmp_path)
    first, second = staged(tmp_path), staged(tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert folders(tmp_path) == sorted(stage.folder.url.rpartition("/")[2] for stage in (first, second))
    assert left not in folders(tmp_path)


@pytest.mark.parametrize(("hours", "kept"), [(23, True), (25, False)])
def test_another_machines_folder_goes_after_a_day(tmp_path: Path, hours: int, kept: bool) -> None:
    folder = tmp_path / FOLDER / "bronze" / "t" / "flow" / "other"
    folder.mkdir(parents=True)
    holder = Holder(host="another/boot/space", pid=1, started=1)
    then = time.time() - hours * 3600
    for name, text in (("holder.json", holder.model_dump_json()), ("a-0.ndjson.gz", "")):
        (folder / name).write_text(text)
        os.utime(folder / name, (then, then))
    staged(tmp_path)
    assert ("other" in folders(tmp_path)) == kept


def test_a_lake_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("no folder")
    with pytest.raises(SourceError, match="lake"), staging(tmp_path / "lake").lines("a"):
        pass


@pytest.mark.s3
def test_a_bucket_holds_staged_files_until_the_slice_is_over(bucket: Place) -> None:
    dead = Staging.below(bucket, "bronze/t", "flow")
    with dead.lines("a") as lines:
        lines.write(b"{}")
    left = dead.folder
    mark_inactive(left.url.rpartition("/")[2])
    stage = Staging.below(bucket, "bronze/t", "flow")
    with stage.emptied():
        with stage.lines("n=1/a") as lines:
            lines.write(b'{"id": 1}')
        (file,) = lines.files
        assert gzip.decompress(bytes(stage.folder.store.get(file.path).bytes())) == b'{"id": 1}\n'
        assert [meta["path"] for page in left.store.list() for meta in page] == []
    assert [meta["path"] for page in bucket.store.list() for meta in page] == []
