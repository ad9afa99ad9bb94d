"""Routes: which queues a message reaches, through which exchanges."""

from __future__ import annotations

import msgpack
import pytest

from shmbroker.core import codes, layout
from shmbroker.core.layout import (
    BINDING_HERE,
    DIRECT,
    EXCHANGES,
    FANOUT,
    FORWARD_ALL,
    FORWARD_ELSE,
    FORWARD_ONLY,
    HEADERS,
    MATCH_ANY,
    QUEUES,
    ROUTE_WORDS,
    TOPIC,
)
from shmbroker.ipc._native import lib
from tests.core.vhost import Vhost, index_of


def test_a_direct_exchange(vhost: Vhost) -> None:
    a, b, exchange = vhost.queue("a"), vhost.queue("b"), vhost.exchange("e")
    vhost.bind(exchange, a, b"one")
    vhost.bind(exchange, b, b"one")
    vhost.bind(exchange, b, b"two")
    vhost.bind(exchange, a, b"")
    assert vhost.route(exchange, b"one") == ["a", "b"]
    assert vhost.route(exchange, b"two") == ["b"]
    assert vhost.route(exchange, b"") == ["a"]
    assert vhost.route(exchange, b"on") == []


def test_a_topic_exchange(vhost: Vhost) -> None:
    a, b, exchange = vhost.queue("a"), vhost.queue("b"), vhost.exchange("e", TOPIC)
    vhost.bind(exchange, a, b"order.*.paid")
    vhost.bind(exchange, b, b"order.#")
    assert vhost.route(exchange, b"order.7.paid") == ["a", "b"]
    assert vhost.route(exchange, b"order") == ["b"]
    assert vhost.route(exchange, b"orders") == []


def test_a_fanout_exchange(vhost: Vhost) -> None:
    a, b, exchange = vhost.queue("a"), vhost.queue("b"), vhost.exchange("e", FANOUT)
    vhost.bind(exchange, b, b"x")
    vhost.bind(exchange, a, b"y")
    assert vhost.route(exchange, b"whatever") == ["b", "a"]


def test_a_headers_exchange(vhost: Vhost) -> None:
    a, b, exchange = vhost.queue("a"), vhost.queue("b"), vhost.exchange("e", HEADERS)
    vhost.bind(exchange, a, b"key", arguments={"format": "pdf", "type": "report"})
    vhost.bind(exchange, b, arguments={"format": "pdf", "type": "log"}, match=MATCH_ANY)
    assert vhost.route(exchange, b"", {"format": "pdf", "type": "report"}) == ["a", "b"]
    assert vhost.route(exchange, b"", {"type": "log"}) == ["b"]
    assert vhost.route(exchange, b"", {"format": "zip"}) == []
    assert vhost.route(exchange) == []


def test_malformed_properties_match_no_headers(vhost: Vhost) -> None:
    queue, exchange = vhost.queue("a"), vhost.exchange("e", HEADERS)
    fanout = vhost.exchange("f", FANOUT)
    vhost.bind(exchange, queue)
    vhost.bind(fanout, queue)
    assert vhost.route(exchange) == ["a"]
    assert vhost.route_code(exchange, b"", b"\x81") == 0
    assert vhost.route_code(fanout, b"", b"\x81") == 1


def test_a_queue_is_found_once(vhost: Vhost) -> None:
    a, b = vhost.queue("a"), vhost.queue("b")
    first, second = vhost.exchange("e", TOPIC), vhost.exchange("f", FANOUT)
    for pattern in (b"#", b"*", b"x"):
        vhost.bind(first, a, pattern)
    vhost.bind(first, second, b"#", kind=EXCHANGES)
    vhost.bind(second, b)
    vhost.bind(second, a)
    assert vhost.route(first, b"x") == ["a", "b"]


def test_loops_of_exchanges_end(vhost: Vhost) -> None:
    ring = [vhost.exchange(str(each), FANOUT) for each in range(100)]
    for source, destination in zip(ring, [*ring[1:], ring[0]], strict=True):
        vhost.bind(source, destination, kind=EXCHANGES)
        vhost.bind(source, source, kind=EXCHANGES)
    vhost.bind(ring[63], vhost.queue("there"))
    vhost.bind(ring[3], vhost.queue("here"))
    for start in (0, 3, 63, 64, 99):
        assert sorted(vhost.route(ring[start])) == ["here", "there"]


def test_the_alternate_gets_what_no_binding_takes(vhost: Vhost) -> None:
    last = vhost.exchange("last", FANOUT)
    middle = vhost.exchange("middle", DIRECT, alternate=last)
    first = vhost.exchange("first", TOPIC, alternate=middle)
    vhost.bind(first, vhost.queue("a"), b"a")
    vhost.bind(middle, vhost.queue("b"), b"b")
    vhost.bind(last, vhost.queue("c"))
    assert vhost.route(first, b"a") == ["a"]
    assert vhost.route(first, b"b") == ["b"]
    assert vhost.route(first, b"x") == ["c"]


def test_a_binding_to_an_exchange_takes_the_message_even_if_nothing_comes_of_it(
    vhost: Vhost,
) -> None:
    alternate, empty = vhost.exchange("alternate", FANOUT), vhost.exchange("empty")
    first = vhost.exchange("first", FANOUT, alternate=alternate)
    vhost.bind(alternate, vhost.queue("lost"))
    assert vhost.route(first) == ["lost"]
    vhost.bind(first, empty, kind=EXCHANGES)
    assert vhost.route(first) == []


def test_a_queue_found_before_still_counts_as_taken(vhost: Vhost) -> None:
    alternate = vhost.exchange("alternate", FANOUT)
    second = vhost.exchange("second", FANOUT, alternate=alternate)
    first, queue = vhost.exchange("first", FANOUT), vhost.queue("a")
    vhost.bind(alternate, vhost.queue("lost"))
    vhost.bind(first, queue)
    vhost.bind(first, second, kind=EXCHANGES)
    vhost.bind(second, queue)
    assert vhost.route(first) == ["a"]


def test_a_queue_made_anew_is_another_one(vhost: Vhost) -> None:
    alternate = vhost.exchange("alternate", FANOUT)
    exchange = vhost.exchange("e", FANOUT, alternate=alternate)
    queue = vhost.queue("a")
    vhost.bind(exchange, queue)
    vhost.remove(QUEUES, queue)
    again = vhost.queue("again")
    assert index_of(again) == index_of(queue)
    assert vhost.route(exchange) == []
    vhost.bind(alternate, again)
    assert vhost.route(exchange) == ["again"], "the binding to nowhere took nothing"


def test_an_exchange_made_anew_has_no_bindings(vhost: Vhost) -> None:
    queue = vhost.queue("a")
    outer, inner = vhost.exchange("outer", FANOUT), vhost.exchange("inner", FANOUT)
    vhost.bind(outer, inner, kind=EXCHANGES)
    vhost.bind(inner, queue)
    assert vhost.route(outer) == ["a"]
    vhost.remove(EXCHANGES, inner)
    assert vhost.route_code(inner) == codes.NOT_FOUND
    again = vhost.exchange("inner", FANOUT)
    assert vhost.route(again) == []
    assert vhost.route(outer) == []


def test_an_exchange_that_is_gone_and_an_index_that_never_was(vhost: Vhost) -> None:
    for index in (0, 5, layout.EXCHANGE_ROWS, layout.REFERENCE_INDEX_MASK):
        assert vhost.route_code(index) == codes.NOT_FOUND


def test_a_result_that_is_too_small(vhost: Vhost) -> None:
    exchange = vhost.exchange("e", FANOUT)
    for each in range(5):
        vhost.bind(exchange, vhost.queue(str(each)))
        vhost.bind(exchange, lib.sb_row_reference(vhost.address, QUEUES, each))
    vhost.found[4 * ROUTE_WORDS] = -7
    assert vhost.route_code(exchange, capacity=4) == codes.TOO_SMALL
    assert vhost.found[4 * ROUTE_WORDS] == -7
    assert vhost.route_code(exchange, capacity=5) == 5


def test_one_hash_for_two_exchanges_mixes_nothing(vhost: Vhost) -> None:
    first, second = vhost.exchange("e", FANOUT), vhost.exchange("f", FANOUT)
    vhost.bind(first, vhost.queue("a"))
    vhost.bind(second, vhost.queue("b"))
    hashed = vhost.word(layout.BINDING_COLUMN_AT)
    vhost.poke(layout.BINDING_COLUMN_AT + 8, hashed)
    assert vhost.route(first) == ["a"]


@pytest.mark.parametrize("length", [-1, 449, 1 << 40])
@pytest.mark.parametrize("kind", [DIRECT, TOPIC, HEADERS])
def test_damaged_lengths_reach_no_further_than_the_entry(
    vhost: Vhost, kind: int, length: int
) -> None:
    exchange = vhost.exchange("e", kind)
    vhost.bind(exchange, vhost.queue("a"), b"k", arguments={"a": 1})
    entry = lib.sb_catalog_entry_at(layout.BINDINGS, 0)
    vhost.poke(entry + layout.BINDING_KEY_LENGTH_AT, length)
    vhost.poke(entry + layout.BINDING_ARGUMENTS_LENGTH_AT, length)
    assert vhost.route_code(exchange, b"k", msgpack.packb({"a": 1})) in (0, 1)


def test_the_order_is_that_of_the_rows(vhost: Vhost) -> None:
    exchange = vhost.exchange("e", FANOUT)
    names = [str(each) for each in range(30)]
    references = {name: vhost.queue(name) for name in names}
    for name in reversed(names):
        vhost.bind(exchange, references[name])
    assert vhost.route(exchange) == list(reversed(names))
    assert vhost.route(exchange) == list(reversed(names))


def test_a_damaged_key_does_not_go_on_in_the_next_entry(vhost: Vhost) -> None:
    exchange = vhost.exchange("e", TOPIC)
    vhost.bind(exchange, vhost.queue("a"), b"k" * 448)
    entry = lib.sb_catalog_entry_at(layout.BINDINGS, 0)
    vhost.poke(entry + layout.BINDING_KEY_LENGTH_AT, 449)
    assert vhost.route(exchange, b"k" * 448) == ["a"]
    assert vhost.route(exchange, b"k" * 448 + b"\0") == []


def test_damaged_arguments_do_not_go_on_in_the_next_entry(vhost: Vhost) -> None:
    exchange = vhost.exchange("e", HEADERS)
    vhost.bind(exchange, vhost.queue("a"), b"k" * 448)
    entry = lib.sb_catalog_entry_at(layout.BINDINGS, 0)
    vhost.poke(entry + layout.BINDING_ARGUMENTS_LENGTH_AT, 1)
    assert vhost.route(exchange) == ["a"], "there are none: the key fills the entry"


def targets(vhost: Vhost, exchange: int, key: bytes = b"") -> list[tuple[str, int]]:
    count = vhost.route_code(exchange, key)
    at = [ROUTE_WORDS * each for each in range(count)]
    return [(vhost.names[vhost.found[each]], vhost.found[each + 1]) for each in at]


def test_a_queue_towards_a_node_is_found_once_with_each_target(vhost: Vhost) -> None:
    way, here, exchange = vhost.queue("way"), vhost.queue("here"), vhost.exchange("e", TOPIC)
    for key, target in ((b"a", 8), (b"#", 8), (b"a", -9), (b"*", -9), (b"b", 11)):
        vhost.bind(exchange, way, key, target=target)
    vhost.bind(exchange, here, b"a", target=BINDING_HERE)
    vhost.bind(exchange, here, b"a")
    assert targets(vhost, exchange, b"a") == [("way", 8), ("way", -9), ("here", 0)]
    assert targets(vhost, exchange, b"c") == [("way", 8), ("way", -9)]


def here(vhost: Vhost, exchange: int, key: bytes = b"", capacity: int = 8) -> list[str] | int:
    count: int = lib.sb_route_here(
        vhost.address, index_of(exchange), key, len(key), b"", 0, vhost.visited, vhost.found,
        capacity,
    )  # fmt: skip
    if count < 0:
        return count
    return [vhost.names[vhost.found[ROUTE_WORDS * each]] for each in range(count)]


def forwards(vhost: Vhost, exchange: int, queue: int, match: int, target: int = 5) -> None:
    """As the C library does it."""
    entry = lib.sb_catalog_entry_at(EXCHANGES, index_of(exchange))
    vhost.poke(entry + layout.EXCHANGE_FLAGS_AT, layout.EXCHANGE_FORWARDS)
    assert vhost.bind(exchange, queue, match=match, target=target) > 0


@pytest.mark.parametrize("kind", [DIRECT, TOPIC, FANOUT, HEADERS])
def test_an_agent_takes_whatever_is_published(vhost: Vhost, kind: int) -> None:
    queue, away, behind = vhost.queue("queue"), vhost.queue("away"), vhost.exchange("else", FANOUT)
    vhost.bind(behind, vhost.queue("unrouted"))
    exchange = vhost.exchange("e", kind, alternate=behind)
    vhost.bind(exchange, queue, b"k")
    forwards(vhost, exchange, away, FORWARD_ALL)
    assert targets(vhost, exchange, b"k") == [("queue", 0), ("away", 5)]
    found = [("queue", 0)] if kind in (FANOUT, HEADERS) else []
    assert targets(vhost, exchange, b"no") == [*found, ("away", 5)], "the alternate gets nothing"
    assert vhost.bind(exchange, away, match=layout.FORWARD_ONLY + 1) == codes.INVALID


def test_an_agent_takes_what_an_exclusive_binding_takes(vhost: Vhost) -> None:
    exchange, away, divert = vhost.exchange("e", TOPIC), vhost.queue("away"), vhost.queue("divert")
    vhost.bind(exchange, vhost.queue("queue"), b"#")
    index = index_of(vhost.bind(exchange, divert, b"#"))
    vhost.poke(lib.sb_catalog_entry_at(layout.BINDINGS, index) + layout.BINDING_EXCLUSIVE_AT, 1)
    forwards(vhost, exchange, away, FORWARD_ALL)
    entry = lib.sb_catalog_entry_at(EXCHANGES, index_of(exchange))
    both = layout.EXCHANGE_FORWARDS | layout.EXCHANGE_DIVERTS
    vhost.poke(entry + layout.EXCHANGE_FLAGS_AT, both)
    assert targets(vhost, exchange, b"k") == [("divert", 0), ("away", 5)]


def test_the_last_resort_takes_what_no_other_binding_takes(vhost: Vhost) -> None:
    queue, away, too = vhost.queue("queue"), vhost.queue("away"), vhost.queue("too")
    exchange = vhost.exchange("e", DIRECT, alternate=vhost.exchange("else", FANOUT))
    vhost.bind(exchange, queue, b"k")
    forwards(vhost, exchange, away, FORWARD_ELSE)
    assert targets(vhost, exchange, b"k") == [("queue", 0)]
    assert targets(vhost, exchange, b"no") == [("away", 5)]
    forwards(vhost, exchange, too, FORWARD_ALL, target=6)
    assert targets(vhost, exchange, b"k") == [("queue", 0), ("too", 6)]
    assert targets(vhost, exchange, b"no") == [("too", 6), ("away", 5)], "agents are no others"
    vhost.remove(QUEUES, queue)
    assert targets(vhost, exchange, b"k") == [("too", 6), ("away", 5)]
    assert vhost.route_code(exchange, b"k", capacity=1) == codes.TOO_SMALL


def arrived(vhost: Vhost, exchange: int, key: bytes = b"") -> list[str]:
    """Of what an agent has brought."""
    count = lib.sb_route_arrived(
        vhost.address, index_of(exchange), key, len(key), b"", 0, vhost.visited, vhost.found, 8
    )
    return [vhost.names[vhost.found[ROUTE_WORDS * each]] for each in range(count)]


def forwarded(vhost: Vhost, exchange: int) -> list[str] | int:
    """What nobody here takes now."""
    count: int = lib.sb_route_forwarded(
        vhost.address, index_of(exchange), vhost.visited, vhost.found, 8
    )
    if count < 0:
        return count
    return [vhost.names[vhost.found[ROUTE_WORDS * each]] for each in range(count)]


@pytest.mark.parametrize("kind", [DIRECT, TOPIC, FANOUT])
def test_an_agent_alone_takes_what_is_published_and_none_of_what_was_brought(
    vhost: Vhost, kind: int
) -> None:
    queue, away, too = vhost.queue("queue"), vhost.queue("away"), vhost.queue("too")
    exchange = vhost.exchange("e", kind)
    vhost.bind(exchange, queue, b"k")
    forwards(vhost, exchange, too, FORWARD_ALL)
    forwards(vhost, exchange, away, FORWARD_ONLY)
    assert targets(vhost, exchange, b"k") == [("away", 5)]
    assert arrived(vhost, exchange, b"k") == ["queue", "too"]
    into = vhost.exchange("into", FANOUT)
    vhost.bind(into, exchange, kind=EXCHANGES)
    assert targets(vhost, into, b"k") == [("away", 5)], "also by way of another exchange"
    assert arrived(vhost, into, b"k") == ["queue", "too"]
    vhost.remove(QUEUES, away)
    assert targets(vhost, exchange, b"k") == [("queue", 0), ("too", 5)]


def test_what_nobody_takes_now_goes_to_agents(vhost: Vhost) -> None:
    queue, away, too = vhost.queue("queue"), vhost.queue("away"), vhost.queue("too")
    exchange = vhost.exchange("e", FANOUT)
    vhost.bind(exchange, queue)
    assert forwarded(vhost, exchange) == []
    forwards(vhost, exchange, away, FORWARD_ELSE)
    forwards(vhost, exchange, too, FORWARD_ALL)
    assert vhost.route(exchange) == ["queue", "too"]
    assert forwarded(vhost, exchange) == ["too", "away"]
    vhost.remove(EXCHANGES, exchange)
    assert forwarded(vhost, exchange) == codes.NOT_FOUND


def test_what_comes_from_another_node_is_not_forwarded(vhost: Vhost) -> None:
    exchange, away = vhost.exchange("e", FANOUT), vhost.queue("away")
    forwards(vhost, exchange, away, FORWARD_ALL)
    assert here(vhost, exchange) == []


def test_from_another_node_only_bindings_of_users_to_queues_count(vhost: Vhost) -> None:
    queue, other, far = vhost.queue("queue"), vhost.queue("other"), vhost.queue("far")
    behind = vhost.exchange("behind", FANOUT)
    exchange = vhost.exchange("e", DIRECT, alternate=behind)
    vhost.bind(behind, far)
    vhost.bind(exchange, behind, b"k", kind=EXCHANGES)
    vhost.bind(exchange, far, b"k", target=7)
    vhost.bind(exchange, far, b"k", target=BINDING_HERE)
    assert here(vhost, exchange, b"k") == []
    vhost.bind(exchange, queue, b"k")
    vhost.bind(exchange, other, b"k")
    vhost.bind(exchange, other, b"else")
    assert here(vhost, exchange, b"k") == ["queue", "other"]
    assert here(vhost, exchange, b"k", capacity=1) == codes.TOO_SMALL
    vhost.remove(QUEUES, queue)
    assert here(vhost, exchange, b"k") == ["other"]
    vhost.remove(EXCHANGES, exchange)
    assert here(vhost, exchange, b"k") == codes.NOT_FOUND
