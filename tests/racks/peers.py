"""Other brokers in both racks: ActiveMQ Classic with a pair on a shared store, RabbitMQ with a
shovel.  Both are spoken to by STOMP."""

from __future__ import annotations

import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Final

from shmbroker.perf.machine import debian
from shmbroker.perf.machine.program import Program
from shmbroker.perf.peers.activemq import HEAP, HOME, ActiveMq
from shmbroker.perf.peers.rabbitmq import RabbitMq
from shmbroker.perf.server.stomp import Stomp, StompError, frame
from tests.racks.load import Way
from tests.support.hosts import Host

QUEUE: Final = "over.the.wire"
STOMP, OPENWIRE, STOMP2, OPENWIRE2, AMQP = 6101, 6102, 6103, 6104, 6105
"""Racks have all ports to themselves."""
TOGETHER = 512
"""In a transaction, and acknowledged together."""
PREFETCH = 2 * TOGETHER
START_SECONDS = 120.0
LOCK_MS = 100
"""Between two tries of the slave to get the store's lock; the default is 10 s."""
BROKER: Final = """\
<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans
        http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
        http://activemq.apache.org/schema/core
        http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" useJmx="false"
      dataDirectory="{folder}">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="&gt;" producerFlowControl="false"/>
    </policyEntries></policyMap></destinationPolicy>
    {network}
    <persistenceAdapter>
      <kahaDB directory="{store}" journalDiskSyncStrategy="always">
        <locker><shared-file-locker lockAcquireSleepInterval="{lock_ms}"/></locker>
      </kahaDB>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://0.0.0.0:{stomp}"/>
      <transportConnector name="openwire" uri="tcp://0.0.0.0:{openwire}"/>
    </transportConnectors>
  </broker>
</beans>
"""
NETWORK: Final = """\
<networkConnectors>
      <networkConnector name="link" uri="masterslave:({uris})">
        <staticallyIncludedDestinations>
          <queue physicalName="{queue}"/>
        </staticallyIncludedDestinations>
      </networkConnector>
    </networkConnectors>"""
RABBIT: Final = """\
listeners.tcp.1 = 0.0.0.0:{amqp}
stomp.listeners.tcp.1 = 0.0.0.0:{stomp}
default_vhost = localhost
stomp.default_user = guest
stomp.default_pass = guest
loopback_users.guest = false
log.console = false
log.file.level = error
vm_memory_high_watermark.relative = 0.6
disk_free_limit.absolute = 100MB
"""
SHOVEL: Final = """\
[{{rabbitmq_shovel, [{{shovels, [{{link, [
  {{source, [{{protocol, amqp091}}, {{uris, ["amqp://127.0.0.1:{amqp}/localhost"]}},
            {{declarations, [{{'queue.declare', [{{queue, <<"{queue}">>}}, durable]}}]}},
            {{queue, <<"{queue}">>}}, {{prefetch_count, 1000}}]}},
  {{destination, [{{protocol, amqp091}}, {{uris, ["amqp://{far}:{amqp}/localhost"]}},
            {{declarations, [{{'queue.declare', [{{queue, <<"{queue}">>}}, durable]}}]}},
            {{publish_fields, [{{exchange, <<"">>}}, {{routing_key, <<"{queue}">>}}]}}]}},
  {{ack_mode, on_confirm}}, {{reconnect_delay, 1}}]}}]}}]}}].
"""


class Giver:
    """Publishes in transactions, each of which is confirmed."""

    def __init__(self, host: Host, port: int) -> None:
        self._stomp = connected(host, [("127.0.0.1", port)])
        self._receipts = count()

    def send(self, bodies: Sequence[bytes]) -> None:
        receipt = b"%d" % next(self._receipts)
        transaction = b"transaction:" + receipt
        headers = (b"destination:/queue/" + QUEUE.encode(), b"persistent:true", transaction)
        frames = [frame(b"SEND", headers, body) for body in bodies]
        commit = frame(b"COMMIT", (transaction, b"receipt:" + receipt))
        self._stomp.send(b"".join((frame(b"BEGIN", (transaction,)), *frames, commit)))
        answer = self._stomp.receive(b"RECEIPT")
        assert answer.headers[b"receipt-id"] == receipt, answer

    def close(self) -> None:
        self._stomp.close()


class Taker:
    """Takes in a thread of its own, from whoever of these serves."""

    def __init__(self, host: Host, ports: Sequence[int]) -> None:
        self._host, self._places = host, [("127.0.0.1", port) for port in ports]
        self._came: deque[bytes] = deque()
        self._is_closed = False
        self._stomp = connected(host, self._places)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self) -> list[bytes]:
        if not self._came:
            time.sleep(0.001)
        return [self._came.popleft() for _ in range(len(self._came))]

    def _run(self) -> None:
        while not self._is_closed:
            with suppress(StompError, OSError):
                self._take_all(self._stomp)
            if not self._is_closed:
                self._stomp = connected(self._host, self._places)

    def _take_all(self, stomp: Stomp) -> None:
        prefetch = b"%d" % PREFETCH
        headers = (b"destination:/queue/" + QUEUE.encode(), b"id:0", b"ack:client",
                   b"activemq.prefetchSize:" + prefetch, b"prefetch-count:" + prefetch)  # fmt: skip
        stomp.send(frame(b"SUBSCRIBE", headers))
        while True:
            messages = [stomp.receive(b"MESSAGE")]
            while len(messages) < TOGETHER and stomp.has_more():
                messages.append(stomp.receive(b"MESSAGE"))
            stomp.send(frame(b"ACK", (b"id:" + messages[-1].headers[b"ack"],)))
            self._came.extend(each.body for each in messages)

    def close(self) -> None:
        self._is_closed = True
        self._stomp.close()


def connected(host: Host, places: Sequence[tuple[str, int]]) -> Stomp:
    until = time.monotonic() + START_SECONDS
    while True:
        for place in places:
            with suppress(OSError, StompError), host.entered():
                return Stomp(*place)
        assert time.monotonic() < until, f"nobody listens at {places}"
        time.sleep(0.01)


def listens(host: Host, port: int) -> bool:
    with suppress(OSError), host.entered(), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def started(host: Host, make: Callable[[], Program]) -> Program:
    with host.entered():
        return make()


class ActiveMqRacks(Way):
    name = "activemq"
    backlog = 64
    """Its bridge waits for each persistent message."""
    may_repeat = True

    def __init__(self, opened: ExitStack, folder: Path, near: Host, far: Host) -> None:
        debian.install("activemq")
        self._opened, self._folder, self._far = opened, folder, far
        uris = ",".join(f"tcp://{far.address}:{port}" for port in (OPENWIRE, OPENWIRE2))
        self._master = self._begins("far", STOMP, OPENWIRE)
        self._wait(far, STOMP)
        self._slave = self._begins("far2", STOMP2, OPENWIRE2)
        network = NETWORK.format(uris=uris, queue=QUEUE)
        started(near, lambda: self._broker("near", STOMP, OPENWIRE, "near", network))
        self._wait(near, STOMP)
        self._giver, self._taker = Giver(near, STOMP), Taker(far, (STOMP, STOMP2))
        for each in (self._giver, self._taker):
            opened.callback(each.close)

    def _begins(self, name: str, stomp: int, openwire: int) -> Program:
        return started(self._far, lambda: self._broker(name, stomp, openwire, "far"))

    def _broker(
        self, name: str, stomp: int, openwire: int, store: str, network: str = ""
    ) -> Program:
        folder = self._folder / f"activemq-{name}"
        folder.mkdir(exist_ok=True)
        config = folder / "activemq.xml"
        config.write_text(
            BROKER.format(
                name=store, folder=folder, store=self._folder / f"activemq-{store}" / "kahadb",
                lock_ms=LOCK_MS, stomp=stomp, openwire=openwire, network=network,
            )
        )  # fmt: skip
        command = ["java", HEAP, f"-Dactivemq.home={HOME}", f"-Djava.io.tmpdir={folder}"]
        command += [f"-Dactivemq.{what}={folder}" for what in ("base", "conf", "data")]
        command += ["-jar", ActiveMq.program, "start", f"xbean:{config.as_uri()}"]
        return self._opened.enter_context(Program(command, folder / "said"))

    def _wait(self, host: Host, port: int) -> None:
        until = time.monotonic() + START_SECONDS
        while not listens(host, port):
            self._master.check()
            assert time.monotonic() < until, f"{self.name} does not listen at {port}"
            time.sleep(0.05)

    def send(self, bodies: Sequence[bytes]) -> None:
        self._giver.send(bodies)

    def take(self) -> list[bytes]:
        return self._taker.take()

    def kill(self) -> None:
        self._master.signal(signal.SIGKILL)

    def has_taken_over(self) -> bool:
        return listens(self._far, STOMP2)

    def restore(self) -> None:
        """There is one failover, and the slave stays what it is."""


class RabbitMqRacks(Way):
    name = "rabbitmq"
    backlog = 4096

    def __init__(self, opened: ExitStack, folder: Path, near: Host, far: Host) -> None:
        debian.install("rabbitmq-server")
        self._opened, self._folder = opened, folder
        for name, host in (("far", far), ("near", near)):
            shovel = SHOVEL.format(amqp=AMQP, queue=QUEUE, far=far.address)
            started(host, lambda name=name, text=shovel: self._broker(name, text))  # type: ignore[misc]
            connected(host, [("127.0.0.1", STOMP)]).close()
        self._giver, self._taker = Giver(near, STOMP), Taker(far, (STOMP,))
        for each in (self._giver, self._taker):
            opened.callback(each.close)

    def _broker(self, name: str, shovel: str) -> Program:
        folder = self._folder / f"rabbitmq-{name}"
        folder.mkdir()
        plugins = "rabbitmq_stomp" + (", rabbitmq_shovel" if name == "near" else "")
        (folder / "plugins").write_text(f"[{plugins}].\n")
        (folder / "rabbitmq.conf").write_text(RABBIT.format(amqp=AMQP, stomp=STOMP))
        (folder / "advanced.config").write_text(shovel if name == "near" else "[].\n")
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_NODENAME": f"{name}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self._opened.enter_context(Program(["epmd"], folder / "names-said", environment))
        return self._opened.enter_context(
            Program([RabbitMq.program, "-noinput"], folder / "said", environment)
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        self._giver.send(bodies)

    def take(self) -> list[bytes]:
        return self._taker.take()
