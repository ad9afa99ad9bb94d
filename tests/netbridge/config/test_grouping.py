"""[grouping.NAME]: what is read, and what is refused, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.config.config import load
from tests.netbridge.config.town import TOWN

CLUSTER = TOWN + 'address = "orders,!orders.local"\n'
TABLE = '[grouping.mine]\ntype = "local"\n'
GOOD = CLUSTER + TABLE


def made(folder: Path, text: str) -> Grouping | None:
    (folder / FILE).write_text(CLUSTER + text)
    return load(folder)[1].grouping


def test_defaults(tmp_path: Path) -> None:
    assert made(tmp_path, TABLE) == Grouping("mine", True, 5.0, None, 30.0)


def test_without_the_table_groups_are_of_each_node_alone(tmp_path: Path) -> None:
    assert made(tmp_path, "") is None


def test_what_is_said(tmp_path: Path) -> None:
    more = 'timeout = "10s"\ngroup-timeout = "1h"\nreaper-period = 500\n'
    text = TABLE.replace("local", "remote") + more + 'address = "orders, !orders.local"\n'
    assert made(tmp_path, text) == Grouping("mine", False, 10.0, 3600.0, 0.5)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TABLE, "[grouping.mine] needs a [cluster.NAME]"),
        (CLUSTER + "max-hops = 0\n" + TABLE, "max-hops of [cluster.town] is 0"),
        (
            CLUSTER + "max-hops = 2\nallow-direct-connections-only = true\n" + TABLE,
            "[cluster.town] is a chain",
        ),
        (GOOD + 'address = "orders"', "its address is not that of [cluster.town]"),
        (CLUSTER + "[grouping.mine]\ntimeout = 5", "[grouping.mine] has no type"),
        (CLUSTER + "[grouping.mine]\n", "[grouping.mine] has no type: `local` on the one broker"),
        (GOOD + "[bridges.far]\n", "[bridges.far] has no queue"),
        (GOOD + '[grouping.more]\ntype = "remote"', "one grouping handler, and there are mine and"),
        (GOOD + "time-out = 5", "did you mean grouping.mine.timeout?"),
        (GOOD.replace("grouping.mine", f"grouping.{'x' * 256}"), "has at most 255 bytes"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError) as error:
        load(tmp_path)
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / FILE}: ")
