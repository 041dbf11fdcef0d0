"""Trees of files: written to a store, and drawn at random."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import strategies as st

from resources.connections.places import Place

ENDING = ".json"


def write_files(root: Path, paths: Iterable[str], data: bytes = b"x") -> Place:
    """Write files into a folder.

    Raises:
        OSError: if one path needs a folder with the name of another path's file.
    """
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return Place(str(root))


def put_objects(place: Place, paths: Iterable[str], data: bytes = b"x") -> Place:
    """Put objects, several at a time."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: place.store.put(path, data), paths))
    return place


# Few names and few letters, so that they meet; what sorts just below "/" (space, -, .) and just above it (0) is where
# orders differ.
_LETTERS = "-.0=1ab _é\U0001f600\ufffd"
_MEETING = st.sampled_from(["a", "a-b", "a-", "a.c", "a b", "a0", "a=1", "a=10", "b", "0", "1", "_a", "é"])
_random = st.text(_LETTERS, min_size=1, max_size=3).filter(
    lambda part: part not in (".", "..") and part[-1] != " "
)
_part = _MEETING | _MEETING | _random
_folder = st.lists(_part, max_size=3).map("/".join)
partitions = _folder.filter(bool)
names = st.builds(lambda stem, ending: stem + ending, _part, st.sampled_from([ENDING] * 5 + [".txt"]))
paths = st.builds(lambda folder, name: f"{folder}/{name}" if folder else name, _folder, names)


@st.composite
def trees(draw: st.DrawFn) -> list[str]:
    """Draw files that a file system can hold: no file has the name of a folder."""
    least = draw(st.sampled_from([0, 0, 12]))
    drawn_paths = draw(st.lists(paths, min_size=least, max_size=least + 14, unique=True))
    folders = {up for path in drawn_paths for up in _folders(path)}
    return [path for path in drawn_paths if path not in folders]


def leaf_tree(files: Iterable[str]) -> list[str]:
    """Leave out files that lie beside folders, so that the promise of layout leaf holds."""
    files = list(files)
    holders = {folder.rpartition("/")[0] for path in files for folder in _folders(path)}
    return [path for path in files if path.rpartition("/")[0] not in holders]


def _folders(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path
