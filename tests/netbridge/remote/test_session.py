"""Re-attaching, failing over, windows, credit, deliveries, tokens, deadlines, cancelling."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import Empty, NotFound
from shmbroker.core.codes import EMPTY, FULL, OK, REVOKED, UNCONFIRMED
from shmbroker.netbridge.remote.action import Drop, Event, Over, Tell, Unmade
from shmbroker.netbridge.remote.body import ended, refusal
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.numbers import OPEN_MAX, Numbers, Verdict
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.wire.frame import Attach, Attached, Command, Result, Seen
from shmbroker.netbridge.wire.words import Demand, Level, Verb
from tests.support.session_ends import LIMITS, STANDING, Ends, consuming, ends, options, record

DETECTED, REATTACHED = "failure-detected", "reattached"
COMPLETED, FAILED = "failover-completed", "failover-failed"


def ack(of: Ends, first: int, count: int = 1) -> int:
    return of.call(Verb.ACK, value=first, count=count, generation=of.client.generation)


# --- re-attaching ---------------------------------------------------------------------------------


def test_reattached_both_sides_say_again_what_the_other_has_not_seen() -> None:
    of = consuming()
    of.loses_to_program = True
    first = of.call(Verb.LOOK)
    of.answer(of.performed[-1], value=5)
    of.deliver(2)
    of.loses_to_broker = True
    second = of.call(Verb.LOOK)
    assert len(of.performed) == 1
    of.cut()
    of.connect()
    assert of.outcome(first).value == 5  # type: ignore[union-attr]
    assert [hand.first for hand in of.handed()] == [0]
    of.answer(of.performed[-1])
    assert of.outcome(second).end is End.OK  # type: ignore[union-attr]
    assert of.events() == [DETECTED, REATTACHED]
    assert (len(of.performed), of.client.generation, of.broken()) == (2, 1, [])


def test_reattached_deliveries_stay_in_hand() -> None:
    of = consuming()
    of.deliver(2, 2)
    of.cut()
    of.connect()
    call = ack(of, 0, 2)
    of.answer(of.performed[-1])
    assert of.outcome(call).end is End.OK  # type: ignore[union-attr]
    assert not of.given_back()


def test_a_body_in_parts_that_a_cut_has_torn_is_said_again_whole() -> None:
    of = ends()
    body = bytes(range(256)) * 1000
    whole: list[object] = []
    real = of.client.call(Call(of.client.next_id(), Verb.DECLARE, body=body), 0.0)
    assert len(real) > 3
    of.does(real[:2])
    of.cut()
    of.connect()
    whole = [each.body for each in of.performed]
    assert whole == [body]


def test_beyond_the_ttl_the_session_is_made_again() -> None:
    of = consuming()
    of.deliver(2)
    of.cut()
    of.now += LIMITS.ttl
    for _, _, actions in of.sessions.tick(of.now):
        of.broker_does(actions)
    assert of.given_back() == [0]
    assert of.of_broker(Over) == [Over(False)]
    of.connect()
    assert of.events() == [DETECTED, COMPLETED]
    assert of.client.generation == 2


def test_without_a_window_nothing_is_resumed() -> None:
    of = consuming(confirmation_window=-1)
    of.deliver(2)
    of.cut()
    assert of.given_back() == [0]
    of.connect()
    assert of.events() == [DETECTED, COMPLETED]


def test_an_older_attempt_does_not_get_the_session() -> None:
    of = ends()
    old = Attach(b"s" * 16, 1, 1, True, 0, 1000)
    ((link, session, actions),) = of.sessions.received(9, old, 0.0)
    assert (link, session) == (9, None)
    of.broker_does(actions)
    assert of.broken() == ["a newer link has its session"]
    assert of.sessions.link_of(of.session) == 1


def test_a_newer_attempt_takes_the_session_from_a_half_open_link() -> None:
    of = ends()
    of.does(of.client.lost(of.now))  # the broker is not told
    of.connect()
    assert of.broken() == ["a newer link has its session"]
    assert of.events() == [DETECTED, REATTACHED]


# --- failing over ---------------------------------------------------------------------------------


def test_failover_makes_again_in_order_what_the_session_had() -> None:
    of = ends()
    for target, verb in enumerate(reversed(STANDING)):
        of.call(verb, target=target, value=target * 7, body=verb.value.encode())
    of.deliver(1)
    of.call(Verb.LEAVE, target=7)
    of.broker_dies()
    of.connect()
    again = of.performed
    assert [each.verb for each in again] == [
        Verb.TEMPORARY_QUEUE,
        Verb.PRODUCER,
        Verb.CONSUMER,
        Verb.LEAVE,
    ]
    assert [bytes(each.body).decode() for each in again[:3]] == [
        each.verb.value for each in again[:3]
    ]
    assert of.of(Drop) == [Drop(1)]
    assert of.events() == [DETECTED, COMPLETED]


@pytest.mark.parametrize("again", [1, 3])
def test_events_of_a_recovery_that_is_lost_again(again: int) -> None:
    of = consuming()
    of.broker_dies()
    for _ in range(again):
        of.link += 1
        of.is_up = of.loses_to_broker = True
        of.does(of.client.connected(0.0))
        of.does(of.client.lost(0.0))
    of.connect()
    assert of.events() == [DETECTED, COMPLETED]


def test_the_deadline_passes() -> None:
    of = consuming(reconnect_deadline=3.0)
    of.broker_dies()
    of.now = 2.9
    of.does(of.client.tick(of.now))
    assert of.events() == [DETECTED]
    assert of.client.deadline == 3.0
    of.now = 3.0
    of.does(of.client.tick(of.now))
    assert of.events() == [DETECTED, FAILED]
    call = of.call(Verb.LOOK)
    assert of.outcome(call).why is Why.CLOSED  # type: ignore[union-attr]


def test_a_deadline_of_zero_gives_up_at_once() -> None:
    of = consuming(reconnect_deadline=0)
    of.cut()
    assert of.events() == [DETECTED, FAILED]


def test_application_mode_tells_once_and_waits_for_the_program() -> None:
    of = consuming(mode=Mode.APPLICATION)
    of.call(Verb.PRODUCER, target=1)
    of.cut()
    of.does(of.client.lost(of.now))
    assert of.events() == ["lost"]
    of.performed.clear()
    of.does(of.client.reconnect(of.now))
    of.connect()
    assert [each.verb for each in of.performed] == [Verb.PRODUCER]
    assert of.client.phase is Phase.UP


def test_a_broker_that_wants_it_elsewhere_says_where() -> None:
    """It moves, and then is told what came of it; in application mode it is told, once."""
    of = consuming()
    of.does(of.client.lost(of.now, Event.MOVED, "tcp://b"))
    assert [(each.event, each.detail) for each in of.of(Tell)] == [
        (Event.MOVING, "tcp://b"), (Event.FAILURE_DETECTED, "")
    ]  # fmt: skip
    of = consuming(mode=Mode.APPLICATION)
    of.does(of.client.lost(of.now, Event.MOVED, "tcp://b"))
    of.does(of.client.lost(of.now))
    assert [(each.event, each.detail) for each in of.of(Tell)] == [(Event.MOVED, "tcp://b")]


def test_an_attempt_that_fails_is_no_loss_in_either_mode() -> None:
    for mode in Mode:
        of = Ends(Client(b"s" * 16, options(mode)))
        of.does(of.client.start(of.now))
        of.does(of.client.lost(of.now))
        assert (of.client.phase, of.events()) == (Phase.CONNECTING, [])


def test_closing_in_good_order_comes_behind_all_calls() -> None:
    of = ends()
    call = of.call(Verb.LOOK)
    of.does(of.client.close(0.0))
    assert not of.of_broker(Over)
    of.answer(of.performed[-1])
    assert of.outcome(call).end is End.OK  # type: ignore[union-attr]
    assert of.of_broker(Over) == [Over(True)]
    assert of.client.phase is Phase.CLOSED
    assert not of.sessions.by_id


def test_a_session_that_is_over_wants_nothing_for_a_consumer_that_is_open() -> None:
    of = consuming()
    of.does(of.client.close(0.0))
    assert of.client.phase is Phase.CLOSED
    assert of.broker_did[-1] == Over(True)


# --- deliveries -----------------------------------------------------------------------------------


def test_credit_bounds_what_is_in_hand() -> None:
    of = consuming(prefetch=4)
    assert of.session.room(2)[0] == 4
    of.deliver(2, 4)
    assert of.session.room(2) == (0, 0)
    ack(of, 0)
    of.answer(of.performed[-1])
    assert of.session.room(2)[0] == 1


def test_more_than_the_credit_ends_the_link() -> None:
    of = consuming(prefetch=2)
    of.deliver(2, 3)
    assert of.broken() == ["consumer 2 gets more than it has asked for"]


def test_a_consumer_without_prefetch_gets_what_it_asks_for() -> None:
    of = consuming(prefetch=0)
    assert of.session.room(2) == (0, 0)
    of.does(of.client.want(2, 1))
    assert of.session.room(2)[0] == 1


def test_a_delivery_that_is_acked_twice_raises() -> None:
    of = consuming()
    of.deliver(2)
    first, second = ack(of, 0), ack(of, 0)
    of.answer(of.performed[-1])
    third = ack(of, 0)
    assert of.outcome(first).end is End.OK  # type: ignore[union-attr]
    for call in (second, third):
        assert of.outcome(call).why is Why.DEALT_WITH  # type: ignore[union-attr]
    assert len(of.performed) == 1


def test_the_broker_settles_nothing_that_is_in_nobodys_hand() -> None:
    of = ends()
    command = Command(0, Verb.ACK, 0, 3, 1, Demand.EFFECTIVE, -1, False, 0, False, b"")
    of.client.calls.sent[0] = Call(99, Verb.ACK, value=3)
    of.client.calls.next = 1
    of.broker_does(of.session.received(command))
    assert of.outcome(99).code == REVOKED  # type: ignore[union-attr]
    assert not of.performed


def test_an_ack_of_more_than_anybody_can_have_is_refused_at_once() -> None:
    of = ends()
    command = Command(0, Verb.ACK, 0, 0, (1 << 63) - 1, Demand.EFFECTIVE, -1, False, 0, False, b"")
    of.client.calls.sent[0] = Call(99, Verb.ACK, value=0)
    of.client.calls.next = 1
    of.broker_does(of.session.received(command))
    assert of.outcome(99).code == REVOKED  # type: ignore[union-attr]


def test_an_ack_that_fails_leaves_the_message_in_hand() -> None:
    of = consuming()
    of.deliver(2)
    call = ack(of, 0)
    of.answer(of.performed[-1], FULL)
    assert of.outcome(call).code == FULL  # type: ignore[union-attr]
    again = ack(of, 0)
    of.answer(of.performed[-1])
    assert of.outcome(again).end is End.OK  # type: ignore[union-attr]


def test_what_is_delivered_to_a_consumer_that_has_left_is_given_back() -> None:
    of = consuming()
    of.call(Verb.LEAVE, target=2)
    of.deliver(2)
    assert of.given_back() == [0]


def test_a_delivery_that_is_on_its_way_when_its_consumer_leaves_is_given_back() -> None:
    of = consuming()
    on_its_way = of.session.deliver(2, 3, record(b"mmm", 3))
    of.call(Verb.LEAVE, target=2)
    of.broker_does(on_its_way)
    back = [each for each in of.performed if each.verb is Verb.GIVE_BACK]
    assert [(each.value, each.count) for each in back] == [(0, 3)]
    of.answer(back[0])
    assert not of.session.in_hand
    assert not of.client.in_hand


# --- publishing -----------------------------------------------------------------------------------


def producing(**more: Any) -> Ends:
    of = ends(**more)
    of.call(Verb.PRODUCER, target=1)
    of.performed.clear()
    return of


def test_what_is_settled_in_the_turn_of_the_end_is_not_given_back() -> None:
    of = consuming()
    of.deliver(2, 3)
    [session] = of.sessions.by_id.values()
    session.window = 1  # so nothing is carried out before the program has seen that
    told = {"target": 0, "demand": Demand.SHM, "wait_ms": 0, "repeated": False, "seen": 0,
            "more": False, "body": b""}  # fmt: skip
    first = session.seen
    ack = Command(number=first, verb=Verb.ACK, value=1, count=1, **told)
    end = Command(number=first + 1, verb=Verb.END, value=0, count=0, **told)
    assert session.received(ack) == session.received(end) == []
    of.broker_does(session.received(Seen(session.said)))
    assert of.given_back() == [0, 2]
    assert of.of_broker(Over)


def test_batches_have_the_next_numbers() -> None:
    of = producing()
    for count in (1, 5, 2):
        of.call(Verb.PUBLISH, target=1, count=count, body=b"x")
    assert [each.value for each in of.performed] == [1, 2, 7]


def test_a_producer_goes_on_behind_the_highest_number() -> None:
    of = ends()
    call = Call(of.client.next_id(), Verb.PRODUCER, target=1)
    of.client.call(call, 0.0)
    answer = Result(0, 0, OK, 41, Level.SHM, False, b"")
    of.does(of.client.received(answer, 0.0))
    of.client.producers[1].number(later := Call(9, Verb.PUBLISH, 1))
    assert later.value == 42


def test_the_level_that_a_confirm_has_is_told() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, target=1, demand=Demand.DISK)
    assert of.performed[-1].demand is Demand.DISK
    of.answer(of.performed[-1], level=Level.DISK)
    assert of.outcome(call).level is Level.DISK  # type: ignore[union-attr]


def test_a_demand_that_is_not_reached_is_unknown_with_a_token() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, target=1, demand=Demand.DISK)
    of.answer(of.performed[-1], UNCONFIRMED)
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.end, outcome.token is not None) == (End.UNKNOWN, True)


def test_refused_numbers_are_told_so_that_nobody_waits_for_them() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, target=1, count=3)
    of.answer(of.performed[-1], FULL, value=1)
    assert of.outcome(call).end is End.FAILED  # type: ignore[union-attr]
    decided = of.performed[-1]
    assert (decided.verb, decided.value, decided.count) == (Verb.DECIDED, 2, 2)


def test_tokens_are_retried_in_any_order() -> None:
    of = producing(mode=Mode.APPLICATION)
    calls = [of.call(Verb.PUBLISH, target=1, body=bytes([each])) for each in range(3)]
    of.broker_dies()
    tokens = [of.outcome(call).token for call in calls]  # type: ignore[union-attr]
    of.does(of.client.reconnect(0.0))
    of.connect()
    of.call(Verb.PUBLISH, target=1, body=b"new")
    for at in (2, 0, 1):
        of.does(of.client.retry(tokens[at], of.client.next_id(), 0.0))  # type: ignore[arg-type]
    published = [each.value for each in of.performed if each.verb is Verb.PUBLISH]
    assert published == [4, 3, 1, 2]


def test_a_remade_producer_says_below_which_number_all_is_decided() -> None:
    of = producing()
    for _ in range(3):
        of.call(Verb.PUBLISH, target=1)
    of.answer(of.performed[0])
    of.answer(of.performed[2])
    of.broker_dies()
    of.performed.clear()
    of.connect()
    assert (of.performed[0].verb, of.performed[0].value) == (Verb.PRODUCER, 2)
    assert [each.value for each in of.performed[1:]] == [2]


def test_new_publishes_wait_while_a_thousand_numbers_are_open() -> None:
    of = producing(mode=Mode.APPLICATION)
    lost = of.call(Verb.PUBLISH, target=1, count=OPEN_MAX)
    of.broker_dies()
    token = of.outcome(lost).token  # type: ignore[union-attr]
    of.does(of.client.reconnect(0.0))
    of.connect()
    of.performed.clear()
    of.call(Verb.PUBLISH, target=1)
    assert not of.performed
    of.does(of.client.retry(token, of.client.next_id(), 0.0))  # type: ignore[arg-type]
    of.answer(of.performed[-1])
    assert of.performed[-1].value == OPEN_MAX + 1


def test_an_answer_that_comes_after_the_timeout_is_known_to_a_retry() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, timeout=1.0, target=1)
    of.now = 1.0
    of.does(of.client.tick(of.now))
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.end, outcome.why) == (End.UNKNOWN, Why.LATE)
    of.answer(of.performed[-1], value=3)
    again = of.client.next_id()
    of.does(of.client.retry(outcome.token, again, of.now))  # type: ignore[arg-type]
    assert of.outcome(again).value == 3  # type: ignore[union-attr]
    assert len(of.performed) == 1


def test_a_retry_waits_for_what_is_on_its_way() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, target=1)
    of.does(of.client.cancel(call, 0.0))
    token = of.outcome(call).token  # type: ignore[union-attr]
    again = of.client.next_id()
    of.does(of.client.retry(token, again, 0.0))  # type: ignore[arg-type]
    assert len(of.performed) == 1
    of.answer(of.performed[0], value=6)
    assert of.outcome(again).value == 6  # type: ignore[union-attr]


def test_numbers_count_as_seen_singly() -> None:
    numbers = Numbers()
    numbers.take(3)
    assert [numbers.verdict(each) for each in (1, 2, 3)] == [Verdict.NEW, Verdict.NEW, Verdict.SEEN]
    numbers.take(1)
    numbers.decided([2])
    assert [numbers.verdict(each) for each in (1, 2)] == [Verdict.SEEN, Verdict.SEEN]
    assert numbers.verdict(5 + OPEN_MAX) is Verdict.WAITS
    numbers.begin(2000)
    assert (numbers.highest, numbers.open) == (1999, set())


# --- deadlines, cancelling ------------------------------------------------------------------------


def test_a_call_that_was_not_sent_and_is_late_has_failed() -> None:
    of = producing()
    of.broker_dies()
    call = of.call(Verb.PUBLISH, timeout=1.0, target=1)
    assert of.client.deadline == 1.0
    of.now = 1.0
    of.does(of.client.tick(of.now))
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.end, outcome.why) == (End.FAILED, Why.LATE)
    of.connect()
    assert not [each for each in of.performed if each.verb is Verb.PUBLISH]


def test_a_cancelled_publish_is_unknown() -> None:
    of = producing()
    call = of.call(Verb.PUBLISH, target=1)
    of.does(of.client.cancel(call, 0.0))
    of.answer(of.performed[-1])
    assert of.outcome(call).end is End.UNKNOWN  # type: ignore[union-attr]


def test_a_cancelled_get_gives_the_message_back() -> None:
    of = ends()
    call = of.call(Verb.GET)
    taking = of.performed[-1]
    of.does(of.client.cancel(call, 0.0))
    of.answer(taking, takes=1)
    back = of.performed[-1]
    assert (back.verb, back.value, back.count) == (Verb.GIVE_BACK, 0, 1)


def test_a_get_has_what_it_took_in_hand() -> None:
    of = ends()
    empty, call = of.call(Verb.GET), of.call(Verb.GET)
    of.answer(of.performed[0], EMPTY)
    of.answer(of.performed[1], takes=2, body=b"mm")
    assert of.outcome(empty).code == EMPTY  # type: ignore[union-attr]
    outcome = of.outcome(call)
    assert outcome is not None
    assert (outcome.value, outcome.code) == (0, 2)
    done = ack(of, 0, 2)
    of.answer(of.performed[-1])
    assert of.outcome(done).end is End.OK  # type: ignore[union-attr]


# --- bounds ---------------------------------------------------------------------------------------


def test_the_window_bounds_what_is_unanswered_and_lets_acks_pass() -> None:
    of = consuming(confirmation_window=200)
    of.deliver(2)
    for _ in range(3):
        of.call(Verb.DECLARE, body=bytes(100))
    ack(of, 0)
    assert [each.verb for each in of.performed] == [Verb.DECLARE, Verb.ACK]
    of.answer(of.performed[0])
    assert [each.verb for each in of.performed] == [Verb.DECLARE, Verb.ACK, Verb.DECLARE]


def test_a_program_that_never_says_what_it_has_seen_is_let_go() -> None:
    of = ends()
    session = of.session
    session.limits = SessionLimits(held=1000)
    session.window = 100
    did = []
    for number in range(40):
        frame = Command(
            number, Verb.LOOK, 0, 0, 1, Demand.EFFECTIVE, -1, False, 0, False, bytes(30)
        )
        did += session.received(frame)
        did += session.done(number, 0, body=bytes(50)) if number in session.pending else []
    assert len(session.pending) < 20
    of.broker_did += did
    assert of.broken()[0].startswith("its commands wait")


@pytest.mark.parametrize(
    "frame",
    [
        Seen(5),
        Command(7, Verb.LOOK, 0, 0, 1, Demand.EFFECTIVE, -1, False, 0, False, b""),
        Result(0, 0, 0, 0, Level.SHM, False, b""),
    ],
    ids=["seen-beyond", "out-of-turn", "of-the-other-end"],
)
def test_a_program_that_breaks_the_rules_loses_its_link(frame: Seen | Command | Result) -> None:
    of = ends()
    of.broker_does(of.session.received(frame))
    assert len(of.broken()) == 1


def test_a_broker_that_breaks_the_rules_loses_its_link() -> None:
    client: Client = ends().client
    for frame in (
        Result(4, 0, 0, 0, Level.SHM, False, b""),
        Result(0, 3, 0, 0, Level.SHM, False, b""),
    ):
        assert len(client.received(frame, 0.0)) == 1


def test_unmade_names_what_is_missing() -> None:
    of = consuming()
    of.broker_dies()
    client = of.client
    client.connected(0.0)
    client.received(Attached(False, 0, 1000), 0.0)
    client.received(Attached(False, 0, 1000), 0.0)
    code, body = refusal(Empty("no such queue"))
    did = client.received(Result(0, 0, code, 0, Level.SHM, False, body), 0.0)
    (unmade,) = [each for each in did if isinstance(each, Unmade)]
    assert (unmade.target, type(unmade.error)) == (2, Empty)
    assert client.phase is Phase.UP


def test_a_consumer_whose_queue_is_deleted_is_told_once_also_on_another_link() -> None:
    of = consuming()
    of.deliver(2)
    of.loses_to_program = True
    of.broker_does(of.session.ends_consumer(2, ended(NotFound("q was deleted"))))
    of.cut()
    of.connect()
    (unmade,) = of.of(Unmade)
    assert (type(unmade.error), str(unmade.error)) == (NotFound, "q was deleted")
    assert of.outcome(ack(of, 0)) is None  # it goes to the broker
    of.broker_dies()
    of.performed.clear()
    of.connect()
    assert Verb.CONSUMER not in [each.verb for each in of.performed]
