"""The rows of files that are gone go with the slices around them."""

from __future__ import annotations

from partitions.path.definition import PathWatermark
from partitions.path.gone import with_gone_files
from partitions.path.slices import cut_slices
from partitions.path.source import SourceFile

DEFINITION = PathWatermark.model_validate({"type": "path", "checkpoint": {"interval_files": 2}})


def deleted_with(loaded: str, gone: str) -> list[tuple[str, str]]:
    """Return the files that each slice loads, and those whose rows it deletes, as letters."""
    files = [SourceFile(f"{letter}.csv", 1, "v", 0) for letter in loaded]
    slices = with_gone_files(
        cut_slices(DEFINITION, {"path": None}, files, None),
        [f"{letter}.csv" for letter in gone],
        DEFINITION,
        {"path": "0.csv"},
    )
    return [
        ("".join(file.path[0] for file in slice_.files), "".join(path[0] for path in slice_.gone_paths))
        for slice_ in slices
    ]


def test_each_goes_with_the_first_slice_that_ends_above_it() -> None:
    assert deleted_with("abde", "cx") == [("ab", ""), ("de", "cx")]
    assert deleted_with("bcef", "afd") == [("bc", "a"), ("ef", "df")]


def test_without_a_file_to_load_a_slice_only_deletes_and_moves_no_watermark() -> None:
    assert deleted_with("", "ba") == [("", "ab")]
    (slice_,) = with_gone_files([], ["a.csv"], DEFINITION, {"path": "0.csv"})
    assert (slice_.after, slice_.upper, slice_.replaces) == ({"path": "0.csv"}, {"path": "a.csv"}, True)


def test_halves_of_a_slice_delete_each_row_once() -> None:
    (whole, _) = with_gone_files(
        cut_slices(
            DEFINITION, {"path": None}, [SourceFile(f"{letter}.csv", 1, "v", 0) for letter in "bdf"], None
        ),
        ["a.csv", "c.csv"],
        DEFINITION,
        {"path": None},
    )
    assert [part.gone_paths for part in whole.halve()] == [("a.csv",), ("c.csv",)]
