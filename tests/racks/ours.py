"""Our brokers in both racks, and the three ways between them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from shmbroker import Broker, Empty, Exchange, Queue
from shmbroker.ipc.instance.status import NotRunning
from tests.netbridge.networked.conftest import DURABLE, Brokers, consumes
from tests.netbridge.transferred.conftest import agents, forwarded
from tests.racks.load import BURST, Way
from tests.support.hosts import Host

SLOTS = 1 << 15
PACE = "initial-reconnect-delay=10ms&max-reconnect-delay=100ms"


class Ours:
    def __init__(
        self, opened: ExitStack, folder: Path, near: Host, far: Host, heartbeat: float
    ) -> None:
        self.brokers = brokers = Brokers(folder, opened)
        brokers.heartbeat = f"{heartbeat * 1000:.0f}ms"
        brokers.hosts |= {"near": near.address, "far": far.address, "far2": far.address}
        pair = f"masterslave:({brokers.address('far')},{brokers.address('far2')})?{PACE}"
        room: dict[str, object] = {"instance.arena": "192MiB", "store.segment": "16MiB"}
        of_near = {
            **agents({"name": "trade", "host": pair, "mode": "forward-all"}),
            "bridges.plain.queue": "plain",
            "bridges.plain.to": pair,
            **room,
        }
        brokers.add("far", settings=room)
        brokers.add("far2", role="backup", shares="far", settings=room)
        brokers.add("near", pair, settings=of_near)
        for name, host in (("far", far), ("far2", far), ("near", near)):
            brokers[name].before = host.enter
            brokers[name].start().becomes("passive" if name == "far2" else "live")
        self.near, self.far = brokers.at("near"), brokers.at("far")

    def ways(self) -> list[Way]:
        return [_Carrier(self), _Agent(self), _Link(self)]


class _Ours(Way):
    def __init__(self, ours: Ours) -> None:
        self._brokers = ours.brokers
        self._source, self._target = self._ends(ours.near, ours.far)

    def _ends(self, near: Broker, far: Broker) -> tuple[Queue | Exchange, Queue]:
        raise NotImplementedError

    def send(self, bodies: Sequence[bytes]) -> None:
        assert isinstance(self._source, Queue)
        self._source.publish_many(list(bodies), confirm="shm")

    def take(self) -> list[bytes]:
        try:
            return self._target.receive_many(BURST, timeout=0.001)
        except Empty:
            return []

    def story(self) -> str:
        return self._brokers.story()

    def kill(self) -> None:
        self._brokers["far"].kill()

    def has_taken_over(self) -> bool:
        with suppress(NotRunning):
            return self._brokers["far2"].status.state == "live"
        return False

    def restore(self) -> None:
        self._brokers["far"].start().becomes("live")  # failback
        self._brokers["far2"].becomes("passive")


def _declared(broker: Broker, name: str) -> Queue:
    return broker.declare_queue(name, **(DURABLE | {"slots": SLOTS}))


class _Carrier(_Ours):
    name = "carrier"

    def _ends(self, near: Broker, far: Broker) -> tuple[Queue, Queue]:
        return _declared(near, "plain"), _declared(far, "plain")


class _Agent(_Ours):
    name = "agent"

    def _ends(self, near: Broker, far: Broker) -> tuple[Exchange, Queue]:
        far.declare_exchange("trade", "topic")
        target = _declared(far, "got")
        far.bind("trade", "got", "#")
        return forwarded(self._brokers, near, "trade", "topic"), target

    def send(self, bodies: Sequence[bytes]) -> None:
        assert isinstance(self._source, Exchange)
        for each in bodies:
            self._source.publish(each, key="k", confirm="shm")


class _Link(_Ours):
    name = "link"

    def _ends(self, near: Broker, far: Broker) -> tuple[Queue, Queue]:
        source, target = _declared(far, "orders"), consumes(_declared(near, "orders"))
        self._brokers.becomes("near", "up")
        return source, target
