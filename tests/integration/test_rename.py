"""`strandline rename`: another name, the same state and table."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import yaml

from platform_assets.cli import rename
from resources.outcome import Step
from resources.replay.under_way import REPLAYING
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed, dies_after

pytestmark = pytest.mark.without_jvm

NEW = "orders_of_shops"


def renamed(feed: Feed) -> Feed:
    """The dataflow under its new name, over the same files."""
    (feed.folder / f"landing_{NEW}").symlink_to(feed.landing)
    text = (feed.folder / "dataflows" / f"{NEW}.yaml").read_text()
    made = Feed(feed.folder, feed.engine, yaml.safe_load(text), feed.settings, feed.environment, NEW)
    (feed.folder / "dataflows" / f"{NEW}.yaml").write_text(text)
    return made


@pytest.mark.needs_spark
def test_a_renamed_dataflow_goes_on_with_its_table_and_its_history(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put("2.ndjson", 2)
    feed.put_text("3.ndjson", '{"id": "no number"}\n')
    feed.load()
    feed.put("1.ndjson", 1)
    history = [(entry.id, entry.number, entry.watermark) for entry in feed.entries]
    assert feed.command("rename", NAME, NEW).json == {
        "from": NAME,
        "to": NEW,
        "number": len(history),
        "table": f"bronze/{NAME}",
    }
    after = renamed(feed)
    assert [(entry.id, entry.number, entry.watermark) for entry in after.entries] == history
    assert not feed.state.exists() or not any(path.is_file() for path in feed.state.rglob("*"))
    assert not (feed.folder / "dataflows" / f"{NAME}.yaml").exists()
    assert list(after.quarantined) == ["3.ndjson"]
    assert after.command("late", NEW).json["ingested"] == 1
    feed.put("4.ndjson", 4)
    after.load()
    assert after.ids == [1, 2, 4]
    assert after.table == feed.table


@pytest.mark.parametrize("call", ["copy_log", "with_table", "_write_atomically", "delete_log"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rename_that_dies_at_any_step_is_finished_by_the_same_command(
    feed: Feed, call: str, moment: str
) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    real = getattr(rename, call)

    def dies(*arguments: object) -> object:
        if moment == "after":
            real(*arguments)
        raise KeyboardInterrupt

    with patch.object(rename, call, dies):
        assert feed.cli("rename", NAME, NEW).code != 0
    answer = feed.cli("rename", NAME, NEW)
    if (call, moment) == ("delete_log", "after"):
        assert answer.code in (0, 2)
    else:
        assert answer.code == 0, answer.err
    after = renamed(feed)
    feed.put("2.ndjson", 2)
    after.load()
    assert after.ids == [1, 2]


def test_a_slice_that_is_not_finished_a_taken_name_and_a_bad_one_are_refused(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.INTENT_PUT))
    assert "is not finished" in feed.cli("rename", NAME, NEW).error["message"]
    feed.load()
    feed.platform.log.put_object(NAME, REPLAYING, "x.json", b"{}")
    assert "expected no replay in progress" in feed.cli("rename", NAME, NEW).error["message"]
    feed.platform.log.delete(NAME, REPLAYING, ["x.json"])
    assert "small letters" in feed.cli("rename", NAME, "Bad-Name").error["message"]
    (feed.folder / "dataflows" / "taken.yaml").write_text(
        (feed.folder / "dataflows" / f"{NAME}.yaml").read_text()
    )
    assert "expected no dataflow taken yet" in feed.cli("rename", NAME, "taken").error["message"]
    assert feed.ids == [1]
