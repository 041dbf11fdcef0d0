"""A tree of files and a position to list it from, drawn together so that they match."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import strategies as st

from partitions.path.definition import PathWatermark
from partitions.path.hidden import is_hidden_path
from partitions.path.listing_positions import (
    AbovePartitions,
    AbovePath,
    AtOrBelow,
    FromBeginning,
    ListingStart,
)
from partitions.path.order import FileKey, is_past
from partitions.path.position_of_state import sweep_start
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from tests.support.trees import ENDING, leaf_tree, partitions, paths, trees


@dataclass(frozen=True)
class Scene:
    """The files in a store, and the position of a listing."""

    tree: list[str]
    position: ListingStart

    @property
    def expected(self) -> list[str]:
        """Return what a listing must return in pair order, by checking every file."""
        paths = (
            path
            for path in self.tree
            if path.endswith(ENDING) and not is_hidden_path(path) and self.position.is_above(path)
        )
        return sorted(paths, key=FileKey.of)

    @property
    def closes(self) -> bool:
        """Return whether a listing by key skips closed partitions, and so also looks beside them."""
        start = self.position.since if isinstance(self.position, AtOrBelow) else self.position
        return isinstance(start, AbovePartitions) and start.closed_before is not None

    @property
    def shows_folder_by_folder(self) -> bool:
        """Return whether a store that lists by folder shows all: see ``resources.listing.objects``."""
        start = self.position.since if isinstance(self.position, AtOrBelow) else self.position
        if not isinstance(start, AbovePath):
            return True
        last = start.last
        return not any(path > last.path and not is_past(path, last.partition) for path in self.expected)


@st.composite
def global_scenes(draw: st.DrawFn) -> Scene:
    """Draw scope global; layout leaf only on trees that keep its promise."""
    tree, leaf = draw(trees()), draw(st.booleans())
    tree = leaf_tree(tree) if leaf else tree
    last = draw(st.sampled_from(tree) | paths if tree else paths)
    # A watermark whose partition holds folders breaks the promise, be it committed or not.
    leaf = leaf and leaf_tree([*tree, last]) == [*tree, last]
    return Scene(tree, AbovePath(FileKey.of(last), leaf))


@st.composite
def partition_scenes(draw: st.DrawFn) -> Scene:
    """Draw scope partition with some open partitions and none closed."""
    tree, leaf = draw(trees()), draw(st.booleans())
    tree = leaf_tree(tree) if leaf else tree
    committed = draw(st.lists(st.sampled_from(tree), unique=True) if tree else st.just([]))
    return Scene(tree, AbovePartitions(dict(FileKey.of(path) for path in committed), leaf=leaf))


@st.composite
def dated_scenes(draw: st.DrawFn) -> Scene:
    """Draw scope partition with closed days, with or without regions.

    Files and folders that are no day lie beside them.
    """
    regions = draw(st.booleans())
    region = st.sampled_from(["aa/", "eu/", "eu-1/", "us/"] if regions else [""])
    name = st.sampled_from("123").map(lambda name: name + ENDING)
    day = st.integers(1, 9).map(lambda day: f"d=2026-01-0{day}")
    file = st.builds(lambda region, day, name: f"{region}{day}/{name}", region, day, name)
    beside = st.builds(
        lambda region, day, more, name: f"{region}{day}{more}{name}",
        region,
        day | st.sampled_from(["a", "d", "z"]),
        st.sampled_from(["-", "", "-x/", "x/", "/"]),
        name,
    )
    root = st.sampled_from([f"{stem}{ENDING}" for stem in ("a", "d=2026-01-05", "eu", "eu-0", "z")])
    tree = draw(st.lists(file | file | file | beside | root, unique=True, max_size=25))
    committed = draw(st.lists(st.sampled_from(tree), unique=True, max_size=4) if tree else st.just([]))
    bound = draw(st.none() | st.integers(1, 9).map(lambda day: datetime(2026, 1, day, tzinfo=UTC)))
    names = dict(FileKey.of(path) for path in committed)
    template = TimeTemplate("*/d=%Y-%m-%d" if regions else "d=%Y-%m-%d")
    leaf = draw(st.booleans()) and leaf_tree(tree) == tree
    return Scene(tree, AbovePartitions(names, template, bound, leaf))


@st.composite
def cold_scenes(draw: st.DrawFn) -> Scene:
    """Draw a cold start with existing and other prefixes."""
    tree = draw(trees())
    existing = [FileKey.of(path).partition for path in tree if "/" in path]
    some_partition = partitions | st.sampled_from(existing) if existing else partitions
    return Scene(tree, FromBeginning.within(draw(st.lists(some_partition, max_size=4))))


@dataclass(frozen=True)
class Sweep(Scene):
    """The files in a store, and where the late-file sweep looks.

    Attributes:
        state: the committed state.
        since: the start of a filtered cold start.
        definition: the user's definition.
    """

    state: PathState
    since: PathState | None
    definition: PathWatermark

    @property
    def expected(self) -> list[str]:
        """Return the files at or below the committed state and not before the start, by checking each."""
        paths = (
            path
            for path in self.tree
            if path.endswith(ENDING)
            and not is_hidden_path(path)
            and self._reached(path)
            and self._meant(path)
        )
        return sorted(paths, key=FileKey.of)

    def _reached(self, path: str) -> bool:
        partition, name = FileKey.of(path)
        if self.definition.scope == "global":
            return self.state.last is not None and (partition, name) <= self.state.last
        if partition in self.state.names:
            return name <= self.state.names[partition]
        return self._before(partition, self.state.closed_before)

    def _meant(self, path: str) -> bool:
        if self.definition.scope == "global":
            return self.since is None or self.since.last is None or FileKey.of(path) > self.since.last
        partition = FileKey.of(path).partition
        return not (self.since and self._before(partition, self.since.closed_before))

    def _before(self, partition: str, bound: datetime | None) -> bool:
        start = self.definition.template.time(partition) if self.definition.template else None
        return start is not None and bound is not None and start < bound


def _sweep(tree: list[str], definition: PathWatermark, state: PathState, since: PathState | None) -> Sweep:
    return Sweep(tree, sweep_start(definition, state, since), state, since, definition)


@st.composite
def global_sweeps(draw: st.DrawFn) -> Sweep:
    """Draw scope global, from the beginning or from a partition on."""
    tree = draw(trees())
    some_path = st.sampled_from(tree) | paths if tree else paths
    last, start = draw(some_path), draw(st.none() | partitions)
    since = PathState(last=FileKey(start, ""), status="active") if start else None
    definition = PathWatermark(type="path", layout=draw(st.sampled_from(["mixed", "leaf"])))
    return _sweep(tree, definition, PathState(last=FileKey.of(last), status="active"), since)


@st.composite
def dated_sweeps(draw: st.DrawFn) -> Sweep:
    """Draw scope partition with regions, with closed days or a filtered cold start."""
    scene = draw(dated_scenes())
    position = scene.position
    assert isinstance(position, AbovePartitions)
    state = PathState(names=position.names, closed_before=position.closed_before, status="active")
    bound = draw(st.none() | st.integers(1, 9).map(lambda day: datetime(2026, 1, day, tzinfo=UTC)))
    since = PathState(closed_before=bound, status="active") if bound else None
    template = position.template.text if position.template else None
    definition = PathWatermark(type="path", scope="partition", time_template=template)
    return _sweep(scene.tree, definition, state, since)


sweeps = st.one_of(global_sweeps(), dated_sweeps())
scenes = st.one_of(global_scenes(), partition_scenes(), dated_scenes(), cold_scenes(), sweeps)
