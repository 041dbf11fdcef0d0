from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.difference import apply_difference, json_difference

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=5)


@given(objects, objects)
def test_a_difference_makes_the_new_object_exactly(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = json.dumps(old)
    change = json.loads(json.dumps(json_difference(old, new)))
    assert json.dumps(apply_difference(old, change), sort_keys=True) == json.dumps(new, sort_keys=True)
    assert json.dumps(old) == before


def test_it_says_only_what_changed() -> None:
    old = {"paths": {"d=1": "a", "d=2": "b"}, "closed_before": None}
    new = {"paths": {"d=2": "c", "d=3": "a"}, "closed_before": None}
    assert json_difference(old, new) == {
        "set": [[["paths", "d=2"], "c"], [["paths", "d=3"], "a"]],
        "unset": [["paths", "d=1"]],
    }


@pytest.mark.parametrize("change", [{"set": [[["a", "b"], 1]], "unset": []}, {"set": [], "unset": [["x"]]}])
def test_a_difference_of_another_state_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="another"):
        apply_difference({"a": 1}, change)
