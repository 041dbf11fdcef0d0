"""Every kind of watermark has its profile, and nothing else on this layer tells kinds apart."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import platform_assets
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sources import SOURCES
from platform_assets import sources
from platform_assets.factory.kinds import DEFINITIONS
from platform_assets.factory.kinds.contract import KindDefinitions
from platform_assets.kinds import PROFILES, require_profile
from platform_assets.kinds.path.profile import PathProfile
from platform_assets.kinds.profile import CanForce, FindsLateFiles, KindProfile
from platform_assets.kinds.window.profile import WindowProfile
from tests.support.ticks import WINDOWS, flow_of

LAYER = Path(platform_assets.__file__).parent
KINDS = set(Dataflow.model_json_schema()["properties"]["watermark"]["discriminator"]["mapping"])


def test_every_kind_of_watermark_that_a_dataflow_can_have_has_a_profile() -> None:
    assert set(PROFILES) == KINDS


@pytest.mark.parametrize("kind", sorted(PROFILES))
def test_a_profile_has_words_and_dagster_definitions_of_its_kind(kind: str) -> None:
    profile = PROFILES[kind]
    assert isinstance(profile, KindProfile)
    assert isinstance(DEFINITIONS[kind], KindDefinitions)
    assert profile.waiting_in_words(profile.unknown_waiting) is None


def test_no_two_kinds_say_what_waits_by_the_same_key() -> None:
    keys = [key for profile in PROFILES.values() for key in profile.unknown_waiting]
    assert len(keys) == len(set(keys))


def test_what_another_kind_has_is_refused_by_the_name_of_that_kind() -> None:
    files, windows = flow_of(), flow_of(**WINDOWS)
    assert isinstance(require_profile(files, FindsLateFiles), PathProfile)
    assert isinstance(require_profile(windows, CanForce), WindowProfile)
    with pytest.raises(ConfigurationError, match="arrivals: expected a watermark of type window, found path"):
        require_profile(files, CanForce)
    with pytest.raises(ConfigurationError, match="arrivals: expected a watermark of type path, found window"):
        require_profile(windows, FindsLateFiles)


_CLASSES = {"PathWatermark", "WindowWatermark", "PathSlice", "WindowSlice"}
_SOURCES = {source.__name__ for source in SOURCES.values()}


def _is_kind(node: ast.expr) -> bool:
    """Return whether an expression is the name of a kind, or a variable with it."""
    match node:
        case ast.Name(id="kind") | ast.Attribute(attr="kind") | ast.Subscript(slice=ast.Constant("kind")):
            return True
        case ast.Constant(value):
            return value in KINDS
    return False


def _tells_kinds_apart(node: ast.AST) -> bool:
    """Return whether a node compares kinds, or names or uses a feature of one kind."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(map(_is_kind, [left, *others]))
        case ast.Match(subject=subject):
            return _is_kind(subject)
        case ast.MatchValue(value=value):
            return _is_kind(value)
        case ast.alias(name=name) | ast.Name(id=name) | ast.Attribute(attr=name) if name in _CLASSES:
            return True
        case ast.Attribute(value=ast.Name(id="flow" | "dataflow"), attr=name):
            return name in KINDS
    return False


def _names_a_source(node: ast.AST) -> bool:
    match node:
        case ast.alias(name=name) | ast.Name(id=name):
            return name in _SOURCES
    return False


def _modules(*excluded: str) -> list[Any]:
    return [
        pytest.param(module, id=str(module.relative_to(LAYER)))
        for module in sorted(LAYER.rglob("*.py"))
        if not module.relative_to(LAYER).as_posix().startswith(excluded)
    ]


def _offences(module: Path, is_offence: Callable[[ast.AST], bool]) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(ast.parse(module.read_text())) if is_offence(node)]


@pytest.mark.parametrize("module", _modules("kinds/", "factory/kinds/", "project/"))
def test_no_module_outside_kinds_and_project_tells_kinds_apart(module: Path) -> None:
    assert _offences(module, _tells_kinds_apart) == []


@pytest.mark.parametrize("module", _modules("sources.py", "project/"))
def test_no_module_outside_sources_and_project_tells_sources_apart(module: Path) -> None:
    assert _offences(module, _names_a_source) == []


def test_every_source_that_a_dataflow_can_have_has_a_profile() -> None:
    assert set(sources.PROFILES) == set(SOURCES)


@pytest.mark.parametrize(
    "line",
    [
        'flow.kind == "path"',
        "entry.kind != other",
        'document["kind"] in ("window",)',
        '"path" in watermark',
        "dataflow.window.zone",
        "isinstance(slice_, WindowSlice)",
        "from partitions.path.definition import PathWatermark",
        'match flow.kind:\n    case "path":\n        pass',
    ],
)
def test_the_rule_sees_each_way_to_tell_kinds_apart(line: str) -> None:
    assert any(map(_tells_kinds_apart, ast.walk(ast.parse(line))))
