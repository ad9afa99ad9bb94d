"""A session that is asked to go to another broker: when it goes, and what becomes of its calls."""

from __future__ import annotations

import pytest

from shmbroker.core.codes import FULL, INVALID
from shmbroker.netbridge.remote.action import Go, Over
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.moving import HOLDING_SECONDS, WAITING_SECONDS, Stage
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Outcome, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.remote.sessions import Sessions
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import LIMITS, Ends, consuming, ends, record

HERE, THERE = "tcp://here", "tcp://there"


def invite(of: Ends, *uses: bytes) -> Stage:
    of.does(of.client.move(THERE, HERE, uses, of.now))
    return of.client.moving.stage


def goes(of: Ends) -> list[str]:
    return [each.uri for each in of.of(Go)]


def follow(of: Ends) -> None:
    """The former link is closed, and another broker answers, which knows nothing of the session."""
    of.is_up = False
    for _, _, actions in of.sessions.detached(of.link, of.now):
        of.broker_does(actions)
    of.sessions = Sessions(LIMITS)
    of.performed.clear()
    of.connect()


def ends_well(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.end is End.OK


def publish(of: Ends) -> int:
    return of.call(Verb.PUBLISH, target=1, body=b"m")


def producing() -> Ends:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    of.performed.clear()
    return of


def test_with_nothing_open_it_goes_at_once_and_has_there_what_it_had() -> None:
    of = consuming()
    assert invite(of) is Stage.ARRIVES
    assert goes(of) == [THERE]
    assert of.of_broker(Over) == [Over(True)], "nothing of it is left here"
    follow(of)
    assert of.events() == ["moving", "failure-detected", "failover-completed"]
    assert [each.verb for each in of.performed] == [Verb.CONSUMER]
    assert (of.client.generation, of.client.phase) == (2, Phase.UP)
    of.deliver(2)
    assert [each.generation for each in of.handed()] == [2]


def test_what_is_in_hand_is_dealt_with_first_and_no_more_is_asked_for() -> None:
    of = consuming(prefetch=2)
    of.deliver(2, 2)
    assert invite(of) is Stage.WAITS
    ack = of.call(Verb.ACK, value=0, generation=1)
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(ack))
    assert of.session.room(2) == (0, 0)
    published = of.call(Verb.LOOK)
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(published)), "calls go on"
    of.call(Verb.ACK, value=1, generation=1)
    assert goes(of) == []
    of.answer(of.performed[-1])
    assert goes(of) == [THERE]


def test_what_comes_while_it_leaves_is_given_back_here_and_not_handed_over() -> None:
    of = consuming()
    of.loses_to_broker = True
    assert invite(of) is Stage.LEAVES
    of.deliver(2, 3)
    assert of.handed() == []
    assert len(of.session.in_hand) == 3
    of.cut()
    of.connect()  # it says again that it leaves
    assert of.given_back() == [0, 1, 2]
    assert goes(of) == [THERE]
    follow(of)
    of.deliver(2)
    assert [each.first for each in of.handed()] == [0]


def test_a_publish_that_is_on_its_way_is_answered_here_and_later_ones_go_there() -> None:
    of = producing()
    first = publish(of)
    assert invite(of) is Stage.HOLDS
    second = publish(of)
    assert len(of.performed) == 1
    of.answer(of.performed[0])
    assert ends_well(of.outcome(first))
    assert of.outcome(second) is None
    follow(of)
    assert [each.verb for each in of.performed] == [Verb.PRODUCER, Verb.PUBLISH]
    assert not of.performed[1].repeated
    of.answer(of.performed[1])
    assert ends_well(of.outcome(second))


def test_what_is_called_while_it_is_answered_goes_there() -> None:
    of = producing()
    publish(of)
    assert invite(of) is Stage.HOLDS
    look = of.call(Verb.LOOK)
    of.answer(of.performed[0])
    assert goes(of) == [THERE]
    follow(of)
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(look))


def test_a_message_that_comes_after_all_is_dealt_with_here() -> None:
    of = consuming()
    look = of.call(Verb.LOOK)
    assert invite(of) is Stage.HOLDS
    held = of.call(Verb.LOOK)
    of.deliver(2)
    assert of.client.moving.stage is Stage.WAITS
    for each in list(of.performed):
        of.answer(each)
    assert ends_well(of.outcome(look))
    assert ends_well(of.outcome(held)), "whoever has the message may wait for that"
    assert goes(of) == []


def test_its_consumers_ask_there_for_as_much_as_at_first() -> None:
    of = consuming(prefetch=4)
    of.deliver(2, 3)
    of.call(Verb.ACK, value=0, count=3, generation=1)
    of.answer(of.performed[-1])
    invite(of)
    follow(of)
    assert of.session.room(2)[0] == 4


def test_who_waits_no_longer_does_not_wait_there() -> None:
    of = ends()
    of.does(of.client.cancel(of.call(Verb.GET), of.now))
    of.answer(of.performed[-1])
    assert invite(of) is Stage.ARRIVES
    follow(of)
    assert of.performed == []


def test_a_transaction_ends_first() -> None:
    of = ends()
    of.client.work(7)
    assert invite(of) is Stage.WAITS
    commit = of.call(Verb.COMMIT, value=7, body=b"x")
    assert goes(of) == []
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(commit))
    assert goes(of) == [THERE]


@pytest.mark.parametrize("is_committed_at_once", [False, True])
def test_a_transaction_that_begins_while_it_leaves_is_committed_there(
    is_committed_at_once: bool,
) -> None:
    of = ends()
    of.loses_to_broker = True
    assert invite(of) is Stage.LEAVES
    of.client.work(7)
    if is_committed_at_once:
        commit = of.call(Verb.COMMIT, value=7, body=b"x")
    of.cut()
    of.connect()
    assert goes(of) == [THERE]
    follow(of)
    if not is_committed_at_once:
        commit = of.call(Verb.COMMIT, value=7, body=b"x")
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(commit))


def test_who_waits_for_a_message_waits_there() -> None:
    of = ends()
    get = of.call(Verb.GET)
    assert invite(of) is Stage.ARRIVES
    follow(of)
    of.answer(of.performed[-1], takes=1, body=b"m")
    assert ends_well(of.outcome(get))
    assert list(of.client.in_hand) == [0]


def test_a_message_that_is_taken_while_it_leaves_is_asked_for_there() -> None:
    of = ends()
    get = of.call(Verb.GET)
    of.loses_to_broker = True
    assert invite(of) is Stage.LEAVES
    of.answer(of.performed[-1], takes=1, body=b"m")
    assert of.outcome(get) is None
    of.cut()
    of.connect()
    assert of.given_back() == [0]
    follow(of)
    of.answer(of.performed[-1], takes=1, body=b"n")
    outcome = of.outcome(get)
    assert outcome is not None
    assert outcome.body == record(b"n")


def test_a_request_is_answered_first() -> None:
    of = ends()
    of.call(Verb.REQUEST)
    assert invite(of) is Stage.WAITS
    look = of.call(Verb.LOOK)
    of.answer(of.performed[1])
    assert ends_well(of.outcome(look))
    of.answer(of.performed[0])
    assert goes(of) == [THERE]


def test_in_time_or_not_at_all() -> None:
    of = consuming(prefetch=2)
    of.deliver(2, 2)
    assert invite(of) is Stage.WAITS
    of.call(Verb.ACK, value=0, generation=1)
    of.answer(of.performed[-1])
    assert of.session.room(2) == (0, 0)
    of.now += WAITING_SECONDS
    assert of.client.deadline <= of.now
    of.does(of.client.tick(of.now))
    assert of.client.moving.stage is Stage.STAYS
    assert of.session.room(2)[0] == 1, "it asks for more again"
    assert goes(of) == []


def test_a_broker_that_does_not_answer_holds_up_nobody_for_long() -> None:
    of = producing()
    publish(of)
    assert invite(of) is Stage.HOLDS
    publish(of)
    of.now += HOLDING_SECONDS
    of.does(of.client.tick(of.now))
    assert len(of.performed) == 2
    assert goes(of) == []


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        (Verb.TEMPORARY_QUEUE, asked()),
        (Verb.CONSUMER, asked(queue="q", looks=True)),
        (Verb.CONSUMER, asked(subscription="s", exchange="e")),
    ],
)
def test_what_is_at_one_broker_only_keeps_it_there(verb: Verb, body: bytes) -> None:
    of = ends()
    of.call(verb, target=3, body=body)
    assert invite(of) is Stage.STAYS


def test_what_is_in_doubt_keeps_it_there() -> None:
    of = producing()
    call = publish(of)
    of.does(of.client.cancel(call, of.now))
    assert invite(of) is Stage.WAITS
    of.answer(of.performed[-1])
    assert goes(of) == [THERE], "by now it is known"


def test_no_reconnect_is_no_move() -> None:
    of = ends(reconnect_deadline=0)
    assert invite(of) is Stage.STAYS
    assert goes(of) == of.events() == []


def test_it_comes_back_if_the_other_broker_has_not_what_it_uses() -> None:
    of = producing()
    one, two = asked(queue="one", opens=True), asked(queue="two", opens=True)
    assert invite(of, one, two) is Stage.ARRIVES
    publish(of)
    follow(of)
    assert [each.verb for each in of.performed] == [Verb.DECLARE] * 2, "it looks first"
    of.answer(of.performed[0])
    of.answer(of.performed[1], INVALID)
    assert goes(of) == [THERE, HERE]
    follow(of)
    assert [each.verb for each in of.performed] == [Verb.PRODUCER, Verb.PUBLISH]
    assert of.events()[-1] == "failover-completed"
    assert of.client.moving.stage is Stage.STAYS


def test_it_comes_back_if_the_other_broker_says_oddly_what_it_has() -> None:
    of = consuming()
    assert invite(of, asked(queue="one", opens=True)) is Stage.ARRIVES
    follow(of)
    of.answer(of.performed[0], body=b"\x93")
    assert of.broken() == ["the answer to 'declare': it is no map"]
    assert goes(of) == [THERE, HERE]
    follow(of)
    assert [each.verb for each in of.performed] == [Verb.CONSUMER], "it gets messages again"
    assert (of.client.phase, of.client.moving.stage) == (Phase.UP, Stage.STAYS)


def test_with_all_that_it_uses_there_it_stays_there() -> None:
    of = producing()
    assert invite(of, asked(queue="one", opens=True)) is Stage.ARRIVES
    follow(of)
    of.answer(of.performed[0])
    assert [each.verb for each in of.performed] == [Verb.DECLARE, Verb.PRODUCER]
    assert of.client.phase is Phase.UP


def test_a_cut_while_it_waits_ends_the_request() -> None:
    of = consuming()
    of.deliver(2)
    assert invite(of) is Stage.WAITS
    of.cut()
    of.connect()
    assert of.client.moving.stage is Stage.STAYS
    of.call(Verb.ACK, value=0, generation=1)
    of.answer(of.performed[-1])
    assert goes(of) == []


def test_a_broker_that_dies_while_it_leaves_was_left() -> None:
    of = producing()
    of.loses_to_broker = True
    assert invite(of) is Stage.LEAVES
    held = publish(of)
    of.broker_dies()
    of.connect()
    of.answer(of.performed[-1])
    assert ends_well(of.outcome(held))
    assert goes(of) == []
    assert of.client.phase is Phase.UP


def test_a_program_that_decides_itself_is_told_once() -> None:
    of = ends(Mode.APPLICATION)
    invite(of)
    assert of.events() == ["moved"]
    assert of.client.phase is Phase.LOST


def test_a_program_that_closes_has_closed() -> None:
    of = ends()
    of.loses_to_broker = True
    assert invite(of) is Stage.LEAVES
    of.does(of.client.close(of.now))
    of.cut()
    of.connect()
    follow(of)
    assert of.client.phase is Phase.CLOSED


def test_a_program_that_is_closing_closes_here() -> None:
    of = producing()
    publish(of)
    of.does(of.client.close(of.now))
    invite(of)
    of.answer(of.performed[-1])
    assert of.client.phase is Phase.CLOSED
    assert goes(of) == []


def test_one_that_is_refused_meanwhile_is_known() -> None:
    of = producing()
    call = publish(of)
    assert invite(of) is Stage.HOLDS
    of.answer(of.performed[-1], FULL)
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.end, outcome.why) == (End.FAILED, Why.ANSWERED)
    assert goes(of) == [THERE]
    follow(of)
    assert [each.verb for each in of.performed] == [Verb.PRODUCER, Verb.DECIDED]
