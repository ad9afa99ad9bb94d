"""RabbitMQ: a quorum queue on three nodes; a confirm means that two of them have synced it.

The program is connected to a node that does not lead, so that it keeps its connection; if it loses
it all the same, it goes to the next node and publishes again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.peers.rabbitmq import CONFIG, RabbitMq
from shmbroker.perf.replicated.group import QUEUE, Group, said
from shmbroker.perf.server.connection import Connection
from shmbroker.perf.server.server import HOST, Place

CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
COOKIE = "shmbrokerbench"
JOIN = """\
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.discovery_retry_interval = 500
"""


class RabbitMqGroup(Group):
    name = "rabbitmq"
    names = ("one", "two", "three")

    @classmethod
    def install(cls) -> None:
        RabbitMq.install()

    @classmethod
    def version(cls) -> str:
        return RabbitMq.version()

    def configure(self) -> None:
        self._erlang_names = free_port()
        self._ports = {name: free_port() for name in self.names}
        self._talk = {name: free_port() for name in self.names}
        (self.folder / ".erlang.cookie").write_text(COOKIE)
        (self.folder / ".erlang.cookie").chmod(0o400)
        (self.folder / "plugins").write_text("[].\n")
        nodes = "".join(
            f"cluster_formation.classic_config.nodes.{number} = {self._node(name)}\n"
            for number, name in enumerate(self.names, 1)
        )
        for name in self.names:
            text = CONFIG.format(host=HOST, port=self._ports[name])
            (self.folder / f"{name}.conf").write_text(text + JOIN + nodes)
        epmd = [shutil.which("epmd") or "epmd", "-port", str(self._erlang_names), "-address", HOST]
        self._stack.enter_context(Program(epmd, self.folder / "names-said"))

    def _node(self, name: str) -> str:
        return f"{name}{self._ports[name]}@localhost"

    def _environment(self, name: str) -> dict[str, str]:
        return {
            "HOME": str(self.folder),  # for the cookie
            "ERL_EPMD_PORT": str(self._erlang_names),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_ALLOW_INPUT": "1",  # run in this process, not in a child of a shell
            "RABBITMQ_NODENAME": self._node(name),
            "RABBITMQ_MNESIA_BASE": str(self.folder / f"{name}-data"),
            "RABBITMQ_LOG_BASE": str(self.folder / f"{name}-log"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / f"{name}.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_DIST_PORT": str(self._talk[name]),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def started(self, name: str) -> Program:
        environment = self._environment(name)
        return Program([RabbitMq.program, "-noinput"], self.folder / f"{name}-said", environment)

    def connect(self) -> Connection:
        leader = self.answering()
        order = sorted(self.names, key=lambda name: name == leader)
        return GoesOn([Place(self.folder, self._ports[name]) for name in order])

    def answering(self) -> str | None:
        for name in self.names:
            environment = os.environ | self._environment(name)
            words = ["list_queues", "--formatter", "json", "name", "leader", "online"]
            told = said([CONTROL, "--silent", "--node", self._node(name), *words], environment)
            if told is not None:
                return self._leader(json.loads(told))
        return None

    def _leader(self, queues: Sequence[dict[str, Any]]) -> str | None:
        """Before the queue is made: whoever is there, once all are."""
        found = next((each for each in queues if each["name"] == QUEUE), None)
        if found is None:
            return self.names[0] if self._are_joined() else None
        is_whole = len(found["online"]) == len(self.names)
        leads = next((each for each in self.names if self._node(each) == found["leader"]), None)
        return leads if is_whole else None

    def _are_joined(self) -> bool:
        name = self.names[0]
        words = ["--silent", "--node", self._node(name), "cluster_status", "--formatter", "json"]
        told = said([CONTROL, *words], os.environ | self._environment(name))
        return told is not None and len(json.loads(told)["running_nodes"]) == len(self.names)


class GoesOn(Connection):
    """To one of several places; to the next one when it is lost."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._connection: Connection | None = None

    def _through(self, does: Callable[[Connection], Any]) -> Any:
        errors: Any = import_module("pika.exceptions")
        while True:
            try:
                if self._connection is None:
                    self._connection = RabbitMq().connect(self._places[0], QUEUE)
                return does(self._connection)
            except (errors.AMQPError, OSError):
                self._connection = None
                self._places.append(self._places.pop(0))

    def publish(self, body: bytes) -> object:
        return self._through(lambda to: to.publish(body))

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._through(lambda to: to.publish_many(bodies))

    def take(self, count: int) -> list[bytes]:
        found: list[bytes] = self._through(lambda of: of.take(count))
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
