"""ActiveMQ Classic: persistent messages in KahaDB, which syncs each write, by STOMP.

One message is confirmed by its receipt. Without a transaction the server handles one message of a
connection after the other, so each has a sync to itself; many are sent in transactions of a batch,
whose commit has the receipt: measured, the faster way.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import ClassVar

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import BATCH, ConfirmRefused, Connection
from shmbroker.perf.server.linked import LINKED_QUEUE, Linked, far_beside, far_of
from shmbroker.perf.server.server import HOST, Place, Server
from shmbroker.perf.server.stomp import Stomp, frame

HOME = Path("/usr/share/activemq")
CONFIG = """\
<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans
        http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
        http://activemq.apache.org/schema/core
        http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" useJmx="false"
      persistent="{persistent}" dataDirectory="{folder}/data">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="&gt;" producerFlowControl="false"/>
    </policyEntries></policyMap></destinationPolicy>
    {store}
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://{host}:{port}"/>
      {listens}
    </transportConnectors>
    {network}
  </broker>
</beans>
"""
STORE = """\
<persistenceAdapter>
      <kahaDB directory="{folder}/data/kahadb" journalDiskSyncStrategy="always"/>
    </persistenceAdapter>"""
LISTENS = '<transportConnector name="openwire" uri="tcp://{host}:{port}"/>'
NETWORK = """\
<networkConnectors>
      <networkConnector name="link" uri="static:(tcp://{host}:{port})">
        <staticallyIncludedDestinations>
          <queue physicalName="{queue}"/>
        </staticallyIncludedDestinations>
      </networkConnector>
    </networkConnectors>"""
HEAP = "-Xmx1g"
PREFETCH = 2 * BATCH


class ActiveMq(Server):
    name = "activemq"
    package = "activemq"
    program = str(HOME / "bin" / "activemq.jar")
    is_persistent: ClassVar[bool] = True

    @classmethod
    def found_program(cls) -> str | None:
        return cls.program if Path(cls.program).exists() else None

    def start(self, place: Place, stack: ExitStack) -> Program:
        return self._broker(place, stack, "perf")

    def _broker(
        self, place: Place, stack: ExitStack, name: str, listens: str = "", network: str = ""
    ) -> Program:
        config = place.folder / "activemq.xml"
        store = STORE.format(folder=place.folder) if self.is_persistent else ""
        config.write_text(
            CONFIG.format(
                name=name, persistent=str(self.is_persistent).lower(), folder=place.folder,
                store=store, host=HOST, port=place.port, listens=listens, network=network,
            )
        )  # fmt: skip
        command = ["java", HEAP, f"-Dactivemq.home={HOME}"]
        command += [f"-Dactivemq.{what}={place.folder}" for what in ("base", "conf", "data")]
        command += [f"-Djava.io.tmpdir={place.folder}", "-jar", self.program]
        command += ["start", f"xbean:{config.as_uri()}"]
        return stack.enter_context(Program(command, place.folder / "said"))

    def connect(self, place: Place, queue: str) -> Connection:
        return _Queue(place.port, queue, self.is_persistent)


class ActiveMqInMemory(ActiveMq):
    durability = "programs"
    is_persistent = False


class ActiveMqLinked(ActiveMqInMemory):
    """A network of two brokers."""

    def start(self, place: Place, stack: ExitStack) -> Program:
        far, port = far_beside(place, free_port()), free_port()
        self._broker(far, stack, "far", listens=LISTENS.format(host=HOST, port=port))
        network = NETWORK.format(host=HOST, port=port, queue=LINKED_QUEUE)
        return self._broker(place, stack, "near", network=network)

    def is_up(self, place: Place) -> bool:
        return super().is_up(place) and super().is_up(far_of(place))

    def connect(self, place: Place, queue: str) -> Connection:
        far = super().connect(far_of(place), queue)
        return Linked(super().connect(place, queue), far)


class _Queue(Connection):
    """What is taken comes by a socket of its own, or it would come between receipts."""

    def __init__(self, port: int, queue: str, is_persistent: bool) -> None:
        self._port = port
        self._stomp = Stomp(HOST, port)
        self._coming: Stomp | None = None
        self._name = b"destination:/queue/" + queue.encode()
        self._persistent = b"persistent:true" if is_persistent else b"persistent:false"
        self._receipts = count()

    def publish(self, body: bytes) -> None:
        receipt = b"%d" % next(self._receipts)
        headers = (self._name, self._persistent, b"receipt:" + receipt)
        self._stomp.send(frame(b"SEND", headers, body))
        self._await(receipt)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        for at in range(0, len(bodies), BATCH):
            receipt = b"%d" % next(self._receipts)
            transaction = b"transaction:" + receipt
            headers = (self._name, self._persistent, transaction)
            frames = [frame(b"SEND", headers, body) for body in bodies[at : at + BATCH]]
            commit = frame(b"COMMIT", (transaction, b"receipt:" + receipt))
            self._stomp.send(b"".join((frame(b"BEGIN", (transaction,)), *frames, commit)))
            self._await(receipt)

    def _await(self, receipt: bytes) -> None:
        answer = self._stomp.receive(b"RECEIPT")
        if answer.headers.get(b"receipt-id") != receipt:
            raise ConfirmRefused(f"{answer}")

    def take(self, count: int) -> list[bytes]:
        """Several are acknowledged by the last one of them."""
        if self._coming is None:
            self._coming = Stomp(HOST, self._port)
            prefetch = b"activemq.prefetchSize:%d" % PREFETCH
            headers = (self._name, b"id:0", b"ack:client", prefetch)
            self._coming.send(frame(b"SUBSCRIBE", headers))
        messages = [self._coming.receive(b"MESSAGE")]
        while len(messages) < count and self._coming.has_more():
            messages.append(self._coming.receive(b"MESSAGE"))
        self._coming.send(frame(b"ACK", (b"id:" + messages[-1].headers[b"ack"],)))
        return [message.body for message in messages]

    def close(self) -> None:
        self._stomp.close()
        if self._coming:
            self._coming.close()


PEERS: tuple[Peer, ...] = (ActiveMq(),)
