"""A broker says what no broker of ours does: its link ends, by an error that the link knows."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from shmbroker import InvalidArgument
from shmbroker.core.codes import NOT_FOUND
from shmbroker.ipc.base.errors import NotFound
from shmbroker.netbridge.remote.action import Say, Unmade
from shmbroker.netbridge.remote.body import asked, raised
from shmbroker.netbridge.remote.outcome import End, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.remote.place import Place
from shmbroker.netbridge.wire.frame import Delivery, Parting
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, consuming, ends

MANY = 1000
DEEP = b"\x91" * MANY + b"\xc0"
"""Lists in lists: `repr` and `==` do not go so far."""


@pytest.mark.parametrize("consumer", [2, 3])
def test_no_more_is_in_hand_than_has_come(consumer: int) -> None:
    """Of a consumer that is there, and of one that has left."""
    of = consuming()
    of.does(of.client.received(Delivery(of.client.seen, consumer, 0, MANY, False, b"few"), 0.0))
    assert of.broken() == [f"{MANY} messages are said to be in 3 bytes"]
    assert not of.client.in_hand


@pytest.mark.parametrize("verb", [Verb.GET, Verb.BROWSE])
def test_no_more_was_taken_than_has_come(verb: Verb) -> None:
    of = ends()
    call = of.call(verb)
    of.answer(of.performed[-1], MANY)
    why = f"{MANY} messages are said to be in 0 bytes"
    assert of.broken() == [f"the answer to {verb.value!r}: {why}"]
    assert not of.client.in_hand
    is_odd(of, call, why)


def is_odd(of: Ends, call: int, why: str, end: End = End.FAILED) -> None:
    """Whoever waits is told, once, also on the next link."""
    of.cut()
    of.connect()
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.end, outcome.why, bytes(outcome.body)) == (end, Why.MALFORMED, why.encode())
    assert of.client.phase is Phase.UP
    assert {each.verb for each in of.client.calls.sent.values()} <= {Verb.LEAVE}


NO_MAP = "it is no map"


@pytest.mark.parametrize(
    ("verb", "end"),
    [
        (Verb.LOOK, End.FAILED), (Verb.OPERATE, End.UNKNOWN), (Verb.DECLARE, End.UNKNOWN),
        (Verb.REQUEST, End.UNKNOWN), (Verb.ORDER, End.UNKNOWN),
    ],
)  # fmt: skip
def test_what_is_to_be_a_map_is_no_list(verb: Verb, end: End) -> None:
    of = ends()
    call = of.call(verb)
    of.answer(of.performed[-1], body=DEEP)
    assert of.broken() == [f"the answer to {verb.value!r}: {NO_MAP}"]
    is_odd(of, call, NO_MAP, end)


OPENED: list[tuple[Verb, bytes, str]] = [
    (Verb.TEMPORARY_QUEUE, b"\x01", NO_MAP),
    (Verb.TEMPORARY_QUEUE, b"\x81", "the body of a command is no MessagePack"),
    (Verb.CONSUMER, b"\x93", NO_MAP),
    (Verb.CONSUMER, asked(position="7"), "'position' of a command"),
    (Verb.PRODUCER, b"\xc0", NO_MAP),
]


def opens(of: Ends, verb: Verb) -> int:
    place = Place("orders", "now") if verb is Verb.CONSUMER else None
    return of.call(verb, target=7, place=place)


@pytest.mark.parametrize(("verb", "body", "why"), OPENED)
def test_what_was_opened_oddly_is_not_there_and_left(verb: Verb, body: bytes, why: str) -> None:
    of = ends()
    of.body = body
    call = opens(of, verb)
    of.body = b""
    [broken] = of.broken()
    assert why in broken
    outcome = of.outcome(call)
    assert outcome is not None
    is_odd(of, call, bytes(outcome.body).decode())
    assert of.performed[-1].verb is Verb.LEAVE
    assert not any((of.client.standing, of.client.consumers, of.client.producers))


@pytest.mark.parametrize(("verb", "body", "why"), OPENED)
def test_what_was_made_again_oddly_is_no_more(verb: Verb, body: bytes, why: str) -> None:
    of = ends()
    opens(of, verb)
    of.broker_dies()
    of.body = body
    of.connect(b"n" * 16, b"p" * 16)
    of.body = b""
    [unmade] = of.of(Unmade)
    assert (unmade.target, type(unmade.error)) == (7, Malformed)
    assert why in str(unmade.error)
    of.cut()
    of.connect(b"n" * 16, b"p" * 16)
    assert of.client.phase is Phase.UP
    assert not of.client.standing


def test_the_end_of_a_consumer_is_told_however_odd_it_is() -> None:
    of = consuming()
    of.broker_does(of.session.ends_consumer(2, b"\x93"))
    [unmade] = of.of(Unmade)
    assert (unmade.target, type(unmade.error)) == (2, Malformed)
    assert len(of.broken()) == 1


@pytest.mark.parametrize("whole", [7, "7", {"7": 7}, None])
def test_transactions_that_go_on_are_a_list(whole: Any) -> None:
    of = consuming()
    of.deliver(2)
    of.client.work(7, [0])
    of.broker_does([Say(Parting())])
    of.answer(of.performed[-1])
    of.broker_dies()
    of.connect(b"n" * 16, b"p" * 16)
    of.answer(of.performed[0], body=DEEP if whole is None else asked(whole=whole))
    assert (NO_MAP if whole is None else "'whole'") in of.broken()[0]
    of.cut()
    of.connect(b"n" * 16, b"p" * 16)
    assert of.client.phase is Phase.UP
    commit = of.call(Verb.COMMIT, value=7, settles=(0,), body=b"tx")
    outcome = of.outcome(commit)
    assert outcome is not None
    assert outcome.why is Why.ROLLED_BACK


@pytest.mark.parametrize("stands", [{"identity": "x"}, {"position": []}, {"identity": [1]}])
def test_where_a_subscription_stands_is_a_number(stands: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(stands))):
        Place("orders", "now").opened(asked(**stands))


@pytest.mark.parametrize("said", [DEEP + b"\xa1x", b"\xa8NotFound" + DEEP, b"\x01\x02"])
def test_an_error_has_a_name_and_a_text(said: bytes) -> None:
    found = raised(NOT_FOUND, b"\x92" + said)
    assert isinstance(found, NotFound)
    assert found.code == NOT_FOUND
    assert raised(NOT_FOUND, msgpack.packb(["NotFound", "why"])).args == ("why",)
