"""What was published in one call, in pieces: nothing goes in behind a piece that was refused."""

from __future__ import annotations

from functools import partial

import pytest

from shmbroker import QueueFull
from shmbroker.core.codes import FULL, OK
from shmbroker.netbridge.wire.words import Verb
from tests.support.program import ok, publish
from tests.support.serving import Site


def test_behind_a_piece_that_is_refused_nothing_goes_in_until_the_program_knows(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=2)
    program = at.program()
    producer = program.producer(queue="q")

    def begin(first: int, *bodies: bytes, wait_ms: int = -1) -> int:
        piece = publish(producer, *bodies)
        return program.begin(Verb.PUBLISH_BEHIND, value=first, wait_ms=wait_ms, **piece)

    first = begin(1, b"1", b"2", b"3", wait_ms=50)
    second, of_another_call = begin(4, b"4"), begin(7, b"7")
    refused = program.outcome(first)
    assert refused.value == 2
    with pytest.raises(QueueFull):
        ok(refused)
    with pytest.raises(QueueFull):
        ok(program.outcome(second))
    assert queue.receive_many() == [b"1", b"2"]
    ok(program.outcome(of_another_call))
    with pytest.raises(QueueFull):  # it was on its way
        ok(program.outcome(begin(5, b"5")))
    decided = partial(program.call, Verb.DECIDED, target=producer)
    for number in (3, 4, 5):
        ok(decided(value=number, count=1))
    ok(program.outcome(begin(6, b"6")))
    assert queue.receive_many() == [b"7", b"6"]


def test_behind_a_refused_piece_that_is_said_again_others_go_in(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=2)
    queue.publish_many([b"1", b"2"])
    program = at.program()
    producer = program.producer(queue="q")
    of_before = {"repeated": True, "node": b"another"}
    pieces = [
        publish(producer, body) | of_before | {"value": number}
        for number, body in enumerate((b"3", b"4"), start=1)
    ]

    def said() -> list[int]:
        first, behind = pieces
        begun = [
            program.begin(Verb.PUBLISH, wait_ms=0, **first),
            program.begin(Verb.PUBLISH_BEHIND, wait_ms=0, **behind),
        ]
        return [program.outcome(each).code for each in begun]

    assert said() == [FULL, FULL]
    assert queue.receive_many() == [b"1", b"2"]
    assert said() == [OK, OK]
    assert queue.receive_many() == [b"3", b"4"]
