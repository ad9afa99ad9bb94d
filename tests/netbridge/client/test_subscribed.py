"""Subscriptions over a link whose broker is lost: each message is seen once, or counted."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import Empty
from tests.netbridge.client.conftest import calm
from tests.support.client_api import PATIENCE, STYLES, Api, it
from tests.support.serving import Site


@pytest.fixture(params=STYLES)
def api(request: pytest.FixtureRequest, mortal: Site) -> Api:
    options = "startup-max-reconnect-attempts=-1&prefer-shared-memory=false"
    uri = f"failover:({calm(mortal)})?{options}"
    return Api("tcp", request.param, mortal.broker.vhost, uri, [])


def dies(site: Site) -> None:
    assert site.process is not None
    site.process.kill()


async def sees(subscription: Any, count: int) -> list[bytes]:
    return [(await it(subscription.get(timeout=PATIENCE))).body for _ in range(count)]


async def opened(broker: Any, start: str) -> Any:
    subscription = broker.subscribe("q", start=start)
    with pytest.raises(Empty):
        await it(subscription.get(timeout=0))
    return subscription


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


@pytest.mark.parametrize("settings", [{}, {"non_destructive": True}], ids=["queue", "kept"])
@pytest.mark.parametrize("seen", [0, 2, 4])
@pytest.mark.parametrize("start", ["now", "earliest"])
def test_what_comes_while_its_broker_is_away_is_seen_and_nothing_twice(
    api: Api, mortal: Site, start: str, seen: int, settings: dict[str, Any]
) -> None:
    async def program(api: Api, broker: Any) -> None:
        there = mortal.broker.declare_queue("q", slots=64, **settings)
        subscription = await opened(broker, start)
        there.publish_many(numbered(4) if seen else [])
        assert await sees(subscription, seen) == numbered(seen)
        for more in (4, 8):  # and in the session after the next one
            dies(mortal)
            there.publish_many(numbered(4, first=more))
            mortal.begin()
        there.publish(b"12")
        first = seen or 4
        assert await sees(subscription, 13 - first) == numbered(13 - first, first=first)
        with pytest.raises(Empty):
            await it(subscription.get(timeout=0))
        assert subscription.missed == 0

    api.run(program)


@pytest.mark.parametrize("count", [1, 9], ids=["shorter", "longer"])
@pytest.mark.parametrize("start", ["now", "earliest"])
def test_of_another_queue_of_its_name_it_sees_all(
    api: Api, mortal: Site, start: str, count: int
) -> None:
    async def program(api: Api, broker: Any) -> None:
        there = mortal.broker.declare_queue("q")
        subscription = await opened(broker, start)
        there.publish_many([b"former"] * 4)
        assert await sees(subscription, 4) == [b"former"] * 4
        dies(mortal)
        mortal.broker.delete_queue("q", force=True)
        mortal.broker.declare_queue("q").publish_many(numbered(count))
        mortal.begin()
        assert await sees(subscription, count) == numbered(count)
        assert subscription.missed == 0

    api.run(program)


def test_what_has_left_the_queue_meanwhile_is_counted(api: Api, mortal: Site) -> None:
    async def program(api: Api, broker: Any) -> None:
        there = mortal.broker.declare_queue("q", slots=8)
        subscription = await opened(broker, "now")
        there.publish_many([b"seen"] * 2)
        assert await sees(subscription, 2) == [b"seen"] * 2
        dies(mortal)
        there.publish_many([b"missed"] * 2)
        assert len(there.receive_many(4, timeout=PATIENCE)) == 4
        there.publish_many(numbered(8), timeout=PATIENCE)
        mortal.begin()
        assert await sees(subscription, 8) == numbered(8)
        assert subscription.missed == 2

    api.run(program)
