"""Copies: of several files with one content one is the original, and no loaded file is a copy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.path.copies import Content, content_of, find_copies
from partitions.path.source import SourceFile

NAMES = "abcdef"


def test_an_etag_of_32_hex_digits_is_a_checksum_and_others_are_none() -> None:
    md5 = "0123456789abcdef0123456789abcdef"
    assert content_of("a", 1, md5, None) == Content(1, f"md5:{md5}")
    assert content_of("a", 1, f"{md5}-2", None) is None, "an etag of several parts is no hash of the content"
    assert content_of("a", 1, "1780100000000000000", None) is None
    assert content_of("a", 1, "1780100000000000000", "sha256:x") == Content(1, "sha256:x")
    assert content_of("a", 0, md5, None) is None


def test_files_below_other_folder_values_have_other_rows() -> None:
    contents = [content_of(f"{folder}a", 1, "", "x") for folder in ("", "d=1/", "d=2/", "D=1/p/", "d=1/e=1/")]
    assert contents == [
        Content(1, "x"),
        Content(1, "x", (("d", "1"),)),
        Content(1, "x", (("d", "2"),)),
        Content(1, "x", (("d", "1"),)),
        Content(1, "x", (("d", "1"), ("e", "1"))),
    ]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from("xyz")),
    st.sets(st.sampled_from(NAMES)),
    st.sets(st.sampled_from("xyz")),
)
def test_each_content_is_loaded_once_and_loaded_files_stay(
    letters: dict[str, str], loaded: set[str], known: set[str]
) -> None:
    files = [SourceFile(name, 1, "v", 0) for name in sorted(letters)]
    contents = {name: Content(1, letter) for name, letter in letters.items()}
    copies = find_copies(
        files, contents, loaded & set(letters), {Content(1, letter): "0" for letter in known}
    )
    copied = {copy.file.path: copy.original for copy in copies}
    assert not set(copied) & loaded
    for letter in set(letters.values()):
        of_letter = [name for name in sorted(letters) if letters[name] == letter]
        originals = [name for name in of_letter if name in loaded] or (
            [] if letter in known else of_letter[:1]
        )
        assert [name for name in of_letter if name not in copied] == originals
