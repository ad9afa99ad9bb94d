"""shmbroker: a live, its backup and a witness; a confirm means that both have the message, and the
live has synced it."""

from __future__ import annotations

from collections.abc import Sequence

from shmbroker import connect, vhost
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.creation import create
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.replicated.group import QUEUE, Group
from shmbroker.perf.server.connection import BATCH, Connection
from shmbroker.perf.server.instance import COMMAND, PASSWORD, USER
from shmbroker.perf.server.server import HOST

SLOTS = 1 << 20
BACKLOG, BACKLOG_BODY = "backlog", b"x" * 1024
WITNESS = "witness"
MEMBERS = ("first", "second")


class Ours(Group):
    name = "shmbroker"
    names = (WITNESS, *MEMBERS)
    told_of_silence = True

    def __init__(self, backlog: int = 0) -> None:
        super().__init__()
        self.backlog = backlog
        self._ports: dict[str, int] = {}
        self._is_filled = not backlog

    @classmethod
    def install(cls) -> None:
        """It is what this file is of."""

    def configure(self) -> None:
        self._ports = {name: free_port() for name in (*self.names, *map(served, MEMBERS))}
        members = [f"{each}=tcp://{HOST}:{self._ports[each]}" for each in MEMBERS]
        for name in MEMBERS:
            given: dict[str, object] = {
                "instance.name": name,
                "instance.vhost": unique_token(name),
                "instance.arena": f"{512 + (5 * self.backlog >> 22)}MiB",
                "ha.policy": "replication",
                "ha.role": "live" if name == MEMBERS[0] else "backup",
                "ha.allow-failback": False,
                "ha.members": members,
                "ha.replication.witnesses": [f"tcp://{HOST}:{self._ports[WITNESS]}"],
                "ha.replication.check-for-live-server": True,
                "acceptors.members.uri": f"tcp://{HOST}:{self._ports[name]}",
                "acceptors.members.roles": ["replica"],
                "acceptors.bench.uri": f"tcp://{HOST}:{self._ports[served(name)]}",
                "acceptors.bench.roles": ["client"],
            }
            for whose, role in ((USER, "client"), ("members", "replica"), ("votes", "witness")):
                given |= {f"credentials.{whose}.password": PASSWORD,
                          f"credentials.{whose}.role": role}  # fmt: skip
            create(self.folder / name, given)
            self._stack.callback(removed, str(given["instance.vhost"]))
        witness = self.folder / WITNESS
        witness.mkdir(mode=0o700)
        text = f'[credentials.votes]\npassword = "{PASSWORD}"\nrole = "witness"\n'
        (witness / "shmbroker.toml").write_text(text)
        (witness / "shmbroker.toml").chmod(0o600)

    def started(self, name: str) -> Program:
        command = ["run", str(self.folder / name)]
        if name == WITNESS:
            listen = f"tcp://{HOST}:{self._ports[WITNESS]}"
            command = ["witness", "run", "--listen", listen, "--state", str(self.folder / name)]
        return Program([COMMAND, *command], self.folder / f"{name}-said")

    def connect(self) -> Connection:
        members = ",".join(f"tcp://{HOST}:{self._ports[served(each)]}" for each in MEMBERS)
        made = _Queue(
            f"failover:({members})?randomize=false&prefer-shared-memory=false"
            "&confirmation-window=16MiB"
        )
        if not self._is_filled:
            made.fill(self.backlog)
            self._is_filled = True
        return made

    def answering(self) -> str | None:
        read = {name: status.read(self.folder / name) for name in MEMBERS}
        lives = [name for name, each in read.items() if each.state == "live"]
        is_whole = all(each.replication == "in sync" for each in read.values())
        return lives[0] if len(lives) == 1 and is_whole else None


class _Queue(Connection):
    def __init__(self, uri: str) -> None:
        self._broker = connect(uri, user=USER, password=PASSWORD)
        self._queue = self._broker.declare_queue(QUEUE, slots=SLOTS, durable=True)

    def publish(self, body: bytes) -> object:
        return self._queue.publish(body)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._queue.publish_many(bodies)

    def take(self, count: int) -> list[bytes]:
        return self._queue.receive_many(count)

    def fill(self, size: int) -> None:
        count = size // len(BACKLOG_BODY)
        slots = 1 << (2 * count).bit_length()
        queue = self._broker.declare_queue(BACKLOG, slots=slots, durable=True)
        for at in range(0, count, BATCH):
            queue.publish_many([BACKLOG_BODY] * min(BATCH, count - at))

    def close(self) -> None:
        self._broker.close()


def served(name: str) -> str:
    """Where programs come to a member."""
    return f"{name} for programs"


def removed(name: str) -> None:
    if vhost.exists(name):
        vhost.delete(name, force=True)
