"""Handshakes: each refusal as its row in the table says, and what breaks one off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.link.action import Alert, Became, Ended, Line, OpenSink, Send, Waits
from shmbroker.netbridge.link.ending import OF_REASON, Reason, Retry, State
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.machine import SHIP, Machine
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.proof import Channel, FarEnd, NearEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import (
    Active,
    Beat,
    Challenge,
    Drained,
    Frame,
    Hello,
    Proof,
    Refused,
    Welcome,
)
from shmbroker.netbridge.wire.words import Refusal, Role, Standing
from tests.support.link_ends import DAY_MS, EAST, OUTLET, SERVICE, TIMES, WEST, WISH, Pair, pair


def refused(of: Pair) -> tuple[Refused, Ended]:
    """What the far end said, and how the near one ended; the far one ended for the same reason."""
    of.connect()
    (said,) = of.sent(Refused, "far")
    (near,), (far,) = of.endings()
    assert near.reason == far.reason == Reason(said.refusal.value)
    assert not of.sent(Welcome, "far")
    return said, Ended(near)


def test_two_ends_meet() -> None:
    of = pair().connect()
    assert (of.near.state, of.far.state) == (State.UP, State.UP)
    assert (of.near.handshake.peer, of.far.handshake.peer) == (WEST, EAST)
    assert of.of(Became) == [Became(State.SYNCING), Became(State.UP)]
    assert not of.of(Line) + of.of(Line, "far")


def test_refusal_credentials() -> None:
    said, near = refused(pair(near_word=b"guess"))
    assert near.ending.state is State.REFUSED
    assert near.ending.retry is Retry.REFUSED_INTERVAL
    assert said == Refused(Refusal.CREDENTIALS, "", ""), "nothing more is said to the stranger"


def test_refusal_credentials_of_a_role_that_is_not_admitted() -> None:
    said, _ = refused(pair(admitted=frozenset({Role.CLIENT})))
    assert said == Refused(Refusal.CREDENTIALS, "", "")


@pytest.mark.parametrize("broken", [
    {"vhosts": frozenset({"other"})}, {"served": frozenset(), "live": "tcp://live"},
    {"has_room": False}, {"epochs": {EAST.node: 99}},
])  # fmt: skip
def test_a_stranger_learns_nothing_but_that_it_is_one(broken: dict[str, object]) -> None:
    said, _ = refused(pair(near_word=b"guess", **broken))
    assert said == Refused(Refusal.CREDENTIALS, "", "")


def test_refusal_passive() -> None:
    of = pair(served=frozenset({Role.REPLICA}), live="tcp://live:61616").connect()
    assert of.sent(Refused, "far") == [
        Refused(Refusal.PASSIVE, "west is not active", "tcp://live:61616")
    ]
    assert of.of(Waits) == [Waits("tcp://live:61616")]
    assert (of.near.state, of.endings()) == (State.PEER_PASSIVE, ([], [])), "it stays"
    assert OF_REASON[Reason.PASSIVE] == (State.PEER_PASSIVE, Retry.NEXT)


def test_a_passive_member_says_when_it_serves() -> None:
    of = pair(served=frozenset()).connect()
    of.now = 0.2
    of.hears(of.near, of.near.tick(of.now))
    of.hears(of.far, of.far.tick(of.now))
    assert of.sent(Beat) == [Beat(EAST.epoch)], "the connection is kept and watched"
    of.hears(of.far, of.far.activate(of.now))
    assert of.sent(Active, "far")
    assert (of.near.state, of.far.state) == (State.HANDSHAKING, State.HANDSHAKING)
    far = of.far.handshake
    assert isinstance(far, Far)
    assert not of.sent(Welcome, "far"), "the near end says whether it goes on"
    far.service = replace(far.service, served=frozenset(Role))
    of.hears(of.near, of.near.go_on(of.now))
    assert (len(of.sent(Proof)), len(of.sent(Welcome, "far"))) == (2, 1)
    assert (of.near.state, of.far.state) == (State.UP, State.UP), "on the connection that is there"


def test_a_beat_may_be_on_its_way_while_a_passive_member_says_that_it_serves() -> None:
    of = pair(served=frozenset()).connect()
    active = of.far.activate(of.now)
    of.now = 0.2
    of.hears(of.near, of.near.tick(of.now))
    assert of.sent(Beat) == [Beat(EAST.epoch)]
    assert (of.far.state, of.endings()) == (State.HANDSHAKING, ([], []))
    of.hears(of.far, active)
    far = of.far.handshake
    assert isinstance(far, Far)
    far.service = replace(far.service, served=frozenset(Role))
    of.hears(of.near, of.near.go_on(of.now))
    assert (of.near.state, of.far.state) == (State.UP, State.UP)


def test_who_serves_by_now_does_not_wait_for_ever_for_a_near_end_that_does_not_go_on() -> None:
    of = pair(served=frozenset()).connect()
    of.hears(of.far, of.far.activate(of.now))
    of.hears(of.far, of.far.tick(of.now + TIMES.handshake_timeout))
    assert of.endings()[1][0].reason is Reason.HANDSHAKE_TIMEOUT


def test_who_serves_by_now_refuses_as_it_would_have_before() -> None:
    of = pair(served=frozenset()).connect()
    of.hears(of.far, of.far.activate(of.now))
    far = of.far.handshake
    assert isinstance(far, Far)
    far.service = replace(far.service, served=frozenset(Role), has_room=False)
    of.hears(of.near, of.near.go_on(of.now))
    assert of.sent(Refused, "far")[-1].refusal is Refusal.BUSY
    assert of.endings()[0][0].reason is Reason.BUSY


def test_a_passive_member_that_is_lost_is_a_lost_link() -> None:
    of = pair(served=frozenset()).connect()
    of.hears(of.near, of.near.tick(TIMES.silence))
    assert of.endings()[0][0].reason is Reason.SILENCE


def test_refusal_vhost() -> None:
    of = pair(vhosts=frozenset({"west", "west2"}))
    said, near = refused(of)
    assert near.ending.state is State.REFUSED
    (line,) = of.of(Line, "far")
    assert line.alert is Alert.VHOST
    assert "'/'" in line.detail
    assert "west, west2" in line.detail, "both names, there"
    assert said.detail == line.detail


def test_refusal_self() -> None:
    _, near = refused(pair(theirs=EAST))
    assert (near.ending.state, near.ending.retry) == (State.REFUSED, Retry.NEVER)


def test_refusal_duplicate_node() -> None:
    of = pair(theirs=replace(WEST, node=EAST.node))
    _, near = refused(of)
    assert near.ending.state is State.REFUSED
    assert [line.alert for line in of.of(Line, "far")] == [Alert.DUPLICATE_NODE]
    assert "east and west" in near.ending.detail, "both sides can warn"


def test_a_replica_of_our_node_is_no_duplicate() -> None:
    of = pair(theirs=replace(WEST, node=EAST.node), wish=replace(WISH, role=Role.REPLICA))
    assert of.connect().near.state is State.UP


def test_refusal_stale() -> None:
    _, near = refused(pair(epochs={EAST.node: EAST.epoch + 1}))
    assert (near.ending.state, near.ending.retry) == (State.REFUSED, Retry.UPWARDS)
    assert pair(epochs={EAST.node: EAST.epoch}).connect().near.state is State.UP


def test_a_far_end_that_is_stale_is_not_taken() -> None:
    of = pair(epochs_seen={WEST.node: WEST.epoch + 1}).connect()
    near = of.endings()[0][0]
    assert (near.reason, near.retry) == (Reason.EPOCH, Retry.AT_ONCE), "another member is tried"
    assert pair(epochs_seen={WEST.node: WEST.epoch}).connect().near.state is State.UP


def test_refusal_version(monkeypatch: pytest.MonkeyPatch) -> None:
    of = pair()
    of.hears(of.far, of.far.connected(0))
    (send,) = of.near.connected(0)
    assert isinstance(send, Send)
    assert isinstance(send.frame, Hello)
    of.hears(of.far, of.far.received(0, replace(send.frame, low=7, high=9), 0, DAY_MS))
    (said,) = of.sent(Refused, "far")
    assert said == Refused(Refusal.VERSION, "versions are 1 to 1 here, 7 to 9 there", "")
    near = of.endings()[0][0]
    assert (near.state, near.retry) == (State.FAILED, Retry.BACK_OFF)


def test_refusal_busy() -> None:
    _, near = refused(pair(has_room=False))
    assert (near.ending.state, near.ending.retry) == (State.FAILED, Retry.BACK_OFF)


def test_an_older_attempt_does_not_replace_a_newer_one() -> None:
    newest = {(EAST.node, WISH.link, WISH.role): (EAST.incarnation, 7)}
    said, _ = refused(pair(newest=newest, wish=replace(WISH, attempt=7)))
    assert said.refusal is Refusal.BUSY
    assert pair(newest=newest, wish=replace(WISH, attempt=8)).connect().near.state is State.UP
    again = {(EAST.node, WISH.link, WISH.role): (b"x" * 16, 7)}
    assert pair(newest=again).connect().near.state is State.UP, "a process that was started anew"
    program = {(EAST.node, WISH.link, Role.CLIENT): (EAST.incarnation, WISH.attempt)}
    assert pair(newest=program).connect().near.state is State.UP, "its role is another one"


def test_a_far_end_that_does_not_know_the_secret() -> None:
    of = pair()
    of.near.handshake.verifier = replace(of.near.handshake.verifier, word=b"another")  # type: ignore[misc,type-var]
    of.connect()
    assert of.endings()[0][0].reason is Reason.PEER_PROOF


def test_clocks_that_differ_are_a_warning() -> None:
    of = pair()
    of.day_ms = DAY_MS + 1500
    assert of.connect().of(Line) == [Line(Alert.CLOCKS, "by 1.500 s")]
    assert of.near.state is State.UP


def test_every_refusal_and_every_reason_has_an_outcome() -> None:
    assert set(OF_REASON) == set(Reason)
    assert {refusal.value for refusal in Refusal} <= {reason.value for reason in Reason}


@pytest.mark.parametrize("steps", range(3))
def test_a_handshake_that_breaks_off_half_way(steps: int) -> None:
    """After each frame; nothing comes after the one ending."""
    of = pair()
    sent = of.near.connected(0)
    of.far.connected(0)
    ends = [of.far, of.near]
    for step in range(steps):
        (send,) = sent
        assert isinstance(send, Send)
        sent = ends[step % 2].received(send.number, send.frame, 0, DAY_MS)
    for end in ends:
        assert end.deadline == TIMES.handshake_timeout
        (ended,) = end.tick(TIMES.handshake_timeout)
        assert isinstance(ended, Ended)
        assert ended.ending.reason is Reason.HANDSHAKE_TIMEOUT
        assert end.tick(99) == end.disconnected(99) == end.stop(99) == []


def test_connecting_takes_so_long_and_no_longer() -> None:
    near = pair().near
    assert near.tick(TIMES.connect_timeout - 0.001) == []
    (ended,) = near.tick(TIMES.connect_timeout)
    assert isinstance(ended, Ended)
    assert ended.ending.reason is Reason.CONNECT_TIMEOUT


@pytest.mark.parametrize("frame", [
    Drained(), Beat(0), Proof(b"early"), Challenge(bytes(16)), Active(),
])  # fmt: skip
@pytest.mark.parametrize("is_near", [True, False])
def test_what_does_not_belong_into_a_handshake_ends_it(frame: Frame, is_near: bool) -> None:
    of = pair()
    end = of.near if is_near else of.far
    end.connected(0)
    did = end.received(0, frame, 0, DAY_MS)
    if is_near and isinstance(frame, Challenge):
        did = end.received(1, frame, 0, DAY_MS)
    assert isinstance(did[-1], Ended)
    assert did[-1].ending.reason is Reason.UNEXPECTED


def test_a_welcome_before_the_proof_is_not_believed() -> None:
    of = pair().connect()
    (welcome,) = of.sent(Welcome, "far")
    near = pair().near
    near.connected(0)
    (ended,) = near.received(0, welcome, 0, DAY_MS)
    assert isinstance(ended, Ended)
    assert ended.ending.reason is Reason.UNEXPECTED


def test_a_program_is_no_broker() -> None:
    program = replace(EAST, standing=Standing.NONE, epoch=0)
    assert pair(ours=program, wish=replace(WISH, role=Role.CLIENT)).connect().far.state is State.UP


@pytest.mark.parametrize(("said", "user", "state"), [
    ("a long enough secret", "east", State.UP),
    ("another long secret", "east", State.REFUSED),
    ("a long enough secret", "somebody", State.REFUSED),
])  # fmt: skip
def test_the_proofs_of_credentials_are_what_a_handshake_asks_for(
    said: str, user: str, state: State
) -> None:
    channel = Channel(b"n" * 32, b"f" * 32)
    keys, known = (Stretched("east", word) for word in (said, "a long enough secret"))
    ours, theirs = (Credential("east", "east", (Role.CLUSTER,), (each,)) for each in (keys, known))
    one = NearEnd(ours, keys, channel, b"1" * 32)
    other = FarEnd(Credentials((theirs,)), channel, b"2" * 32)
    near = Near(EAST, replace(WISH, user=user), one, one)
    of = Pair(Machine(TIMES, near, 0), Machine(TIMES, Far(WEST, SERVICE, other, other), 0))
    assert of.connect().near.state is state


@pytest.mark.parametrize("role", [each for each in Role if each not in SHIP])
def test_a_link_of_another_role_ships_nothing(role: Role) -> None:
    """Who may only look, or publish under a name, does not pour into queues."""
    of = pair(wish=replace(WISH, role=role))
    of.near.open(OUTLET, of.now)
    of.connect()
    assert not of.of(OpenSink, "far")
    _, (far,) = of.endings()
    assert "of a link that ships nothing" in far.detail
