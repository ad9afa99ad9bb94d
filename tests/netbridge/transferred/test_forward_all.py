"""Mode 2: what is published here is published there, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, QueueFull
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.ipc.instance import reloading
from shmbroker.perf.machine.port import free_port
from tests.netbridge.networked.conftest import PASSWORD, PATIENCE, Brokers, taken
from tests.netbridge.transferred.conftest import add, agent_of, bound, drained, forwarded, got
from tests.support.trace import TRACE

KINDS: dict[str, dict[str, Any]] = {
    "topic": {"key": "eu.#"},
    "headers": {"arguments": {"land": "de"}},
    "fanout": {},
    "direct": {"key": "eu.de"},
}
SAID: dict[str, Any] = {"key": "eu.de", "properties": {"land": "de", **TRACE}}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker, Broker]]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        names = [*KINDS, "later", "session"]
        given = [{"name": each, "to": "far", "mode": 2} for each in names]
        add(brokers, "near", *given).start().becomes("live")
        yield brokers, brokers.at("near"), brokers.at("far")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_exchange(two: tuple[Brokers, Broker, Broker], kind: str) -> None:
    brokers, near, far = two
    here, there = (bound(each, kind, kind, kind, **KINDS[kind]) for each in (near, far))
    other = bound(far, kind, kind, f"{kind}.other", **{**KINDS[kind], "key": "us"})
    forwarded(brokers, near, kind).publish(b"0", timeout=60, **SAID)
    with here.get(timeout=60) as message:
        assert (bytes(message.body), message.properties) == (b"0", SAID["properties"])
        message.ack()
    with there.get(timeout=60) as message:
        assert (bytes(message.body), message.key) == (b"0", "eu.de")
        assert message.properties == SAID["properties"], "nothing of the way is left"
        message.ack()
    assert got(here, 0) == got(there, 0) == []
    assert len(other) == (0 if kind in ("topic", "direct") else 1)


def test_it_is_declared_there_once_it_is_here_and_counts_as_routed(
    two: tuple[Brokers, Broker, Broker],
) -> None:
    brokers, near, far = two
    assert "later" not in {each.name for each in far.exchanges()}
    later = forwarded(brokers, near, "later", "topic")
    kinds = brokers.until(
        lambda: {each.name: each.kind for each in far.exchanges()}, lambda found: "later" in found
    )
    assert kinds["later"] == "topic"
    assert later.publish(b"1", key="x", mandatory=True) == 1, "nobody here wants it"
    drained(brokers, near, "later")
    near.delete_exchange("later", force=True)
    there = bound(far, "later", "topic", "later", key="#")
    forwarded(brokers, near, "later", "topic").publish(b"5", key="x")
    assert got(there, 1) == [5], "it is joined again when it was made anew"
    names = {each.destination for each in near.bindings()}
    assert not any(each.startswith("$") for each in names), "users do not see it"


def test_what_is_published_in_a_transaction(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, near, far = two
    there = bound(far, "session", "topic", "session", key="#")
    exchange = forwarded(brokers, near, "session", "topic")
    with near.transaction() as tx:
        tx.publish(exchange, b"1", key="k")
    with pytest.raises(ZeroDivisionError), near.transaction() as tx:
        tx.publish(exchange, b"2", key="k")
        raise ZeroDivisionError
    assert got(there, 1) == [1], "what was rolled back does not go"


def test_what_a_program_elsewhere_publishes_goes_there_once(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    run = add(brokers, "near", {"name": "trade", "to": "far", "mode": 2})
    port, place = free_port(), run.folder / "shmbroker.toml"
    place.write_text(f"""{place.read_text()}
[credentials.apps]
password = "{PASSWORD}"
[acceptors.apps]
uri = "tcp://127.0.0.1:{port}"
""")
    run.start().becomes("live")
    there = bound(brokers.at("far"), "trade", "topic", key="#")
    forwarded(brokers, brokers.at("near"), "trade", "topic")
    # it is live a moment before it listens, and who has one address tries once
    brokers.until(run.said, lambda said: any(each.get("acceptor") == "apps" for each in said))
    with shmbroker.connect(f"tcp://127.0.0.1:{port}", user="apps", password=PASSWORD) as program:
        exchange = program.exchange("trade")
        for each in range(50):
            assert exchange.publish(b"%d" % each, key="k", timeout=60) == 1
        with program.transaction() as tx:
            tx.publish(exchange, b"50", key="k")
    assert got(there, 51) == [*range(51)]


def test_it_outlives_the_machine(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    there = bound(brokers.at("far"), "trade", "direct", key="k")
    brokers["far"].kill()
    add(brokers, "near", {"name": "trade", "to": "far", "mode": 2}).start().becomes("live")
    near = brokers.at("near")
    trade = forwarded(brokers, near, "trade", "direct")
    for each in range(20):
        trade.publish(b"%d" % each, key="k", confirm="disk", timeout=60)
    binding = own_bindings(near)
    near.close()
    brokers["near"].kill()
    shmbroker.vhost.delete(brokers.vhosts["near"], force=True)
    brokers["near"].start().becomes("live")
    near = brokers.at("near")
    assert own_bindings(near) == binding, "also before an agent has looked"
    near.exchange("trade").publish(b"20", key="k", confirm="disk", timeout=60)
    brokers["far"].start().becomes("live")
    assert got(there, 21) == [*range(21)]


def test_an_id_is_there_once_also_if_what_waits_is_in_pages(brokers: Brokers) -> None:
    """An agent refuses no publisher because of an id; beyond the next broker it is once as well."""
    add(brokers, "end").start().becomes("live")
    add(brokers, "far", {"name": "page", "to": "end", "mode": 2}).start().becomes("live")
    far, end = brokers.at("far"), brokers.at("end")
    names = ("block", "page")
    queues = {each: bound(far, each, "topic", each, key="#") for each in names}
    queues["beyond"] = bound(end, "page", "topic", "beyond", key="#")
    forwarded(brokers, far, "page")
    brokers["far"].kill()
    given = [
        {"name": each, "to": "far", "mode": 2, "overflow": each, "max_messages": 8}
        for each in names
    ]
    add(brokers, "near", *given).start().becomes("live")
    near = brokers.at("near")
    here = bound(near, "page", "topic", key="#")
    for exchange in [forwarded(brokers, near, each, "topic") for each in names]:
        for _ in range(2):
            for each in range(4):
                exchange.publish(b"%d" % each, key="k", message_id=f"id {each}", timeout=60)
    page = near.exchange("page")
    for _ in range(2):
        for each in range(4, 20):
            page.publish(b"%d" % each, key="k", message_id=f"id {each}", timeout=60)
        with near.transaction() as tx:
            tx.publish(page, b"20", key="k", message_id="id 20")
    assert got(here, 21) == [*range(21)]
    brokers["far"].start().becomes("live")
    assert got(queues["block"], 4) == [*range(4)]
    assert got(queues["page"], 21) == got(queues["beyond"], 21) == [*range(21)]
    for _ in range(2):  # no id was given, so nobody compares
        page.publish(b"21", key="k", properties={"JMSMessageID": "id 21"}, timeout=60)
    for each in (here, queues["page"], queues["beyond"]):
        assert got(each, 2) == [21, 21]
    refused = [each.depth for each in near.queues() if each.name == "mta.undeliverable"]
    assert sum(refused) == 0, "an id that is there is no message that was refused"


def test_what_waits_while_the_other_is_away_comes_in_order(brokers: Brokers) -> None:
    add(brokers, "near", {"name": "trade", "to": "far", "mode": "publisher"})
    brokers["near"].start().becomes("live")
    near = brokers.at("near")
    here = bound(near, "trade", "topic", key="#")
    link = agent_of(brokers, "trade", "far")
    trade = forwarded(brokers, near, "trade")
    for each in range(50):
        assert trade.publish(b"%d" % each, key="k", confirm="disk", timeout=60) == 2
    assert got(here, 50) == [*range(50)]
    [waits] = [each for each in near.queues() if each.name.startswith("$mta.trade.")]
    assert (waits.durable, waits.depth) == (True, 50)
    brokers["near"].kill()
    add(brokers, "far").start().becomes("live")
    there = bound(brokers.at("far"), "trade", "topic", key="#")
    brokers["near"].start().becomes("live")
    assert got(there, 50) == [*range(50)]
    assert brokers.becomes("near", "up", link)["peer"] == "far"
    drained(brokers, near, "trade")


def test_an_exchange_of_another_type_there_says_both(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    brokers.at("far").declare_exchange("trade", "fanout")
    add(brokers, "near", {"name": "trade", "to": "far", "mode": 2}).start().becomes("live")
    near = brokers.at("near")
    trade = forwarded(brokers, near, "trade", "topic")
    link = agent_of(brokers, "trade", "far")
    why = brokers.becomes("near", "failed", link)["reason"]
    assert "exchange 'trade' is topic here, and fanout at far" in why
    assert trade.publish(b"7", key="k") == 1
    far = brokers.at("far")
    far.delete_exchange("trade")
    there = bound(far, "trade", "topic", key="#")
    assert got(there, 1) == [7], "it waits until they are the same"


@pytest.mark.parametrize(
    ("given", "state", "why"),
    [({"vhost": "elsewhere"}, "refused", "vhost"), ({"login": "other"}, "refused", "credentials")],
)
def test_another_vhost_and_another_password_are_refused(
    brokers: Brokers, given: dict[str, object], state: str, why: str
) -> None:
    add(brokers, "far").start().becomes("live")
    run = add(brokers, "near", {"name": "trade", "to": "far", "mode": 2} | given)
    text = (run.folder / "shmbroker.toml").read_text()
    (run.folder / "shmbroker.toml").write_text(
        f"{text}\n[credentials.other]\npassword = 'another one, and wrong'\nrole = 'peering'\n"
        .replace("\n[acceptors.site]", "\n[acceptors.site]\ncredentials = 'site'")
    )  # fmt: skip
    run.start().becomes("live")
    row = brokers.becomes("near", state, agent_of(brokers, "trade", "far"))
    assert why in row["reason"]


def test_an_agent_that_is_no_more_takes_nothing(brokers: Brokers) -> None:
    run = add(brokers, "near", {"name": "trade", "to": "far", "mode": 2})
    run.start().becomes("live")
    near = brokers.at("near")
    trade = forwarded(brokers, near, "trade", "topic")
    assert trade.publish(b"0", key="k") == 1
    place = run.folder / "shmbroker.toml"
    place.write_text(place.read_text().replace("mode = 2", "mode = 0"))
    answer = reloading.asked(run.folder, PATIENCE)
    assert answer is not None
    assert answer["applied"] == ["mta.1.mode"]
    taken = [1]

    def publishes() -> int:
        taken.append(trade.publish(b"1", key="k"))
        return taken[-1]

    brokers.until(publishes, lambda count: count == 0)  # it takes some for a moment longer
    [left] = [each for each in near.queues() if each.name.startswith("$mta.")]
    assert left.depth == sum(taken), "what waits is not lost"


def test_a_broker_without_any_network_has_no_agents_of_before(brokers: Brokers) -> None:
    run = add(brokers, "near", {"name": "trade", "to": "far", "mode": 2})
    place = run.folder / "shmbroker.toml"
    text = place.read_text()
    begin = text.index("[acceptors.site]")
    end = text.index("\n[", begin)
    place.write_text(text[:begin] + text[end:])
    run.start().becomes("live")
    near = brokers.at("near")
    trade = forwarded(brokers, near, "trade", "topic")
    assert trade.publish(b"0", key="k") == 1, "a broker that listens nowhere has agents"
    assert run.stop() == 0
    place.write_text(place.read_text().replace("mode = 2", "mode = 0"))
    run.start().becomes("live")
    brokers.until(lambda: own_bindings(near), lambda found: found == set())
    assert trade.publish(b"1", key="k") == 0


def test_overflow_fails_or_pages(brokers: Brokers) -> None:
    names = ("fail", "auto", "block")
    add(brokers, "far").start().becomes("live")
    queues = {each: bound(brokers.at("far"), each, "fanout", each) for each in names}
    brokers["far"].kill()
    bounds = {"to": "far", "mode": 2, "max_messages": 8}
    given = [{"name": each, "overflow": each} | bounds for each in names]
    add(brokers, "near", *given).start().becomes("live")
    near = brokers.at("near")
    exchanges = {each: forwarded(brokers, near, each, "fanout") for each in names}
    for name, exchange in exchanges.items():
        for each in range(8):
            exchange.publish(b"%d" % each, timeout=60)
        if name == "auto":
            for each in range(8, 100):
                exchange.publish(b"%d" % each, timeout=60)
            continue
        with pytest.raises(QueueFull):
            exchange.publish(b"8", timeout=0.1)
    brokers["far"].start().becomes("live")
    for name, queue in queues.items():
        count = 100 if name == "auto" else 8
        assert got(queue, count) == [*range(count)]


def test_a_queue_of_an_agent_is_nobodys(brokers: Brokers) -> None:
    add(brokers, "near", {"name": "trade", "to": "far", "mode": 2}).start().becomes("live")
    near = brokers.at("near")
    assert forwarded(brokers, near, "trade", "fanout").publish(b"0") == 1
    [waits] = [each.name for each in near.queues() if each.name.startswith("$mta.")]
    assert taken(near.queue(waits), 1, patience=0.3) == []
