"""A pair that shares no data, at either end of an agent."""

from __future__ import annotations

import shmbroker
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.stretched import Stretched
from tests.netbridge.networked.conftest import Brokers
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
