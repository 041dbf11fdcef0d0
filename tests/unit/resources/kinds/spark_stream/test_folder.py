"""What a stream on Spark's engine keeps beside its table, read without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from resources.connections.places import Place
from resources.kinds.spark_stream.folder import StreamFolder


def test_files_that_spark_has_read_are_those_of_its_newest_logs(tmp_path: Path) -> None:
    log = tmp_path / "checkpoint/sources/1"
    log.mkdir(parents=True)

    def note(name: str, *files: tuple[str, int]) -> None:
        lines = [json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for path, batch in files]
        (log / name).write_text("\n".join(["v1", *lines]))

    note("8", ("file:///in/gone.ndjson", 8))  # Spark removes what its compact log holds, later
    note("9.compact", ("file:///in/a%20b%25.ndjson", 0), ("s3a://bucket/in/c.ndjson", 9))
    note("10", ("file:/in/d.ndjson", 10))
    note(".10.crc")
    note("11.tmp", ("file:///in/e.ndjson", 11))
    read = StreamFolder(Place(str(tmp_path))).files_read()
    assert read == dict.fromkeys(("/in/a b%.ndjson", "s3a://bucket/in/c.ndjson", "/in/d.ndjson"), True)


def test_spark_never_reads_again_what_the_batch_before_its_newest_has_read(tmp_path: Path) -> None:
    for source in (0, 1):
        log = tmp_path / f"checkpoint/sources/{source}"
        log.mkdir(parents=True)
        for number in range(4):
            entry = {"path": f"file:///in/{source}/{number}", "timestamp": 1, "batchId": number}
            (log / str(number)).write_text(f"v1\n{json.dumps(entry)}")
    for folder in ("offsets", "commits"):
        (tmp_path / "checkpoint" / folder).mkdir()
    # batches without rows have numbers, too: the fourth has read the second entry
    (tmp_path / "checkpoint/offsets/4").write_text('v1\n{}\n{"logOffset":2}\n-')
    (tmp_path / "checkpoint/offsets/6").write_text('v1\n{}\n{"logOffset":3}\n{"logOffset":3}')
    (tmp_path / "checkpoint/commits/5").write_text("v1\n{}")
    read = StreamFolder(Place(str(tmp_path))).files_read()
    assert sorted(path for path, again in read.items() if not again) == ["/in/0/0", "/in/0/1", "/in/0/2"]


def test_before_its_first_batch_spark_has_read_no_files(tmp_path: Path) -> None:
    assert StreamFolder(Place(str(tmp_path / "first"))).files_read() == {}
