"""Credit and windows."""

from __future__ import annotations

from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import consuming


def test_credit_of_messages_of_mixed_sizes_comes_back_to_the_byte() -> None:
    of = consuming(28, prefetch_bytes=4096)
    window = of.session.room(2)
    for _ in range(700):
        first = of.session.next_delivery
        of.deliver(2, 7, bytes(566))
        of.call(Verb.ACK, value=first, count=7, generation=1)
        of.answer(of.performed[-1])
    assert of.session.room(2) == window
