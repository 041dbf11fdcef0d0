"""What all definitions have in common."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from partitions.target import Target


@pytest.mark.parametrize(
    ("value", "is_set"), [(True, True), ("true", True), ("False", False), (False, False)]
)
def test_the_texts_true_and_false_are_flags(value: object, is_set: bool) -> None:
    assert Target.model_validate({"replace_by_watermark": value}).replace_by_watermark is is_set


@pytest.mark.parametrize("value", ["yes", "on", "1", "", 1, 0, None])
def test_any_other_text_or_number_is_no_flag(value: object) -> None:
    with pytest.raises(ValidationError):
        Target.model_validate({"replace_by_watermark": value})
