"""What is wrong with a text that is no JSON."""

from __future__ import annotations

import json

import pytest

from partitions.column.state import ColumnState
from partitions.errors import CorruptWatermark
from partitions.json_faults import explain_json_error
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from partitions.window.state import WindowState


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1 "b": 2}', "a comma or a closing bracket is missing at character 9"),
        ('{"a" 1}', "a colon after a name is missing at character 6"),
        ("{a: 1}", "a name in double quotes is missing at character 2"),
        ("", "a value is missing at character 1"),
        ("1 2", "more text follows its end at character 3"),
        ('{"a": "x', "the text that starts at character 7 has no closing quote"),
        ('"a\tb"', "a text contains a control character at character 3"),
        (r'"\q"', "a backslash in a text starts no valid escape at character 2"),
        (r'"\u12"', "a backslash in a text starts no valid escape at character 3"),
        ("[" * 100_000, "it is nested too deeply"),
        ("9" * 5_000, "a number has more digits than can be read"),
    ],
)
def test_a_text_that_is_no_json_is_told_by_what_is_missing_and_where(text: str, words: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as error:
        json.loads(text)
    assert explain_json_error(error.value) == words


def test_a_text_of_lines_is_told_by_line_and_column() -> None:
    with pytest.raises(ValueError, match="Expecting") as error:
        json.loads('{"a": 1,\n "b"}')
    assert (
        explain_json_error(error.value, over_lines=True)
        == "a colon after a name is missing at line 2, column 5"
    )


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (PathState.of, "a.csv", "found 'a.csv': a value is missing at character 1"),
        (PathState.of, '{"path": null, "x": true}', 'found {"path":null,"x":true}'),
        (WindowState.of, '{"units": {"{}": 1}}', 'found {"units":{"{}":1}}'),
        (ColumnState.of, '{"at": {"a": null}}', 'column at, found {"a":null}'),
        (ColumnState.of, '{"at": {"__date__": "x"}}', 'expected a value for __date__, found "x"'),
    ],
)
def test_a_watermark_of_another_form_is_shown_as_it_was_written(read: object, text: str, found: str) -> None:
    with pytest.raises(CorruptWatermark) as error:
        read(deserialise(text))  # type: ignore[operator]
    assert error.value.message.endswith(found)
