"""A tree of files and a position to list it from, drawn together so that they have something to do with each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import strategies as st

from partitions.path.order import FileKey, hidden, past
from partitions.path.position import AbovePartitions, AbovePath, Position, Start
from partitions.path.template import TimeTemplate
from tests.support.trees import ENDING, leaf_tree, partitions, paths, trees


@dataclass(frozen=True)
class Scene:
    """What lies in a store, and what is committed of it."""

    tree: list[str]
    position: Position

    @property
    def expected(self) -> list[str]:
        """The rule, by looking at every file: what a listing must return, in pair order."""
        found = (
            path
            for path in self.tree
            if path.endswith(ENDING) and not hidden(path) and self.position.above(path)
        )
        return sorted(found, key=FileKey.of)

    @property
    def shows_folder_by_folder(self) -> bool:
        """Whether a store that lists folder by folder shows it all: see ``resources.listing.objects``."""
        if not isinstance(self.position, AbovePath):
            return True
        last = self.position.last
        return not any(path > last.path and not past(path, last.partition) for path in self.expected)


@st.composite
def global_scenes(draw: st.DrawFn) -> Scene:
    """Scope global; layout leaf only on trees that keep its promise."""
    tree, leaf = draw(trees()), draw(st.booleans())
    tree = leaf_tree(tree) if leaf else tree
    last = draw(st.sampled_from(tree) | paths if tree else paths)
    # A watermark whose partition holds folders breaks the promise, be it committed or not.
    leaf = leaf and leaf_tree([*tree, last]) == [*tree, last]
    return Scene(tree, AbovePath(FileKey.of(last), leaf))


@st.composite
def partition_scenes(draw: st.DrawFn) -> Scene:
    """Scope partition, some partitions open, none closed."""
    tree, leaf = draw(trees()), draw(st.booleans())
    tree = leaf_tree(tree) if leaf else tree
    inside = [path for path in tree if "/" in path]
    committed = draw(st.lists(st.sampled_from(inside), unique=True) if inside else st.just([]))
    return Scene(tree, AbovePartitions(dict(FileKey.of(path) for path in committed), leaf=leaf))


@st.composite
def dated_scenes(draw: st.DrawFn) -> Scene:
    """Scope partition, with regions, and days that are closed."""
    region = st.sampled_from(["aa", "eu", "eu-1", "us"])
    file = st.builds(
        lambda region, day, name: f"{region}/d=2026-01-0{day}/{name}",
        region,
        st.integers(1, 9),
        st.sampled_from("123").map(lambda name: name + ENDING),
    )
    tree = draw(st.lists(file, unique=True, max_size=25))
    committed = draw(st.lists(st.sampled_from(tree), unique=True, max_size=4) if tree else st.just([]))
    bound = draw(st.none() | st.integers(1, 9).map(lambda day: datetime(2026, 1, day, tzinfo=UTC)))
    names = dict(FileKey.of(path) for path in committed)
    return Scene(tree, AbovePartitions(names, TimeTemplate("*/d=%Y-%m-%d"), bound, draw(st.booleans())))


@st.composite
def cold_scenes(draw: st.DrawFn) -> Scene:
    """A cold start, with prefixes of what is there, and others."""
    tree = draw(trees())
    there = [FileKey.of(path).partition for path in tree if "/" in path]
    one = partitions | st.sampled_from(there) if there else partitions
    return Scene(tree, Start.within(draw(st.lists(one, max_size=4))))


scenes = st.one_of(global_scenes(), partition_scenes(), dated_scenes(), cold_scenes())
