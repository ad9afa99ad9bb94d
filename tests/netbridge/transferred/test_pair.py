"""A pair that shares no data, at either end of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.stretched import Stretched
from tests.netbridge.networked.conftest import DURABLE, Brokers, consumes, taken
from tests.netbridge.paired.conftest import NAMES, PASSWORD, Made, duo, of, reasons
from tests.netbridge.transferred.conftest import add, agents, bound, forwarded, got, subscribed

__all__ = ["duo"]


def test_the_agent_is_at_the_active_one_and_goes_to_it(brokers: Brokers, duo: Made) -> None:
    add(brokers, "centre").start().becomes("live")
    centre = brokers.at("centre")
    quotes = agents({"name": "quotes", "host": brokers.address("centre"), "mode": 1})
    site = {"credentials.site.password": PASSWORD, "credentials.site.role": "peering"}
    two = duo({**quotes, **site}).up()
    key = public_of(Stretched("programs", PASSWORD).listening).hex()
    members = ",".join(f"{two.address(each)}?key={key}" for each in NAMES)
    trade = {"name": "trade", "host": f"masterslave:({members})", "mode": 2, "login": "pair"}
    pair = {
        "credentials.pair.password": PASSWORD,
        "credentials.pair.role": "peering",
        "acceptors.site.credentials": "site",
    }
    brokers.add("near", settings={**agents(trade), **pair}).start().becomes("live")
    at = {
        name: brokers.opened.enter_context(shmbroker.connect(f"shm://{two.vhosts[name]}"))
        for name in NAMES
    }
    come = {name: bound(each, "quotes", "topic", "come", key="#") for name, each in at.items()}
    sent = {name: bound(each, "trade", "topic", "sent", key="#") for name, each in at.items()}
    exchange = subscribed(brokers, centre, "quotes", 1)
    exchange.publish(b"0", key="k")
    near = forwarded(brokers, brokers.at("near"), "trade", "topic")
    near.publish(b"1", key="k")
    assert (got(come["one"], 1), got(sent["one"], 1)) == ([0], [1])
    assert (got(come["two"], 0), got(sent["two"], 0)) == ([], []), "it stands by"

    former = {each.queue for each in own_bindings(centre)}
    two["one"].kill()
    two.silent("two")
    near.publish(b"2", key="k")
    assert (of(two["two"])["pair"], got(sent["two"], 0)) == ("passive", []), "an agent is no vote"
    two.program("two", "one").close()
    assert reasons(two["two"])[-1] == ("active", "client asked")
    assert got(sent["two"], 1) == [2], "what waited"
    brokers.until(lambda: {each.queue for each in own_bindings(centre)} - former, len)
    exchange.publish(b"3", key="k")
    assert got(come["two"], 1) == [3]


MODES: dict[str, str] = {
    "sub": "subscribe",
    "all": "forward-all",
    "else": "forward-else",
    "both": "both",
    "service": "service",
}


def at_both(one: Broker, other: Broker, exchange: str) -> tuple[Queue, Queue]:
    """Queues of an exchange that is joined at both: with what is for each mode."""
    there = bound(other, exchange, "topic", f"{exchange} there", key="#")
    if "else" in exchange:
        return there, bound(one, exchange, "topic", f"{exchange} here", key="not.this")
    if "service" not in exchange:
        return there, bound(one, exchange, "topic", f"{exchange} here", key="#")
    here = bound(one, f"{exchange} asked", "fanout", f"{exchange} here")
    one.declare_exchange(exchange, "topic")
    one.divert(exchange, f"{exchange} asked", exclusive=True, key="price")
    return there, here


def each_mode(
    brokers: Brokers, one: Broker, other: Broker, side: str, numbers: Iterator[int]
) -> None:
    """Agents of `one` to `other`: what is published goes where it has to, once."""
    queues = {mode: (f"{side} {mode} there", f"{side} {mode} here") for mode in MODES}
    for mode in ("sub", "both", "service"):
        subscribed(brokers, other, f"{side} {mode}", 1)
    for mode in MODES:
        there, here = (at.queue(name) for at, name in zip((other, one), queues[mode], strict=True))
        publishes = forwarded(brokers, one, f"{side} {mode}") if mode != "sub" else None
        number = next(numbers)
        if publishes is not None:
            publishes.publish(b"%d" % number, key="k")
            assert taken(there, 1) == [number], mode
            assert mode in ("else", "service") or taken(here, 1) == [number], mode
        if mode in ("sub", "service"):
            number = next(numbers)
            other.exchange(f"{side} {mode}").publish(b"%d" % number, key="price")
            assert (taken(here, 1), taken(there, 1)) == ([number], [number]), mode


def test_each_mode_at_either_end_and_a_link_follow_the_active_one(
    brokers: Brokers, duo: Made
) -> None:
    add(brokers, "centre").start().becomes("live")
    given = [
        {"name": f"up {name}", "host": brokers.address("centre"), "mode": mode, "login": "site"}
        for name, mode in MODES.items()
    ]
    site = {
        "credentials.site.password": PASSWORD,
        "credentials.site.role": "peering",
    }
    two = duo({**agents(*given), **site}).up()
    key = public_of(Stretched("programs", PASSWORD).listening).hex()
    members = f"masterslave:({','.join(f'{two.address(each)}?key={key}' for each in NAMES)})"
    given = [
        {"name": f"down {name}", "host": members, "mode": mode, "login": "pair"}
        for name, mode in MODES.items()
    ]
    pair = {"credentials.pair.password": PASSWORD, "credentials.pair.role": "peering",
            "acceptors.site.credentials": "site"}  # fmt: skip
    settings = {**agents(*given), **pair}
    brokers.add("near", members, settings=settings, credentials="pair").start().becomes("live")
    centre, near, numbers = brokers.at("centre"), brokers.at("near"), count()
    work = consumes(near.declare_queue("work", **DURABLE))
    for active in NAMES:
        if active == "two":
            two["one"].kill()
            two.silent("two")
            two.program("two", "one").close()
        at = brokers.opened.enter_context(shmbroker.connect(f"shm://{two.vhosts[active]}"))
        for mode in MODES:
            at_both(at, centre, f"up {mode}")
            at_both(near, at, f"down {mode}")
        each_mode(brokers, at, centre, "up", numbers)
        each_mode(brokers, near, at, "down", numbers)
        number = next(numbers)
        at.declare_queue("work", **DURABLE).publish(b"%d" % number)
        assert taken(work, 1) == [number]
    assert got(work, 0) == [], "nothing comes twice"
    for broker in (centre, near, at):
        waiting = [each.name for each in broker.queues() if len(broker.queue(each.name))]
        assert not [each for each in waiting if not each.startswith("$")], waiting
