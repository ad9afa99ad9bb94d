"""The end that connects: its plan says to whom and when, as in `carrier/link.py`.

The connection to a member that is passive stays: it says on it when it serves.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.link.ending import State
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.link.peer import Wish
from shmbroker.netbridge.plan import action as plans
from shmbroker.netbridge.plan.plans import drafts
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.simulation.end import ROUNDING_SECONDS
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.wire.words import Refusal, Role

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.broker import Broker

PACE: Final = "initial-reconnect-delay=50ms&max-reconnect-delay=500ms"
WAITS_SECONDS: Final = 1.0
"""So long a member that is passive is not asked again over another connection."""
NOT_ANSWERED: Final = "not answered"


def uri_of(hosts: tuple[str, ...]) -> str:
    """Of a broker, or of a pair."""
    scheme = "static" if len(hosts) == 1 else "masterslave"
    return f"{scheme}:({','.join(f'tcp://{each}' for each in hosts)})?{PACE}"


class Dialler:
    def __init__(self, broker: Broker, link: str, hosts: tuple[str, ...]) -> None:
        self.broker, self.link = broker, link
        (draft,) = drafts(parse(uri_of(hosts)))
        self._plan = draft.plan(broker.host.world.random)
        self.end: PeerEnd | None = None
        """Of the attempt, or of the link that is up."""
        self._member: Single | None = None
        """Of that."""
        self._passive: dict[Single, tuple[PeerEnd, float]] = {}
        """Members that have said that they are, and when."""
        self._active: PeerEnd | None = None
        """Of a member that was passive, and has said just now that it serves."""
        self._epochs: dict[bytes, int] = {}
        self._due = float("inf")
        self.is_stopped = False

    def start(self) -> None:
        self.is_stopped = False
        self._does(self._plan.start(self.broker.host.clock))

    def stop(self) -> None:
        """In good order."""
        self.is_stopped = True
        if self.end is None:
            self._does(self._plan.stop(self.broker.host.clock))
        else:
            self.end.does(self.end.machine.stop(self.broker.host.clock, "stopped"))

    @property
    def is_up(self) -> bool:
        return self.end is not None and self.end.is_up

    # --- of the plan --------------------------------------------------------------------------

    def _does(self, actions: plans.Actions) -> None:
        for action in list(actions):
            if isinstance(action, plans.Connect):
                self._disconnect()
                self._goes_to(action.member)
            elif isinstance(action, (plans.Disconnect, plans.Release)):
                self._disconnect()
        self._wake()

    def _wake(self) -> None:
        host, due = self.broker.host, self._plan.due
        if due is not None and due + ROUNDING_SECONDS < self._due:
            self._due = due + ROUNDING_SECONDS
            host.at(self._due, self._woken)

    def _woken(self) -> None:
        self._due = float("inf")
        self._does(self._plan.woken(self.broker.host.clock))

    def _goes_to(self, member: Single) -> None:
        self._member, now = member, self.broker.host.clock
        end, since = self._passive.pop(member, (None, 0.0))
        active, self._active = self._active, None
        if end is not None and end is active:
            self.end = end
            self._plan.connected()
            end.does(end.machine.go_on(now))
        elif end is not None and now < since + WAITS_SECONDS:
            self._passive[member] = end, since
            self._does(self._plan.refused(now, Refusal.PASSIVE, "passive"))
        else:
            if end is not None:
                self._drops(end)
            self._connect(member.host)

    def _connect(self, to: str) -> None:
        broker, scene = self.broker, self.broker.scene
        scene.attempt += 1
        secret = scene.secret()
        wish = Wish("/", self.link, Role.PEERING, attempt=scene.attempt)
        near = Near(broker.identity, wish, secret, secret, self._epochs)
        end = self.end = PeerEnd(broker, near)
        broker.ends.append(end)
        end.does([])
        delay = broker.host.world.between(*DELAY_SECONDS)
        if not scene.hosts[to].is_up:
            broker.host.later(delay, end.lost)
        elif scene.network.is_free(broker.host, scene.hosts[to]):
            broker.host.later(delay, partial(self._joins, end, to))

    def _joins(self, end: PeerEnd, to: str) -> None:
        if end is not self.end or end.machine.state is not State.CONNECTING:
            return
        far = self.broker.scene.accepts(to)
        if far is None:
            end.lost()
            return
        connection = self.broker.scene.network.connect(end, far)
        far.host.at(0.0, partial(far.joined, connection))
        end.joined(connection)

    def _disconnect(self) -> None:
        end, self.end = self.end, None
        if end is not None:
            self._drops(end)

    def _drops(self, end: PeerEnd) -> None:
        self.broker.forgets(end)
        end.abandon()

    # --- of the end ---------------------------------------------------------------------------

    def has(self, end: PeerEnd) -> bool:
        return end is self.end or any(each is end for each, _ in self._passive.values())

    def became(self, end: PeerEnd, state: State) -> None:
        if state is State.HANDSHAKING:
            self._has_activated(end)
        elif state is State.SYNCING:
            self._plan.welcomed()
        elif state is State.UP:
            peer = end.machine.handshake.peer
            assert peer is not None, "it is up"
            self._epochs[peer.node] = peer.epoch
            self._does(self._plan.up(self.broker.host.clock))

    def is_passive(self) -> None:
        now = self.broker.host.clock
        assert self.end is not None, "it has said so"
        assert self._member is not None, "it was connected to"
        self._passive[self._member] = self.end, now
        self.end = None
        self._does(self._plan.refused(now, Refusal.PASSIVE, "passive"))

    def _has_activated(self, end: PeerEnd) -> None:
        """A member that was passive: it is tried on the connection that is there, if it is now."""
        member = next(each for each, (waits, _) in self._passive.items() if waits is end)
        self._active = end
        self._does(self._plan.active(member, self.broker.host.clock))
        self._active = None
        if self.end is not end and member in self._passive:
            del self._passive[member]
            self._drops(end)

    def ended(self, end: PeerEnd) -> None:
        self._passive = {of: each for of, each in self._passive.items() if each[0] is not end}
        if end is not self.end:
            return
        how, now = end.machine.ending, self.broker.host.clock
        assert how is not None, "it has ended"
        self.end = None
        if self.is_stopped:
            self._does(self._plan.stop(now))
        elif self._plan.present is not None:
            is_failed = how.state is State.FAILED
            self._does(self._plan.lost(now, how.reason.value, is_malformed=is_failed))
        else:
            self._does(self._plan.attempt_failed(now, NOT_ANSWERED))
