"""Transactions that are open when their broker leaves: what the program says, and which go on."""

from __future__ import annotations

import pytest

from shmbroker.core.codes import INVALID
from shmbroker.netbridge.remote.action import Say
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.frame import Command, Parting
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, consuming


def working(mode: Mode = Mode.AUTOMATIC) -> Ends:
    """Three messages are in hand, and transaction 7 acknowledges the first two."""
    of = consuming(mode=mode)
    of.deliver(2, 3)
    of.client.work(7, [0, 1])
    return of


def parts(of: Ends) -> None:
    of.broker_does([Say(Parting())])
    of.answer(said(of))


def said(of: Ends) -> Command:
    """What the program has said last of its transactions."""
    return [each for each in of.performed if each.verb is Verb.TRANSACTIONS][-1]


def follow(of: Ends) -> None:
    of.broker_dies()
    of.connect(b"n" * 16, b"p" * 16)


def is_whole(of: Ends) -> None:
    """At the broker that is asked, which has it in hand for this session."""
    of.session.counts_behind(1)
    of.session.has_in_hand([0, 1])
    of.answer(said(of), body=asked(whole=[7]))


def commit(of: Ends) -> int:
    return of.call(Verb.COMMIT, value=7, settles=(0, 1))


def committed(of: Ends) -> Command:
    [found] = [each for each in of.performed if each.verb is Verb.COMMIT]
    return found


def test_what_is_acknowledged_is_told_and_asked_for_before_anything_else() -> None:
    of = working()
    parts(of)
    assert told(said(of).body) == {"open": [[7, [0, 1]]]}
    follow(of)
    first = of.performed[0]
    assert (first.verb, first.repeated) == (Verb.TRANSACTIONS, True)
    assert told(first.body) == {"open": [[7, [0, 1]]]}
    assert of.client.phase is Phase.REMAKING
    is_whole(of)
    assert of.client.phase is Phase.UP
    of.deliver(2)
    assert of.handed()[-1].first == 2, "it is counted behind what has come before"
    commit(of)
    assert not committed(of).repeated


def test_who_takes_over_from_the_successor_is_told_that_nothing_of_it_is_wanted() -> None:
    """It has put aside what the successor had in hand for us, and that transaction has ended."""
    of = working()
    parts(of)
    follow(of)
    is_whole(of)
    for process in (b"q" * 16, b"r" * 16):
        of.performed.clear()
        of.broker_dies()
        of.connect(b"m" * 16, process)
        [first] = [each for each in of.performed if each.verb is Verb.TRANSACTIONS]
        assert first is of.performed[0]
        assert first.repeated
        assert told(first.body) == {"open": []}
        of.answer(first, body=asked(whole=[]))
        assert of.client.phase is Phase.UP
    outcome = of.outcome(commit(of))
    assert outcome is not None
    assert outcome.why is Why.ROLLED_BACK


@pytest.mark.parametrize("answer", [(0, asked(whole=[])), (0, asked(whole=[8])), (INVALID, b"")])
def test_one_that_is_not_whole_there_was_rolled_back(answer: tuple[int, bytes]) -> None:
    of = working()
    parts(of)
    follow(of)
    of.answer(said(of), answer[0], body=answer[1])
    outcome = of.outcome(commit(of))
    assert outcome is not None
    assert (outcome.end, outcome.why) == (End.FAILED, Why.ROLLED_BACK)


def test_what_nobody_has_asked_for_is_rolled_back_as_at_any_loss() -> None:
    of = working()
    follow(of)
    assert not [each for each in of.performed if each.verb is Verb.TRANSACTIONS]
    outcome = of.outcome(commit(of))
    assert outcome is not None
    assert outcome.why is Why.ROLLED_BACK


def test_one_that_was_begun_before_the_session_was_made_again_settles_nothing_of_it() -> None:
    of = consuming()
    of.deliver(2)
    of.broker_dies()
    of.connect()
    of.deliver(2)
    of.client.work(7, [0], 1)  # the program's step, which comes to the network thread only now
    outcome = of.outcome(of.call(Verb.COMMIT, value=7, settles=(0,)))
    assert outcome is not None
    assert outcome.why is Why.ROLLED_BACK
    assert not [each for each in of.performed if each.verb is Verb.COMMIT]


def test_a_commit_before_the_answer_is_said_behind_it_and_may_have_happened() -> None:
    of = working()
    parts(of)
    follow(of)
    commit(of)
    assert of.performed[-1].verb is not Verb.COMMIT
    is_whole(of)
    assert committed(of).repeated


@pytest.mark.parametrize("arrives", [False, True])
def test_a_commit_that_nobody_has_answered_goes_on(arrives: bool) -> None:
    of = working()
    parts(of)
    of.loses_to_broker = not arrives
    call = commit(of)
    follow(of)
    assert told(said(of).body) == {"open": [[7, [0, 1]]]}
    is_whole(of)
    assert committed(of).repeated
    of.answer(committed(of))
    outcome = of.outcome(call)
    assert outcome is not None
    assert outcome.end is End.OK


def test_one_that_is_rolled_back_there_gives_back_what_it_had_in_hand() -> None:
    of = working()
    parts(of)
    follow(of)
    is_whole(of)
    of.client.travelling.works.pop(7)
    back = of.call(Verb.GIVE_BACK, value=1, generation=1)
    assert (of.performed[-1].verb, of.performed[-1].value) == (Verb.GIVE_BACK, 1)
    of.answer(of.performed[-1])
    outcome = of.outcome(back)
    assert outcome is not None
    assert outcome.end is End.OK
    other = of.outcome(of.call(Verb.ACK, value=2, generation=1))
    assert other is not None
    assert other.why is Why.REVOKED


def test_one_that_is_rolled_back_on_the_way_is_given_back_when_it_is_there() -> None:
    of = working()
    parts(of)
    follow(of)
    of.client.travelling.works.pop(7)
    is_whole(of)
    back = [each.value for each in of.performed if each.verb is Verb.GIVE_BACK]
    assert back == [0, 1]


def test_a_program_that_decides_itself_has_none_that_goes_on() -> None:
    of = working(Mode.APPLICATION)
    parts(of)
    of.broker_dies()
    of.performed.clear()
    of.does(of.client.reconnect(of.now))
    of.connect(b"n" * 16, b"p" * 16)
    assert told(said(of).body) == {"open": []}
    of.answer(said(of), body=asked(whole=[]))
    outcome = of.outcome(commit(of))
    assert outcome is not None
    assert outcome.why is Why.ROLLED_BACK
