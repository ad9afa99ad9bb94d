"""Pages of messages: however long a queue is, the next one goes on."""

from __future__ import annotations

import pytest

from shmbroker import Broker
from shmbroker.cli.console import browse


@pytest.mark.parametrize(("selector", "found"), [("", [0, 1, 2]), ("n = 2", [2])])
def test_a_search_that_runs_out_of_time_comes_to_the_end(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, selector: str, found: list[int]
) -> None:
    queue = broker.declare_queue("orders")
    for number in range(3):
        queue.publish(b"", properties={"n": number})
    monkeypatch.setattr(browse, "SECONDS", -1.0)
    seen: list[int] = []
    after = -1
    for more in (True, True, False):
        page = browse.page(broker, "orders", selector, after, browse.PAGE)
        assert page["more"] is more
        assert page["last"] > after
        after = page["last"]
        seen += [each["position"] for each in page["messages"]]
    assert seen == found


@pytest.mark.parametrize("count", [-1, 0])
def test_a_page_of_none_has_one(broker: Broker, count: int) -> None:
    queue = broker.declare_queue("orders")
    queue.publish_many([b"1", b"2"])
    page = browse.page(broker, "orders", "", -1, count)
    assert ([each["position"] for each in page["messages"]], page["more"]) == ([0], True)
