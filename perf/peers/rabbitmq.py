"""RabbitMQ: a quorum queue of one node, with publisher confirms, by pika; and a queue that one node
has from another one, by federation.

A quorum queue confirms when its log is synced, whatever is in the messages. A classic queue syncs
some time after it has a message. pika's blocking connection waits for each confirm; many are
outstanding by its callbacks, in a loop that runs until they are there.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import BATCH, OUTSTANDING, ConfirmRefused, Connection
from shmbroker.perf.server.linked import LINKED_QUEUE, Linked, far_beside, far_of
from shmbroker.perf.server.server import HOST, Place, Server

CONFIG = """\
listeners.tcp.1 = {host}:{port}
log.console = false
log.file.level = error
vm_memory_high_watermark.relative = 0.6
disk_free_limit.absolute = 100MB
"""
DEFINED = "load_definitions = {file}\n"
NO_PLUGINS, FEDERATION = "[].\n", "[rabbitmq_federation].\n"
GUEST = "guest"
PERSISTENT, TRANSIENT = 2, 1
QUORUM, CLASSIC = {"x-queue-type": "quorum"}, {"x-queue-type": "classic"}
PREFETCH = 2 * BATCH


class RabbitMq(Server):
    name = "rabbitmq"
    distribution = "pika"
    package = "rabbitmq-server"
    program = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # the one in PATH changes user and folder
    modules = ("pika",)
    is_durable: ClassVar[bool] = True

    def start(self, place: Place, stack: ExitStack) -> Program:
        return self._node(place, stack)

    def _node(
        self, place: Place, stack: ExitStack, plugins: str = NO_PLUGINS, more: str = ""
    ) -> Program:
        """`more`: of its configuration."""
        folder, names, talk = place.folder, free_port(), free_port()
        config = CONFIG.format(host=HOST, port=place.port) + more
        files = {"rabbitmq.conf": config, "plugins": plugins}
        for file, text in files.items():
            (folder / file).write_text(text)
        environment = {
            "HOME": str(folder),  # for the cookie
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_ALLOW_INPUT": "1",  # run in this process, not in a child of a shell
            "RABBITMQ_NODENAME": f"perf{place.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_DIST_PORT": str(talk),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ("-kernel inet_dist_use_interface {127,0,0,1}"),
        }
        # Erlang's name server; without one of ours it would start one that stays.
        epmd = [shutil.which("epmd") or "epmd", "-port", str(names), "-address", HOST]
        stack.enter_context(Program(epmd, folder / "names-said"))
        return stack.enter_context(
            Program([self.program, "-noinput"], folder / "said", environment)
        )

    @classmethod
    def found_program(cls) -> str | None:
        return cls.program if Path(cls.program).exists() else None

    def connect(self, place: Place, queue: str) -> Connection:
        return _Queue(place.port, queue, self.is_durable)


class RabbitMqInMemory(RabbitMq):
    """A classic queue that is not durable."""

    durability = "programs"
    is_durable = False


class RabbitMqLinked(RabbitMqInMemory):
    """A queue of the near node that the far one has by federation: it fetches for its consumers."""

    def start(self, place: Place, stack: ExitStack) -> Program:
        far = far_beside(place, free_port())
        near = super().start(place, stack)
        defined = far.folder / "definitions.json"
        defined.write_text(json.dumps(_federated(place.port)))
        self._node(far, stack, FEDERATION, DEFINED.format(file=defined))
        return near

    def is_up(self, place: Place) -> bool:
        return super().is_up(place) and super().is_up(far_of(place))

    def connect(self, place: Place, queue: str) -> Connection:
        near = super().connect(place, queue)
        return Linked(near, super().connect(far_of(place), queue))


def _federated(port: int) -> dict[str, Any]:
    """What a node is to have that fetches from the one at this port."""
    upstream = {
        "uri": f"amqp://{GUEST}:{GUEST}@{HOST}:{port}",
        "prefetch-count": PREFETCH,
        "ack-mode": "on-confirm",
    }
    policy = {"federation-upstream": "near"}
    return {
        "vhosts": [{"name": "/"}],
        "users": [{"name": GUEST, "password": GUEST, "tags": "administrator"}],
        "permissions": [
            {"user": GUEST, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
        ],
        "parameters": [
            {"component": "federation-upstream", "vhost": "/", "name": "near", "value": upstream}
        ],
        "policies": [
            {"vhost": "/", "name": "link", "pattern": f"^{LINKED_QUEUE}$", "apply-to": "queues",
             "definition": policy}
        ],
    }  # fmt: skip


class _Queue(Connection):
    def __init__(self, port: int, queue: str, is_durable: bool) -> None:
        pika: Any = import_module("pika")
        self._queue = queue
        self._parameters = pika.ConnectionParameters(HOST, port, heartbeat=0)
        mode = PERSISTENT if is_durable else TRANSIENT
        self._properties = pika.BasicProperties(delivery_mode=mode)
        self._blocking = pika.BlockingConnection(self._parameters)
        self._channel = self._blocking.channel()
        kind = QUORUM if is_durable else CLASSIC
        self._channel.queue_declare(queue, durable=is_durable, arguments=kind)
        self._channel.confirm_delivery()
        self._channel.basic_qos(prefetch_count=PREFETCH)
        self._coming: Any = None
        self._many: _Many | None = None

    def publish(self, body: bytes) -> None:
        """pika raises if it is refused."""
        self._channel.basic_publish("", self._queue, body, self._properties)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        if self._many is None:
            self._many = _Many(self._parameters)
        channel = self._many.channel

        def send(body: bytes) -> None:
            channel.basic_publish("", self._queue, body, self._properties)

        self._many.publish(send, bodies)

    def take(self, count: int) -> list[bytes]:
        if self._coming is None:
            self._coming = self._channel.consume(self._queue)
        bodies, tag = [], 0
        for method, _, body in islice(self._coming, count):
            bodies.append(body)
            tag = method.delivery_tag
            if self._channel.get_waiting_message_count() == 0:
                break
        self._channel.basic_ack(tag, multiple=True)
        return bodies

    def close(self) -> None:
        if self._many:
            self._many.close()
        self._blocking.close()


class _Many:
    """A connection whose loop runs whenever something is waited for."""

    def __init__(self, parameters: Any) -> None:
        pika: Any = import_module("pika")
        self._connection = pika.SelectConnection(
            parameters, on_open_callback=lambda opened: opened.channel(on_open_callback=self._ready)
        )
        self._connection.add_on_open_error_callback(self._failed)
        self._loop = self._connection.ioloop
        self._error: BaseException | None = None
        self._sent = 0
        self._unconfirmed: dict[int, None] = {}
        self._enough = 0
        self.channel: Any = None
        self._run()

    def publish(self, send: Callable[[bytes], None], bodies: Sequence[bytes]) -> None:
        for at in range(0, len(bodies), BATCH):
            for body in bodies[at : at + BATCH]:
                self._sent += 1
                self._unconfirmed[self._sent] = None
                send(body)
            self._wait(OUTSTANDING - BATCH)
        self._wait(0)

    def close(self) -> None:
        self._connection.add_on_close_callback(lambda *_: self._loop.stop())
        self._connection.close()
        self._run()

    def _wait(self, enough: int) -> None:
        """Until so few are unconfirmed."""
        self._enough = enough
        if len(self._unconfirmed) > enough:
            self._run()

    def _run(self) -> None:
        self._loop.start()
        if self._error:
            raise self._error

    def _ready(self, channel: Any) -> None:
        self.channel = channel
        channel.add_on_close_callback(self._failed)
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._loop.stop())

    def _failed(self, _: object, why: BaseException) -> None:
        if "Normal shutdown" not in str(why):
            self._error = why
            self._loop.stop()

    def _confirmed(self, frame: Any) -> None:
        tag, unconfirmed = frame.method.delivery_tag, self._unconfirmed
        if frame.method.NAME != "Basic.Ack":
            self._error = ConfirmRefused(f"{frame.method}")
        if not frame.method.multiple:
            unconfirmed.pop(tag, None)
        else:
            for each in [each for each in unconfirmed if each <= tag]:
                del unconfirmed[each]
        if self._error or len(unconfirmed) <= self._enough:
            self._loop.stop()


PEERS: tuple[Peer, ...] = (RabbitMq(),)
