"""A broker says what no broker of ours does: its link ends, by an error that the link knows."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from shmbroker import InvalidArgument
from shmbroker.core.codes import NOT_FOUND
from shmbroker.ipc.base.errors import NotFound
from shmbroker.netbridge.remote.action import Say
from shmbroker.netbridge.remote.body import asked, raised
from shmbroker.netbridge.remote.place import Place
from shmbroker.netbridge.wire.frame import Delivery, Parting
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import consuming, ends

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


def test_no_more_was_taken_than_has_come() -> None:
    of = ends()
    of.call(Verb.GET)
    of.answer(of.performed[-1], MANY)
    assert of.broken() == [f"{MANY} messages are said to be in 0 bytes"]
    assert not of.client.in_hand


@pytest.mark.parametrize("whole", [7, "7", {"7": 7}])
def test_transactions_that_go_on_are_a_list(whole: Any) -> None:
    of = consuming()
    of.deliver(2)
    of.client.work(7, [0])
    of.broker_does([Say(Parting())])
    of.answer(of.performed[-1])
    of.broker_dies()
    of.connect(b"n" * 16, b"p" * 16)
    with pytest.raises(InvalidArgument, match="whole"):
        of.answer(of.performed[0], body=asked(whole=whole))


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
